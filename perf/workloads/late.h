#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <latch>
#include <type_traits>
#include <vector>

#include "perf/random.h"
#include "perf/workloads/crowd.h"
#include "perf/workloads/fired.h"
#include "perf/workloads/process.h"
#include "perf/workloads/producers.h"

namespace hwt::perf {

/// Holds the deadline of each timeout, and its lateness after it has run. The timer's hand-over orders the two
/// accesses.
class Lateness {
 public:
  using Clock = std::chrono::steady_clock;
  static_assert(std::is_same_v<Clock::duration, std::chrono::nanoseconds>);

  explicit Lateness(std::int64_t count) : nanoseconds_(static_cast<std::size_t>(count)) {}

  void expect(std::uint64_t id, Clock::time_point deadline) { nanoseconds_[id] = deadline.time_since_epoch().count(); }

  void expired(std::uint64_t id) noexcept {
    nanoseconds_[id] = Clock::now().time_since_epoch().count() - nanoseconds_[id];
    if (++ran_ == nanoseconds_.size()) all_.count_down();
  }

  Json wait_for_figures() {
    all_.wait();
    std::sort(nanoseconds_.begin(), nanoseconds_.end());
    std::vector<double> quantiles;
    for (std::size_t permille = 0; permille <= 1000; ++permille) {
      quantiles.push_back(static_cast<double>(nanoseconds_[permille * (nanoseconds_.size() - 1) / 1000]) / 1000);
    }
    constexpr std::int64_t kUnit = 1;  // the resolution of the clock
    const auto in_time = std::lower_bound(nanoseconds_.begin(), nanoseconds_.end(), -kUnit);
    return {{"late_us", quantiles}, {"early", in_time - nanoseconds_.begin()}};
  }

 private:
  std::vector<std::int64_t> nanoseconds_;
  std::size_t ran_ = 0;
  std::latch all_{1};
};

/// If `far_threads` is not 0, this number of threads first schedule `pending` timeouts of an hour each. These threads
/// stay alive.
template <class Timer>
Json measure_late(const Options& options) {
  using std::chrono::microseconds;
  constexpr std::uint64_t kBurst = 100;
  Lateness lateness(options.count);
  Fired never;
  Timer timer(options.tick());
  Crowd crowd([&] {
    for (std::int64_t i = 0; i < options.pending; ++i) timer.launch(never, 0, std::chrono::hours(1));
  });
  for (int t = 0; t < options.far_threads; ++t) crowd.add_thread();
  Random random(options.seed);
  std::uint64_t id = 0;
  const auto count = static_cast<std::uint64_t>(options.count);
  run_every(timer, std::chrono::milliseconds(5), [&] {
    for (const std::uint64_t end = std::min(id + kBurst, count); id < end; ++id) {
      const microseconds delay(random.between(1'000, 21'000));
      lateness.expect(id, Lateness::Clock::now() + delay);
      timer.launch(lateness, id, delay);
    }
    return id < count;
  });
  Json figures = lateness.wait_for_figures();
  timer.stop();
  return figures;
}

}  // namespace hwt::perf
