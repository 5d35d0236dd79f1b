package main

// measureChurn has each thread keep a ring of pending timeouts: it cancels the oldest and schedules a new one.
func measureChurn(o options) figures {
	timer := startTimer(o.tick())
	defer timer.stop()
	counters := newCounters(0)
	var members []member
	var cancellers []*canceller
	for t := range o.threads {
		r := &ring{
			canceller: canceller{timer: timer},
			counters:  counters,
			lastID:    idBase(t),
			pairs:     o.share(o.count, t),
			ids:       make([]any, o.pending),
		}
		members = append(members, r)
		cancellers = append(cancellers, &r.canceller)
	}
	crew := newCrew(members)
	timer.fence(o.tick())

	watch := startStopwatch()
	crew.work()
	watch.stop(o.tick())

	crew.drain()
	return append(watch.figures(o.count), countFigures(o.threads*o.pending+o.count, counters, cancellers)...)
}

type ring struct {
	canceller
	counters *counters
	lastID   uint64
	pairs    int
	ids      []any
	oldest   int
}

func (r *ring) fill() {
	for i := range r.ids {
		r.scheduleAt(i)
	}
}

func (r *ring) work() {
	for range r.pairs {
		r.cancel(r.ids[r.oldest])
		r.scheduleAt(r.oldest)
		if r.oldest++; r.oldest == len(r.ids) {
			r.oldest = 0
		}
	}
}

func (r *ring) drain() {
	for _, id := range r.ids {
		r.cancel(id)
	}
}

func (r *ring) scheduleAt(i int) {
	r.lastID++
	r.ids[i] = r.lastID
	r.timer.schedule(longDelay, r.ids[i], r.counters)
}
