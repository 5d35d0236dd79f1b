// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

/// Returns a + b, or time_point::max() if the sum is beyond it.
std::chrono::steady_clock::time_point saturating_sum(std::chrono::steady_clock::time_point a,
                                                     std::chrono::nanoseconds b);

/// Computes the scheduled times of a schedule that is not a calendar. Pure arithmetic: it reads no clock.
///
/// The first occurrence comes `initial` after start(), and each gap leads to the next one. After the last gap the first
/// gap follows if the plan repeats, otherwise there is no further occurrence. With `from_end` the only gap counts from
/// the end of each run. The caller calls start() once, runs the job at at(), and calls next() after each run.
class Occurrences {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Preconditions: each gap is positive. If the plan repeats or counts from the end of a run, it has a gap. Throws
  /// std::bad_alloc.
  explicit Occurrences(const detail::SchedulePlan& plan);

  /// Awaits the first occurrence, which comes after the plan's initial delay.
  void start(time_point now) { at_ = saturating_sum(now, initial_); }

  /// Returns the time of the awaited occurrence.
  time_point at() const { return at_; }

  /// Advances to the occurrence after a run that lasted from `started` to `ended`. Returns false if there is none.
  bool next(time_point started, time_point ended);

 private:
  std::optional<time_point> following() const;
  bool has_passed(time_point passed) const;
  bool step();
  void skip_cycles(time_point passed);
  bool step_past(time_point passed);
  void step_to_last(time_point passed);

  std::chrono::nanoseconds initial_;
  std::vector<std::chrono::nanoseconds> gaps_;
  std::size_t next_gap_;
  bool repeat_;
  bool from_end_;
  CatchUp catch_up_;
  std::chrono::nanoseconds cycle_{};  // the sum of all gaps; max(): the sum does not fit
  time_point at_;                     // the awaited occurrence, or the latest one while its job runs
};

}  // namespace hwt::internal
