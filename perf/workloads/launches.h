#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "perf/random.h"
#include "perf/workloads/fired.h"
#include "perf/workloads/producers.h"

namespace hwt::perf {

/// Schedules timeouts without keeping handles. Delays are random in [low, high] milliseconds, or `id` mod 1000 with
/// `in_turn`.
template <class Timer>
struct alignas(kCacheLine) Launcher {
  void run(std::int64_t n) {
    for (; n > 0; --n) {
      ++last_id;
      const std::int64_t delay = in_turn ? static_cast<std::int64_t>(last_id % 1000) : random.between(low, high);
      timer.launch(fired, last_id, std::chrono::milliseconds(delay));
    }
  }

  Timer& timer;
  Fired& fired;
  std::int64_t low;
  std::int64_t high;
  Random random;
  std::uint64_t last_id;
  bool in_turn = false;
};

template <class Timer>
Json measure_expire(const Options& options) {
  Fired fired(options.count);
  Timer timer(options.tick());
  std::vector<Launcher<Timer>> launchers;
  for (int t = 0; t < options.threads; ++t) {
    const Random random(options.seed + static_cast<std::uint64_t>(t));
    launchers.push_back({timer, fired, 1, 1000, random, first_id(t), options.in_turn});
  }
  Producers<Timer> producers(timer, options.threads);
  Json figures = measured(options, [&] {
    producers.run([&](int t) { return options.share(options.count, t); },
                  [&](int t, std::int64_t n) { launchers[static_cast<std::size_t>(t)].run(n); });
    fired.wait_for_all();
  });
  timer.stop();
  fired.add_counts(figures, options.count, 0, 0);
  return figures;
}

/// Schedules `pending` timeouts from one thread and waits until they are in the wheel.
template <class Timer>
void launch_pending(Timer& timer, Producers<Timer>& producers, Fired& fired, const Options& options, std::int64_t low,
                    std::int64_t high) {
  Launcher<Timer> launcher{timer, fired, low, high, Random(options.seed), first_id(0)};
  producers.run([&](int) { return options.pending; }, [&](int, std::int64_t n) { launcher.run(n); });
  timer.take_over();
}

template <class Timer>
Json measure_memory(const Options& options) {
  constexpr std::int64_t kHour = 3'600'000;
  Fired fired;
  Timer timer(options.tick());
  Producers<Timer> producers(timer, 1);
  const std::int64_t before = resident_bytes();
  launch_pending(timer, producers, fired, options, kHour, kHour);
  const std::int64_t bytes = resident_bytes() - before;
  timer.stop();
  return {{"bytes_per_timeout", static_cast<double>(bytes) / static_cast<double>(options.pending)}};
}

template <class Timer>
Json measure_idle(const Options& options) {
  Timer timer(options.tick());
  Json figures = at_rest(options);
  timer.stop();
  return figures;
}

template <class Timer>
Json measure_far(const Options& options) {
  Fired fired;
  Timer timer(options.tick());
  Producers<Timer> producers(timer, 1);
  launch_pending(timer, producers, fired, options, 600'000, 1'200'000);
  Json figures = at_rest(options);
  timer.stop();
  return figures;
}

}  // namespace hwt::perf
