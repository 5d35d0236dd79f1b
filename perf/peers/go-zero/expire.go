package main

import "time"

// measureExpire schedules timeouts of 1 to 1000 ms and waits until all have run.
func measureExpire(o options) figures {
	timer := startTimer(o.tick())
	defer timer.stop()
	counters := newCounters(o.count)
	var members []member
	for t := range o.threads {
		members = append(members, &producer{
			timer:    timer,
			counters: counters,
			idBase:   idBase(t),
			count:    o.share(o.count, t),
			random:   splitMix64(o.seed + uint64(t)),
		})
	}
	crew := newCrew(members)

	watch := startStopwatch()
	crew.work()
	<-counters.allFired
	watch.stop(o.tick())

	crew.drain()
	return append(watch.figures(o.count), countFigures(o.count, counters, nil)...)
}

type producer struct {
	timer    timer
	counters *counters
	idBase   uint64
	count    int
	random   splitMix64
}

func (p *producer) fill() {}

func (p *producer) work() {
	for i := 1; i <= p.count; i++ {
		delay := time.Duration(p.random.between(1, 1000)) * time.Millisecond
		p.timer.schedule(delay, p.idBase+uint64(i), p.counters)
	}
}

func (p *producer) drain() {}
