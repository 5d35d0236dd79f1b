#pragma once

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "perf/random.h"

namespace hwt::perf {

using Benchmark = benchmark::internal::Benchmark;

/// Reports the rate of the operations and the time of one.
inline void count(benchmark::State& state, std::int64_t operations) {
  state.SetItemsProcessed(operations);
  state.counters["each"] =
      benchmark::Counter(static_cast<double>(operations), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Measures `step`, which consists of `operations` operations.
inline void repeat(benchmark::State& state, auto&& step, std::int64_t operations = 1) {
  for (auto _ : state) step();
  count(state, state.iterations() * operations);
}

/// The timer of a benchmark, shared by its threads.
inline std::unique_ptr<HashedWheelTimer> timer;

inline void drop_timer(const benchmark::State&) { timer.reset(); }

/// Gives the benchmark a timer with ticks of 1 ms.
inline void with_timer(Benchmark* benchmark) {
  benchmark->Teardown(drop_timer)->Setup([](const benchmark::State&) {
    timer = std::make_unique<HashedWheelTimer>(std::chrono::milliseconds(1));
  });
}

/// Runs the benchmark with 1, 2 and 4 threads.
inline void with_threads(Benchmark* benchmark) { benchmark->Threads(1)->Threads(2)->Threads(4); }

/// Returns delays in random order, from 1 to `most` units.
template <class Unit>
std::vector<Unit> random_delays(std::int64_t most, std::size_t number = 4096) {
  std::vector<Unit> delays;
  Random random(1);
  while (delays.size() < number) delays.emplace_back(random.between(1, most));
  return delays;
}

/// Returns `place` + 1 in a ring of this size.
inline std::size_t next_in_ring(std::size_t place, std::size_t size) { return place + 1 == size ? 0 : place + 1; }

}  // namespace hwt::perf
