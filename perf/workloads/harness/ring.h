#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness/figures.h"
#include "harness/fired.h"
#include "harness/options.h"
#include "harness/producers.h"
#include "harness/stopwatch.h"

namespace perf {

inline constexpr std::chrono::seconds kRingDelay(600);
inline constexpr std::size_t kCacheLine = 64;

/// The id before the first one of thread t.
inline std::uint64_t first_id(int t) { return static_cast<std::uint64_t>(t) << 40; }

/// Cancels that have won.
struct Cancelled {
  std::int64_t count = 0;
  std::uint64_t sum = 0;

  void add(std::uint64_t id) {
    ++count;
    sum += id;
  }
};

/// A workload in which each thread has a Ring: fill(n), run(n) and drain(n) are its operations, scheduled() and
/// cancelled() what it has done.
template <class Timer, class Ring>
OperationFigures measure_rings(const Options& options, std::int64_t (*ring_size)(const Options&, int t)) {
  Fired fired;
  Timer timer(options.tick);
  std::vector<std::unique_ptr<Ring>> rings;
  for (int t = 0; t < options.threads; ++t) {
    rings.push_back(std::make_unique<Ring>(timer, fired, t, ring_size(options, t), options.seed));
  }
  Producers<Timer> producers(timer, options.threads);
  const StopAtEnd<Timer> stop_at_end(timer);
  const auto size = [&](int t) { return ring_size(options, t); };

  producers.run(size, [&](int t, std::int64_t n) { rings[static_cast<std::size_t>(t)]->fill(n); });
  timer.take_over();

  OperationFigures figures;
  const Stopwatch stopwatch;
  producers.run_divided(options.count, [&](int t, std::int64_t n) { rings[static_cast<std::size_t>(t)]->run(n); });
  figures.wall = stopwatch.wall();
  let_catch_up(options.tick);
  figures.cpu = stopwatch.cpu();

  producers.run(size, [&](int t, std::int64_t n) { rings[static_cast<std::size_t>(t)]->drain(n); });
  timer.stop();
  figures.operations = options.count;
  figures.fired = fired.count();
  figures.fired_sum = fired.sum();
  for (const auto& ring : rings) {
    figures.scheduled += ring->scheduled();
    figures.cancelled += ring->cancelled().count;
    figures.cancelled_sum += ring->cancelled().sum;
  }
  return figures;
}

}  // namespace perf
