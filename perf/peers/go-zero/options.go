package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// options is what the command line asks for; 0 where the workload has no such option.
type options struct {
	workload *workload
	threads  int
	tickMs   int
	count    int
	pending  int
	seconds  int
	rounds   int
	warmup   int
	seed     uint64
	json     bool
}

// The collector needs some rounds until the heap has its size.
const defaultWarmup = 3

func parseOptions(args []string) (options, error) {
	if len(args) == 0 {
		return options{}, fmt.Errorf("no workload: one of %s", workloadTitles())
	}
	w, ok := findWorkload(args[0])
	if !ok {
		return options{}, fmt.Errorf("unknown workload '%s': one of %s", args[0], workloadTitles())
	}
	o := w.defaults
	o.workload, o.threads, o.rounds, o.warmup, o.seed = w, 1, 1, defaultWarmup, 1
	numbers := []struct {
		name   string
		value  *int
		lo, hi int
	}{
		{"--threads", &o.threads, 1, 256},
		{"--tick-ms", &o.tickMs, 1, 10_000},
		{"--count", &o.count, 1, 1_000_000_000},
		{"--pending", &o.pending, 1, 100_000_000},
		{"--seconds", &o.seconds, 1, 600},
		{"--rounds", &o.rounds, 1, 1_000},
		{"--warmup", &o.warmup, 0, 1_000},
	}

next:
	for i := 1; i < len(args); i++ {
		name := args[i]
		if name == "--json" {
			o.json = true
			continue
		}
		value := ""
		if i++; i < len(args) {
			value = args[i]
		}
		if name == "--seed" {
			seed, ok := parseNumber(value, 0, ^uint64(0))
			if !ok {
				return options{}, wrongNumber(name, value, 0, ^uint64(0))
			}
			o.seed = seed
			continue
		}
		for _, n := range numbers {
			if n.name == name {
				number, ok := parseNumber(value, uint64(n.lo), uint64(n.hi))
				if !ok {
					return options{}, wrongNumber(name, value, uint64(n.lo), uint64(n.hi))
				}
				*n.value = int(number)
				continue next
			}
		}
		return options{}, fmt.Errorf("unknown option '%s': one of --threads, --tick-ms, --count, --pending, "+
			"--seconds, --rounds, --warmup, --seed, --json", name)
	}
	o.ignoreUnused()
	if w.title == "touch" && o.pending < o.threads {
		return options{}, fmt.Errorf("--pending %d: %d (--threads) to 100000000 in touch", o.pending, o.threads)
	}
	return o, nil
}

// ignoreUnused resets what the workload has no use for.
func (o *options) ignoreUnused() {
	d := o.workload.defaults
	if d.threads == 0 {
		o.threads = 1
	}
	if d.count == 0 {
		o.count = 0
	}
	if d.pending == 0 {
		o.pending = 0
	}
	if d.seconds == 0 {
		o.seconds = 0
	}
}

func parseNumber(value string, lo, hi uint64) (uint64, bool) {
	// Digits alone: a sign is no part of any of these.
	if strings.Trim(value, "0123456789") != "" {
		return 0, false
	}
	number, err := strconv.ParseUint(value, 10, 64)
	return number, err == nil && lo <= number && number <= hi
}

func wrongNumber(name, value string, lo, hi uint64) error {
	if value == "" {
		value = "(no value)"
	}
	return fmt.Errorf("%s %s: a whole number from %d to %d", name, value, lo, hi)
}

func (o options) tick() time.Duration {
	return time.Duration(o.tickMs) * time.Millisecond
}

// share is thread t's part of total: the first threads take what does not divide evenly.
func (o options) share(total, t int) int {
	if t < total%o.threads {
		return total/o.threads + 1
	}
	return total / o.threads
}

// idBase is the id before thread t's first.
func idBase(t int) uint64 {
	return uint64(t) << 40
}
