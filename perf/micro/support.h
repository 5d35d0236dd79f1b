#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>

namespace hwt::perf {

/// Says how many operations were measured: their rate, and the time of each.
inline void count(benchmark::State& state, std::int64_t operations) {
  state.SetItemsProcessed(operations);
  state.counters["each"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace hwt::perf
