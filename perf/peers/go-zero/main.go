// Runner of the workloads on go-zero's TimingWheel and on the timers of Go's runtime.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figures are the fields of the JSON object.
type figures map[string]any

type options struct {
	threads, tickMs, count, pending, seconds, dueMs, warmup, seed int
}

// A peer is one of the timers: its name comes first on the command line.
type peer struct {
	version func() string
	start   func(options) timer
	notes   map[string]string // by workload: a footnote of its figures
}

const (
	noteCancel  = "a cancel does not tell whether it won"
	noteThreads = "wake-ups of all threads of the runtime but the measuring one"
)

var peers = map[string]peer{
	"go-zero": {moduleVersion, startWheel, map[string]string{
		"churn": noteCancel, "handoff": noteCancel, "rate": noteCancel, "touch": noteCancel,
		"idle": noteThreads, "far": noteThreads, "late": "delays are cut to whole ticks",
	}},
	"go": {goVersion, func(options) timer { return runtimeTimer{} }, map[string]string{"idle": noteThreads, "far": noteThreads}},
}

var workloads = map[string]func(options, timer) figures{
	"churn":   measureChurn,
	"handoff": measureHandoff,
	"expire":  measureExpire,
	"memory":  measureMemory,
	"idle":    func(o options, _ timer) figures { return atRest(o) },
	"far":     measureFar,
	"late":    measureLate,
	"rate":    measureRate,
	"touch":   measureTouch,
}

func main() {
	name, args := "", os.Args[1:]
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	peer, known := peers[name]
	if !known {
		wrong(name, errors.New("no such peer: there are go-zero, go"))
	}
	answer := figures{"runner": name, "version": peer.version(), "runtime": "Go " + goVersion()}
	if !slices.Equal(args, []string{"--describe"}) {
		workload, o, err := parse(args)
		if err != nil {
			wrong(name, err)
		}
		for range o.warmup {
			measure(peer, workload, o)
		}
		maps.Copy(answer, figures{"workload": workload, "threads": o.threads, "tick_ms": o.tickMs, "pending": o.pending, "count": o.count, "seed": o.seed})
		maps.Copy(answer, measure(peer, workload, o))
		if note := peer.notes[workload]; note != "" {
			answer["note"] = note
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(answer))
}

func wrong(name string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(2)
}

// measure runs one round, with a fresh timer.
func measure(peer peer, workload string, o options) figures {
	timer := peer.start(o)
	defer timer.stop()
	return workloads[workload](o, timer)
}

func parse(args []string) (name string, o options, err error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	number := func(name string, value *int, preset, low, high int) {
		*value = preset
		flags.Func(name, "", func(text string) (err error) {
			if *value, err = strconv.Atoi(text); err != nil || *value < low || *value > high {
				return fmt.Errorf("not a whole number from %d to %d", low, high)
			}
			return nil
		})
	}
	number("threads", &o.threads, 1, 1, 256)
	number("tick-ms", &o.tickMs, 1, 1, 10_000)
	number("count", &o.count, 1_000_000, 1, 1_000_000_000)
	number("pending", &o.pending, 1_000, 1, 100_000_000)
	number("seconds", &o.seconds, 2, 1, 600)
	number("due-ms", &o.dueMs, 0, 0, 1_000)
	number("warmup", &o.warmup, 0, 0, 1_000)
	number("seed", &o.seed, 1, 0, math.MaxInt)
	if len(args) == 0 || workloads[args[0]] == nil {
		known := slices.Sorted(maps.Keys(workloads))
		return "", o, fmt.Errorf("no such workload: %q; there are %s", strings.Join(args[:min(1, len(args))], ""), strings.Join(known, ", "))
	}
	if err = flags.Parse(args[1:]); err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument: %q", flags.Arg(0))
	}
	if err == nil && args[0] == "touch" && o.pending < o.threads {
		err = fmt.Errorf("--pending %d: at least one for each of the %d threads", o.pending, o.threads)
	}
	return args[0], o, err
}

func (o options) tick() time.Duration { return time.Duration(o.tickMs) * time.Millisecond }

// share returns thread t's share of total. If it does not divide evenly, the first threads take one more.
func (o options) share(total, t int) int { return (total + o.threads - 1 - t) / o.threads }

func goVersion() string { return strings.TrimPrefix(runtime.Version(), "go") }

func moduleVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/zeromicro/go-zero" {
			return module.Version
		}
	}
	return "unknown"
}

// must ends the program on an error. None is expected: the wheel is open, and /proc and stdout can be used.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
