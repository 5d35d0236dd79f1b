package main

import "time"

// rest is the time, besides two ticks, in which the timer catches up after the last operation.
const rest = 50 * time.Millisecond

// A stopwatch takes the wall and CPU time of a run of operations.
type stopwatch struct {
	start     time.Time
	wall, cpu time.Duration
}

func startStopwatch() *stopwatch {
	return &stopwatch{cpu: -cpuTime(), start: time.Now()}
}

// stop ends the wall time at once, and the CPU time after the rest.
func (s *stopwatch) stop(tick time.Duration) {
	s.wall = time.Since(s.start)
	time.Sleep(2*tick + rest)
	s.cpu += cpuTime()
}

func (s *stopwatch) figures(operations int) figures {
	return figures{
		{"operations", operations},
		{"cpu_ns_per_op", rounded(float64(s.cpu) / float64(operations))},
		{"wall_ns_per_op", rounded(float64(s.wall) / float64(operations))},
		{"wall_ms", rounded(s.wall.Seconds() * 1000)},
	}
}
