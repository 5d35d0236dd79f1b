#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <latch>
#include <type_traits>
#include <vector>

#include "harness/figures.h"
#include "harness/options.h"
#include "harness/producers.h"
#include "harness/splitmix64.h"

namespace perf {

/// Of each timeout first its deadline, and when it has run how late it was. The timer's own hand-over orders the two.
class Lateness {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Lateness(std::int64_t count) : nanoseconds_(static_cast<std::size_t>(count)) {}

  void expect(std::uint64_t id, Clock::time_point deadline) {
    nanoseconds_[id - 1] = deadline.time_since_epoch().count();
  }

  void expired(std::uint64_t id) noexcept {
    nanoseconds_[id - 1] = Clock::now().time_since_epoch().count() - nanoseconds_[id - 1];
    if (++ran_ == static_cast<std::int64_t>(nanoseconds_.size())) all_.count_down();
  }

  LateFigures wait_for_figures() {
    all_.wait();
    std::vector<std::int64_t> sorted = nanoseconds_;
    std::sort(sorted.begin(), sorted.end());
    LateFigures figures;
    for (std::size_t permille = 0; permille <= 1000; ++permille) {
      const std::size_t at = permille * (sorted.size() - 1) / 1000;
      figures.late_us.push_back(static_cast<double>(sorted[at]) / 1000);
    }
    constexpr std::int64_t kUnit = 1;  // of the clock
    figures.early = std::lower_bound(sorted.begin(), sorted.end(), -kUnit) - sorted.begin();
    return figures;
  }

 private:
  static_assert(std::is_same_v<Clock::duration, std::chrono::nanoseconds>);

  std::vector<std::int64_t> nanoseconds_;
  std::int64_t ran_ = 0;
  std::latch all_{1};
};

template <class Timer>
LateFigures measure_late(const Options& options) {
  using std::chrono::microseconds;
  constexpr std::uint64_t kBurst = 100;
  constexpr std::chrono::milliseconds kInterval(5);
  Lateness lateness(options.count);
  Timer timer(options.tick);
  const StopAtEnd<Timer> stop_at_end(timer);

  SplitMix64 random(options.seed);
  std::uint64_t id = 0;
  const auto count = static_cast<std::uint64_t>(options.count);
  run_every(timer, kInterval, [&] {
    for (const std::uint64_t end = std::min(id + kBurst, count); id < end;) {
      const microseconds delay(random.between(1'000, 21'000));
      ++id;
      lateness.expect(id, Lateness::Clock::now() + delay);
      timer.launch(lateness, id, delay);
    }
    return id < count;
  });
  return lateness.wait_for_figures();
}

}  // namespace perf
