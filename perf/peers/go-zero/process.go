package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime is the process's, user and system, of all threads.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// countWakeups sums the voluntary context switches of all threads but the calling one: goroutines have no thread of
// their own by which the wheel's could be told from the runtime's.
func countWakeups() int {
	total := 0
	tasks, err := os.ReadDir("/proc/self/task")
	must(err)
	for _, task := range tasks {
		if task.Name() == strconv.Itoa(syscall.Gettid()) {
			continue
		}
		status, err := os.ReadFile(filepath.Join("/proc/self/task", task.Name(), "status"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // the thread has ended meanwhile
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
