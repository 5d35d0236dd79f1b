package main

import "sync/atomic"

// A task is what a timeout does when it expires. The wheel runs each expired batch in a goroutine of its own, so
// tasks may run at the same time.
type task interface {
	run(id uint64)
}

// counters counts what has fired.
type counters struct {
	expected uint64 // 0 in a run in which nothing is to fire
	fired    atomic.Uint64
	firedSum atomic.Uint64
	allFired chan struct{}
}

func newCounters(expected int) *counters {
	return &counters{expected: uint64(expected), allFired: make(chan struct{})}
}

func (c *counters) run(id uint64) {
	c.firedSum.Add(id)
	if c.fired.Add(1) == c.expected {
		close(c.allFired)
	}
}
