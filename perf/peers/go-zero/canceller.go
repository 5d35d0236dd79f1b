package main

import "time"

// delay of the timeouts that are cancelled or put off before they are due.
const longDelay = 600 * time.Second

// A canceller counts one thread's cancels.
type canceller struct {
	timer        timer
	cancelled    uint64
	cancelledSum uint64
}

func (c *canceller) cancel(id any) {
	c.timer.cancel(id)
	c.cancelled++
	c.cancelledSum += id.(uint64)
}

func countFigures(scheduled int, c *counters, cancellers []*canceller) figures {
	var cancelled, cancelledSum uint64
	for _, canceller := range cancellers {
		cancelled += canceller.cancelled
		cancelledSum += canceller.cancelledSum
	}
	return figures{
		{"scheduled", scheduled},
		{"fired", c.fired.Load()},
		{"fired_sum", sum(c.firedSum.Load())},
		{"cancelled", cancelled},
		{"cancelled_sum", sum(cancelledSum)},
	}
}
