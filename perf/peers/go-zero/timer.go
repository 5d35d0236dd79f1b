package main

import (
	"time"

	"github.com/zeromicro/go-zero/core/collection"
)

const (
	modulePath = "github.com/zeromicro/go-zero"
	buckets    = 512
)

// A timer is one started wheel. Its keys are the ids of the timeouts, and its values their tasks.
type timer struct {
	wheel *collection.TimingWheel
}

func startTimer(tick time.Duration) timer {
	wheel, err := collection.NewTimingWheel(tick, buckets, func(key, value any) {
		value.(task).run(key.(uint64))
	})
	must(err)
	return timer{wheel}
}

// schedule takes the id as an interface value, so that callers who need it again keep it and convert it once only.
func (t timer) schedule(delay time.Duration, id any, task task) {
	must(t.wheel.SetTimer(id, task, delay))
}

// cancel cannot tell whether it has won: the wheel does not say.
func (t timer) cancel(id any) {
	must(t.wheel.RemoveTimer(id))
}

func (t timer) touch(id any, delay time.Duration) {
	must(t.wheel.MoveTimer(id, delay))
}

func (t timer) stop() {
	t.wheel.Stop()
}

// fence waits until the wheel has taken over whatever was scheduled before. The wheel serves its callers one by one,
// so a timeout of two ticks that has run has all earlier ones before it.
func (t timer) fence(tick time.Duration) {
	passed := make(fenceTask)
	t.schedule(2*tick, uint64(0), passed)
	<-passed
}

type fenceTask chan struct{}

func (f fenceTask) run(uint64) {
	close(f)
}

// must ends the program: a call fails only on a wheel that is closed or on wrong arguments.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
