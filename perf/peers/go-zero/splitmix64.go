package main

// splitMix64 makes the random numbers that all runners share.
type splitMix64 uint64

func (s *splitMix64) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// between returns a number from lo to hi.
func (s *splitMix64) between(lo, hi uint64) uint64 {
	return lo + s.next()%(hi-lo+1)
}
