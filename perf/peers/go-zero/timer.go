package main

import (
	"sync/atomic"
	"time"

	"github.com/zeromicro/go-zero/core/collection"
)

// A task runs when a timeout expires. It runs in its own goroutine, or with others of its batch. So tasks may run
// concurrently.
type task interface {
	run(id uint64)
}

// A timer is a started timer. Handles are interface values, so that a cancel needs no conversion.
type timer interface {
	schedule(delay time.Duration, id uint64, task task) (handle any)
	cancel(handle any) bool
	putOff(handle any, delay time.Duration)
	stop()
}

// fence waits until the timer has taken over all scheduled timeouts. The wheel serves its callers in order. So all
// earlier timeouts are in the wheel when a later one of two ticks has run.
func fence(t timer, o options) {
	passed := make(fenceTask)
	t.schedule(2*o.tick(), 0, passed)
	<-passed
}

type fenceTask chan struct{}

func (f fenceTask) run(uint64) { close(f) }

// A tally counts timeouts that have run.
type tally struct {
	awaited    int64
	count      atomic.Int64
	sum        atomic.Uint64
	allCounted chan struct{}
}

func newTally(awaited int) *tally {
	return &tally{awaited: int64(awaited), allCounted: make(chan struct{})}
}

func (t *tally) run(id uint64) {
	t.sum.Add(id)
	if t.count.Add(1) == t.awaited {
		close(t.allCounted)
	}
}

// A wheelTimer is go-zero's TimingWheel. Its keys and handles are the ids of the timeouts, its values are their tasks.
type wheelTimer struct {
	wheel *collection.TimingWheel
}

func startWheel(o options) timer {
	wheel, err := collection.NewTimingWheel(o.tick(), 512, func(key, value any) {
		value.(task).run(key.(uint64))
	})
	must(err)
	return wheelTimer{wheel}
}

func (t wheelTimer) schedule(delay time.Duration, id uint64, task task) any {
	var handle any = id
	must(t.wheel.SetTimer(handle, task, delay))
	return handle
}

// cancel cannot return whether it won, because the wheel does not tell.
func (t wheelTimer) cancel(handle any) bool {
	must(t.wheel.RemoveTimer(handle))
	return true
}

func (t wheelTimer) putOff(handle any, delay time.Duration) { must(t.wheel.MoveTimer(handle, delay)) }

func (t wheelTimer) stop() { t.wheel.Stop() }

// The runtimeTimer is that of Go's runtime. It needs no start and has no tick.
type runtimeTimer struct{}

func (runtimeTimer) schedule(delay time.Duration, id uint64, task task) any {
	return time.AfterFunc(delay, func() { task.run(id) })
}

func (runtimeTimer) cancel(handle any) bool { return handle.(*time.Timer).Stop() }

func (runtimeTimer) putOff(handle any, delay time.Duration) { handle.(*time.Timer).Reset(delay) }

func (runtimeTimer) stop() {}
