// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/time/request_clock.h"

namespace hwt::internal {

/// The clock by which an engine finds the due ticks. In a ManualTimer it is the time that the caller gives, and
/// otherwise a WorkerClock. Writes one line when the cycle counter has proved wrong. The thread that turns the wheel
/// uses it.
class EngineClock {
 public:
  explicit EngineClock(Core& core) noexcept
      : core_(core), counts_cycles_(core.cycles().wanted()), clock_(core.cycles()) {}

  /// Returns the present time. It goes back when the counter proves wrong.
  std::int64_t now() noexcept {
    if (!core_.reads_steady_clock()) return core_.now();
    const std::int64_t now = clock_.now();
    if (counts_cycles_ && !core_.cycles().wanted()) [[unlikely]]
      tell_that_clocks_disagree();
    return now;
  }
  /// Returns the time of Core::now() at which now() will return `time`. By this clock, lateness() and last_lag include
  /// CycleRate::behind().
  std::int64_t steady(std::int64_t time) const noexcept { return clock_.steady(time); }

 private:
  [[gnu::cold]] void tell_that_clocks_disagree() noexcept {
    counts_cycles_ = false;
    std::array<char, 160> line;
    std::snprintf(line.data(), line.size(),
                  "the cycle counter and steady_clock disagree; the timer reads steady_clock from now on, and runs all "
                  "tasks %.3f ms later",
                  static_cast<double>(core_.cycles().behind()) / 1e6);
    warn(line.data());
  }

  Core& core_;
  bool counts_cycles_;
  WorkerClock clock_;
};

}  // namespace hwt::internal
