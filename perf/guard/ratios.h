#pragma once

#include <map>
#include <string>

namespace hwt::perf {

/// What counting instructions does not show: cache lines that threads take from each other, and lines that are not in
/// the cache. Each figure is one CPU time divided by another of the same machine at the same time: both are measured in
/// turn in many short slices, and the ratio is the median of those slices that were interrupted least.
std::map<std::string, double> measure_ratios();

}  // namespace hwt::perf
