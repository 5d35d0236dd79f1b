package main

import (
	"slices"
	"sync/atomic"
	"time"
)

const (
	lateBatch    = 100
	lateInterval = 5 * time.Millisecond
	quantiles    = 1001
)

// measureLate tells how long after its deadline a task runs.
func measureLate(o options) figures {
	timer := startTimer(o.tick())
	defer timer.stop()
	d := &deadlines{
		start:  time.Now(),
		times:  make([]time.Duration, o.count),
		allRun: make(chan struct{}),
	}
	d.left.Store(int64(o.count))
	random := splitMix64(o.seed)
	for i := range o.count {
		if i%lateBatch == 0 {
			time.Sleep(time.Until(d.start.Add(time.Duration(i/lateBatch) * lateInterval)))
		}
		delay := time.Duration(random.between(1_000, 21_000)) * time.Microsecond
		var id any = uint64(i + 1)
		d.times[i] = time.Since(d.start) + delay
		timer.schedule(delay, id, d)
	}
	<-d.allRun
	return lateFigures(d.times)
}

// deadlines holds each timeout's deadline until it runs, then by how much it was late.
type deadlines struct {
	start  time.Time
	times  []time.Duration
	left   atomic.Int64
	allRun chan struct{}
}

func (d *deadlines) run(id uint64) {
	d.times[id-1] = time.Since(d.start) - d.times[id-1]
	if d.left.Add(-1) == 0 {
		close(d.allRun)
	}
}

func lateFigures(late []time.Duration) figures {
	slices.Sort(late)
	microseconds := make([]float64, quantiles)
	for i := range microseconds {
		microseconds[i] = float64(late[i*(len(late)-1)/(quantiles-1)]) / 1000
	}
	early := 0
	for _, l := range late {
		// The clock's unit is a nanosecond.
		if l < -1 {
			early++
		}
	}
	return figures{{"late_us", microseconds}, {"early", early}}
}
