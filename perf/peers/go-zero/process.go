package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime returns the user and system time of all threads of the process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measured measures the time of operations. The CPU time includes a rest, in which the timer catches up.
func measured(o options, operations int, work func()) figures {
	cpu, start := cpuTime(), time.Now()
	work()
	wall := time.Since(start)
	time.Sleep(2*o.tick() + 50*time.Millisecond)
	cpu = cpuTime() - cpu
	return figures{
		"operations":     operations,
		"cpu_ns_per_op":  float64(cpu) / float64(operations),
		"wall_ns_per_op": float64(wall) / float64(operations),
		"wall_ms":        wall.Seconds() * 1000,
	}
}

// atRest measures the process while no timeout is due.
func atRest(o options) figures {
	// One thread measures throughout, so that its own wake-ups can be left out.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	time.Sleep(2*o.tick() + 500*time.Millisecond)
	wakeups, cpu, start := countWakeups(), cpuTime(), time.Now()
	time.Sleep(time.Duration(o.seconds) * time.Second)
	cpu = cpuTime() - cpu
	seconds := time.Since(start).Seconds()
	return figures{
		"cpu_ms_per_s":  cpu.Seconds() * 1000 / seconds,
		"wakeups_per_s": float64(countWakeups()-wakeups) / seconds,
	}
}

// countWakeups sums the voluntary context switches of all threads except the calling one. Goroutines have no own
// threads, so the wheel's cannot be told from the runtime's.
func countWakeups() int {
	total := 0
	tasks, err := os.ReadDir("/proc/self/task")
	must(err)
	for _, task := range tasks {
		status, err := os.ReadFile(filepath.Join("/proc/self/task", task.Name(), "status"))
		if task.Name() == strconv.Itoa(syscall.Gettid()) || errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended
		}
		must(err)
		_, field, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
		switches := 0
		_, err = fmt.Sscan(field, &switches)
		must(err)
		total += switches
	}
	return total
}

func liveBytes() float64 {
	// The second collection completes the sweep of the first and frees objects with finalizers.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
