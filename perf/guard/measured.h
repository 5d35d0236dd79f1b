#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hwt::perf {

/// Runs each operation many times inside a function named "counted_" and the operation, so that a tool can count its
/// instructions. Returns how often each was run. The instructions are equal in every run: one thread at a time, and no
/// clock except in the operation.
std::map<std::string, std::int64_t> run_counted();

/// Measures the effects of shared cache lines and of cache misses, which counts of instructions do not show. Each
/// figure is a ratio of two CPU times that were measured in turn in many short slices. The result is the median of the
/// slices that were interrupted least.
std::map<std::string, double> measure_ratios();

}  // namespace hwt::perf
