// Runner of the workloads on go-zero's TimingWheel.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

const (
	name       = "go-zero"
	usageError = 2
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--describe" {
		fmt.Println(description().json())
		return
	}
	o, err := parseOptions(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(usageError)
	}
	run(o)
}

func run(o options) {
	for range o.warmup {
		o.workload.measure(o)
	}
	for round := 1; round <= o.rounds; round++ {
		f := append(description(), figures{
			{"workload", o.workload.title},
			{"threads", o.threads},
			{"tick_ms", o.tickMs},
			{"pending", o.pending},
			{"count", o.count},
			{"seed", o.seed},
			{"round", round},
		}...)
		f = append(f, o.workload.measure(o)...)
		if note := noteFor(o.workload.title); note != "" {
			f = append(f, figure{"note", note})
		}
		if o.json {
			fmt.Println(f.json())
		} else {
			fmt.Println(f.line())
		}
	}
}

// noteFor is what a reader of the workload's figures has to know.
func noteFor(workload string) string {
	switch workload {
	case "churn", "touch":
		return "a cancel does not tell whether it won"
	case "idle", "far":
		return "wake-ups of all threads of the runtime but the measuring one"
	case "late":
		return "delays are cut to whole ticks"
	}
	return ""
}

func description() figures {
	return figures{
		{"runner", name},
		{"version", peerVersion()},
		{"runtime", "Go " + strings.TrimPrefix(runtime.Version(), "go")},
	}
}

func peerVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == modulePath {
				return module.Version
			}
		}
	}
	return "unknown"
}
