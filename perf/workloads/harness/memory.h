#pragma once

#include <chrono>
#include <cstdint>

#include "harness/child_process.h"
#include "harness/figures.h"
#include "harness/launcher.h"
#include "harness/options.h"
#include "harness/process.h"
#include "harness/producers.h"

namespace perf {

template <class Timer>
double bytes_per_timeout(const Options& options) {
  using std::chrono::hours;
  Fired fired;
  Timer timer(options.tick);
  Producers<Timer> producers(timer, 1);
  const StopAtEnd<Timer> stop_at_end(timer);
  Launcher<Timer, hours> launcher(timer, fired, 0, options.seed, hours(1), hours(1));

  const std::int64_t before = resident_bytes();
  producers.run_divided(options.pending, [&](int, std::int64_t n) { launcher.run(n); });
  timer.take_over();
  return static_cast<double>(resident_bytes() - before) / static_cast<double>(options.pending);
}

/// Each round in a process of its own, so that none has memory of the one before.
template <class Timer>
MemoryFigures measure_memory(const Options& options) {
  return {in_child_process([&] { return bytes_per_timeout<Timer>(options); })};
}

}  // namespace perf
