package main

import "strings"

// A workload measures one round with a fresh timer.
type workload struct {
	title    string
	defaults options
	measure  func(options) figures
}

func workloads() []workload {
	return []workload{
		{"churn", options{threads: 1, tickMs: 1, count: 5_000_000, pending: 1_000}, measureChurn},
		{"expire", options{threads: 1, tickMs: 1, count: 6_000_000}, measureExpire},
		{"memory", options{tickMs: 100, pending: 2_000_000}, measureMemory},
		{"idle", options{tickMs: 1, seconds: 5}, measureIdle},
		{"far", options{tickMs: 1, pending: 1_000_000, seconds: 5}, measureFar},
		{"late", options{tickMs: 1, count: 20_000}, measureLate},
		{"touch", options{threads: 1, tickMs: 1, pending: 100_000, count: 5_000_000}, measureTouch},
	}
}

func findWorkload(title string) (*workload, bool) {
	for _, w := range workloads() {
		if w.title == title {
			return &w, true
		}
	}
	return nil, false
}

func workloadTitles() string {
	var titles []string
	for _, w := range workloads() {
		titles = append(titles, w.title)
	}
	return strings.Join(titles, ", ")
}
