#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "harness/figures.h"
#include "harness/launcher.h"
#include "harness/options.h"
#include "harness/process.h"
#include "harness/producers.h"
#include "harness/stopwatch.h"

namespace perf {

/// idle and far: what a timer does when nothing is due, with `pending` timeouts.
template <class Timer>
RestFigures measure_rest(const Options& options) {
  using std::chrono::milliseconds;
  Fired fired;
  Timer timer(options.tick);
  Producers<Timer> producers(timer, 1);
  const StopAtEnd<Timer> stop_at_end(timer);
  if (options.pending > 0) {
    Launcher<Timer, milliseconds> launcher(timer, fired, 0, options.seed, std::chrono::seconds(600),
                                           std::chrono::seconds(1200));
    producers.run_divided(options.pending, [&](int, std::int64_t n) { launcher.run(n); });
    timer.take_over();
  }
  std::this_thread::sleep_for(2 * options.tick + milliseconds(500));

  // The files of the threads are read outside of the CPU time.
  const auto wakeups_before = wakeups_of_other_threads();
  const Stopwatch stopwatch;
  std::this_thread::sleep_for(options.seconds);
  const std::chrono::duration<double, std::milli> cpu = stopwatch.cpu();
  const std::chrono::duration<double> wall = stopwatch.wall();
  const auto wakeups_after = wakeups_of_other_threads();

  RestFigures figures;
  figures.cpu_ms_per_s = cpu.count() / wall.count();
  if (wakeups_before && wakeups_after) {
    figures.wakeups_per_s = static_cast<double>(*wakeups_after - *wakeups_before) / wall.count();
  }
  return figures;
}

}  // namespace perf
