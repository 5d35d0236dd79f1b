#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hwt::perf {

/// Runs every operation many times, each kind inside a function of its own named "counted_" and the operation, so that
/// a tool that counts instructions by function can tell them apart. Returns how often each was run. The same
/// instructions every time: one thread at a time, no clock but where the operation reads it itself.
std::map<std::string, std::int64_t> run_counted();

/// What counting instructions does not show: cache lines that threads take from each other, and lines that are not in
/// the cache. Each figure is one CPU time divided by another of the same machine at the same time: both are measured in
/// turn in many short slices, and the ratio is the median of those slices that were interrupted least.
std::map<std::string, double> measure_ratios();

}  // namespace hwt::perf
