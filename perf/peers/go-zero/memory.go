package main

import (
	"runtime"
	"time"
)

// measureMemory tells how many bytes of the live heap one pending timeout takes.
func measureMemory(o options) figures {
	timer := startTimer(o.tick())
	defer timer.stop()
	counters := newCounters(0)
	timer.fence(o.tick())
	before := liveBytes()
	for id := uint64(1); id <= uint64(o.pending); id++ {
		timer.schedule(time.Hour, id, counters)
	}
	timer.fence(o.tick())
	after := liveBytes()
	return figures{{"bytes_per_timeout", rounded((float64(after) - float64(before)) / float64(o.pending))}}
}

func liveBytes() uint64 {
	// The second collection completes the sweep of the first and frees what finalizers have released.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
