package main

import (
	"runtime"
	"time"
)

// measureIdle tells what a timer takes with nothing pending.
func measureIdle(o options) figures {
	timer := startTimer(o.tick())
	defer timer.stop()
	return measureQuiet(o)
}

// measureFar tells what a timer takes while its timeouts are due much later.
func measureFar(o options) figures {
	timer := startTimer(o.tick())
	defer timer.stop()
	counters := newCounters(0)
	random := splitMix64(o.seed)
	for id := uint64(1); id <= uint64(o.pending); id++ {
		timer.schedule(time.Duration(random.between(600_000, 1_200_000))*time.Millisecond, id, counters)
	}
	timer.fence(o.tick())
	return measureQuiet(o)
}

func measureQuiet(o options) figures {
	// One thread measures throughout, so that its own wake-ups can be left out.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	time.Sleep(2*o.tick() + 500*time.Millisecond)
	wakeups, cpu, wall := countWakeups(), cpuTime(), time.Now()
	time.Sleep(time.Duration(o.seconds) * time.Second)
	cpu = cpuTime() - cpu
	seconds := time.Since(wall).Seconds()
	wakeups = countWakeups() - wakeups
	return figures{
		{"cpu_ms_per_s", rounded(cpu.Seconds() * 1000 / seconds)},
		{"wakeups_per_s", rounded(float64(wakeups) / seconds)},
	}
}
