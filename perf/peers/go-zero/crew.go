package main

import "sync"

// A member is what one thread of a workload does. Only its work is measured.
type member interface {
	fill()
	work()
	drain()
}

// A crew takes each step together with the goroutine that measures it.
type crew struct {
	start, end              chan struct{}
	filled, worked, drained sync.WaitGroup
}

// newCrew returns when all members have filled.
func newCrew(members []member) *crew {
	c := &crew{start: make(chan struct{}), end: make(chan struct{})}
	c.filled.Add(len(members))
	c.worked.Add(len(members))
	c.drained.Add(len(members))
	for _, m := range members {
		go func() {
			m.fill()
			c.filled.Done()
			<-c.start
			m.work()
			c.worked.Done()
			<-c.end
			m.drain()
			c.drained.Done()
		}()
	}
	c.filled.Wait()
	return c
}

func (c *crew) work() {
	close(c.start)
	c.worked.Wait()
}

func (c *crew) drain() {
	close(c.end)
	c.drained.Wait()
}
