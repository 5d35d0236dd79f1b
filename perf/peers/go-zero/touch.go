package main

// measureTouch has each thread put off one of its pending timeouts at random, again and again.
func measureTouch(o options) figures {
	timer := startTimer(o.tick())
	defer timer.stop()
	counters := newCounters(0)
	var members []member
	var cancellers []*canceller
	for t := range o.threads {
		toucher := &toucher{
			canceller: canceller{timer: timer},
			counters:  counters,
			idBase:    idBase(t),
			touches:   o.share(o.count, t),
			random:    splitMix64(o.seed + uint64(t)),
			ids:       make([]any, o.share(o.pending, t)),
		}
		members = append(members, toucher)
		cancellers = append(cancellers, &toucher.canceller)
	}
	crew := newCrew(members)
	timer.fence(o.tick())

	watch := startStopwatch()
	crew.work()
	watch.stop(o.tick())

	crew.drain()
	return append(watch.figures(o.count), countFigures(o.pending, counters, cancellers)...)
}

type toucher struct {
	canceller
	counters *counters
	idBase   uint64
	touches  int
	random   splitMix64
	ids      []any
}

func (t *toucher) fill() {
	for i := range t.ids {
		t.ids[i] = t.idBase + uint64(i) + 1
		t.timer.schedule(longDelay, t.ids[i], t.counters)
	}
}

func (t *toucher) work() {
	for range t.touches {
		i := t.random.next() % uint64(len(t.ids))
		t.timer.touch(t.ids[i], longDelay)
	}
}

func (t *toucher) drain() {
	for _, id := range t.ids {
		t.cancel(id)
	}
}
