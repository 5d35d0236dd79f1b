#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "harness/figures.h"
#include "harness/launcher.h"
#include "harness/options.h"
#include "harness/producers.h"
#include "harness/stopwatch.h"

namespace perf {

template <class Timer>
OperationFigures measure_expire(const Options& options) {
  using std::chrono::milliseconds;
  using Launch = Launcher<Timer, milliseconds>;
  Fired fired(options.count);
  Timer timer(options.tick);
  std::vector<std::unique_ptr<Launch>> launchers;
  for (int t = 0; t < options.threads; ++t) {
    launchers.push_back(std::make_unique<Launch>(timer, fired, t, options.seed, milliseconds(1), milliseconds(1000)));
  }
  Producers<Timer> producers(timer, options.threads);
  const StopAtEnd<Timer> stop_at_end(timer);

  OperationFigures figures;
  const Stopwatch stopwatch;
  producers.run_divided(options.count, [&](int t, std::int64_t n) { launchers[static_cast<std::size_t>(t)]->run(n); });
  fired.wait_for_all();
  figures.wall = stopwatch.wall();
  let_catch_up(options.tick);
  figures.cpu = stopwatch.cpu();

  timer.stop();
  figures.operations = options.count;
  figures.scheduled = options.count;
  figures.fired = fired.count();
  figures.fired_sum = fired.sum();
  return figures;
}

}  // namespace perf
