package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// longDelay is the delay of timeouts that are cancelled or postponed before they are due.
const longDelay = 600 * time.Second

// together runs the share of each thread and waits for all.
func together(threads int, part func(t int)) {
	var group sync.WaitGroup
	group.Add(threads)
	for t := range threads {
		go func() {
			defer group.Done()
			part(t)
		}()
	}
	group.Wait()
}

func seeded(o options, t int) *rand.Rand { return rand.New(rand.NewPCG(uint64(o.seed), uint64(t))) }

// between returns a random duration from low to high units.
func between(random *rand.Rand, low, high int64, unit time.Duration) time.Duration {
	return time.Duration(low+random.Int64N(high-low+1)) * unit
}

// firstID is the id before the first one of thread t.
func firstID(t int) uint64 { return uint64(t) << 40 }

// counts has the sums as strings, because some JSON readers do not keep 64 bits.
func counts(scheduled int, fired *tally, cancelled, cancelledSum uint64) figures {
	return figures{
		"scheduled": scheduled,
		"fired":     fired.count.Load(), "fired_sum": fmt.Sprint(fired.sum.Load()),
		"cancelled": cancelled, "cancelled_sum": fmt.Sprint(cancelledSum),
	}
}

// A ring has the pending timeouts of one thread. It cancels them in the order of scheduling.
type ring struct {
	timer                   timer
	fired                   *tally
	handles                 []any
	lastID, oldestID        uint64
	oldest                  int
	cancelled, cancelledSum uint64
}

func (r *ring) schedule() any {
	r.lastID++
	return r.timer.schedule(longDelay, r.lastID, r.fired)
}

// cancelOldest does nothing while the ring is not full.
func (r *ring) cancelOldest() {
	handle := r.handles[r.oldest]
	if handle == nil {
		return
	}
	if r.timer.cancel(handle) {
		r.cancelled++
		r.cancelledSum += r.oldestID
	}
	r.oldestID++
}

// keep replaces the oldest handle.
func (r *ring) keep(handle any) {
	r.handles[r.oldest] = handle
	if r.oldest++; r.oldest == len(r.handles) {
		r.oldest = 0
	}
}

func (r *ring) churn(n int) {
	for range n {
		r.cancelOldest()
		r.keep(r.schedule())
	}
}

// handOver lets another goroutine schedule. It passes handles in batches, which go round between the two.
func (r *ring) handOver(n int) {
	const batches, batchSize = 8, 256
	full, empty := make(chan []any, batches), make(chan []any, batches)
	for range batches {
		empty <- make([]any, batchSize)
	}
	scheduler := *r // a copy, so that the two goroutines share no cache line
	go func() {
		for left := n; left > 0; {
			batch := (<-empty)[:min(left, batchSize)]
			for i := range batch {
				batch[i] = scheduler.schedule()
			}
			full <- batch
			left -= len(batch)
		}
		close(full)
	}()
	for batch := range full {
		for _, handle := range batch {
			r.cancelOldest()
			r.keep(handle)
		}
		empty <- batch
	}
	r.lastID += uint64(n)
}

// measureRings fills a ring for each thread, measures the work, and cancels the rest.
func measureRings(o options, timer timer, size func(t int) int, fill, work func(r *ring, n int)) figures {
	fired := newTally(0)
	rings := make([]*ring, o.threads)
	for t := range rings {
		rings[t] = &ring{timer: timer, fired: fired, handles: make([]any, size(t)), lastID: firstID(t), oldestID: firstID(t) + 1}
	}
	together(o.threads, func(t int) { fill(rings[t], size(t)) })
	fence(timer, o)
	result := measured(o, o.count, func() {
		together(o.threads, func(t int) { work(rings[t], o.share(o.count, t)) })
	})
	scheduled, cancelled, cancelledSum := 0, uint64(0), uint64(0)
	for t, r := range rings {
		for range r.handles {
			r.cancelOldest()
			r.keep(nil)
		}
		scheduled += int(r.lastID - firstID(t))
		cancelled += r.cancelled
		cancelledSum += r.cancelledSum
	}
	maps.Copy(result, counts(scheduled, fired, cancelled, cancelledSum))
	return result
}

// measureChurn: each thread cancels its oldest timeout and schedules a new one.
func measureChurn(o options, timer timer) figures {
	return measureRings(o, timer, func(int) int { return o.pending }, (*ring).churn, (*ring).churn)
}

// measureHandoff: as churn, but one thread schedules and another cancels.
func measureHandoff(o options, timer timer) figures {
	return measureRings(o, timer, func(int) int { return o.pending }, (*ring).handOver, (*ring).handOver)
}

// measureTouch: each thread postpones timeouts at random.
func measureTouch(o options, timer timer) figures {
	size := func(t int) int { return o.share(o.pending, t) }
	return measureRings(o, timer, size, (*ring).churn, func(r *ring, n int) {
		random := seeded(o, int(r.oldestID>>40))
		for range n {
			r.timer.putOff(r.handles[random.IntN(len(r.handles))], longDelay)
		}
	})
}

// measureExpire schedules timeouts of 1 to 1000 ms and waits until all have run.
func measureExpire(o options, timer timer) figures {
	fired := newTally(o.count)
	result := measured(o, o.count, func() {
		together(o.threads, func(t int) {
			random := seeded(o, t)
			for i := range o.share(o.count, t) {
				timer.schedule(between(random, 1, 1000, time.Millisecond), firstID(t)+uint64(i+1), fired)
			}
		})
		<-fired.allCounted
	})
	maps.Copy(result, counts(o.count, fired, 0, 0))
	return result
}

func schedulePending(timer timer, o options, delay func() time.Duration) {
	never := newTally(0)
	for id := uint64(1); id <= uint64(o.pending); id++ {
		timer.schedule(delay(), id, never)
	}
	fence(timer, o)
}

func measureMemory(o options, timer timer) figures {
	fence(timer, o)
	before := liveBytes()
	schedulePending(timer, o, func() time.Duration { return time.Hour })
	return figures{"bytes_per_timeout": (liveBytes() - before) / float64(o.pending)}
}

func measureFar(o options, timer timer) figures {
	random := seeded(o, 0)
	schedulePending(timer, o, func() time.Duration { return between(random, 600_000, 1_200_000, time.Millisecond) })
	return atRest(o)
}

// deadlines holds the deadline of each timeout, and its lateness after it has run.
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

// measureLate measures the time from a deadline to the start of the task: 100 every 5 ms.
func measureLate(o options, timer timer) figures {
	d := &deadlines{start: time.Now(), times: make([]time.Duration, o.count), allRun: make(chan struct{})}
	d.left.Store(int64(o.count))
	random := seeded(o, 0)
	for i := range o.count {
		if i%100 == 0 {
			time.Sleep(time.Until(d.start.Add(time.Duration(i/100) * 5 * time.Millisecond)))
		}
		delay := between(random, 1_000, 21_000, time.Microsecond)
		d.times[i] = time.Since(d.start) + delay
		timer.schedule(delay, uint64(i+1), d)
	}
	<-d.allRun
	slices.Sort(d.times)
	quantiles := make([]float64, 1001)
	for permille := range quantiles {
		quantiles[permille] = float64(d.times[permille*(len(d.times)-1)/1000]) / 1000
	}
	early, _ := slices.BinarySearch(d.times, -1) // by more than the resolution of the clock
	return figures{"late_us": quantiles, "early": early}
}

// measureRate schedules 100 timeouts of 300 s each millisecond and cancels each after the next o.pending ones, except
// one of a thousand. With o.dueMs, another timeout is due at that interval. It measures the growth of the heap.
func measureRate(o options, timer timer) figures {
	fired, handles := newTally(0), make([]any, o.pending)
	fence(timer, o)
	before, cpu, start := liveBytes(), cpuTime(), time.Now()
	for i := range o.count {
		if i%100 == 0 {
			ms := i / 100
			time.Sleep(time.Until(start.Add(time.Duration(ms) * time.Millisecond)))
			if o.dueMs != 0 && ms%o.dueMs == 0 {
				timer.schedule(time.Duration(o.dueMs)*time.Millisecond, uint64(o.count+i+1), fired)
			}
		}
		at := i % o.pending
		if handles[at] != nil {
			timer.cancel(handles[at])
		}
		handles[at] = timer.schedule(300*time.Second, uint64(i+1), fired)
		if i%1000 == 0 {
			handles[at] = nil
		}
	}
	wall, spent := time.Since(start), cpuTime()-cpu
	return figures{
		"kept_mib":     (liveBytes() - before) / (1 << 20),
		"cpu_ms_per_s": spent.Seconds() * 1000 / wall.Seconds(),
	}
}
