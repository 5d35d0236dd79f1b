// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

/// Returns a + b. Returns time_point::max() if the sum is beyond it, or if `b` is nanoseconds::max(), which is never
/// over.
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

using Jitter = std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)>;

/// Adds the current exception to `all`. Only one exception can leave a task. So a second one becomes a
/// std::runtime_error with its text, in which the earlier one is nested.
void add_current_exception(std::exception_ptr& all) noexcept;

/// Computes when the runs of a schedule are due. The caller calls first() once. After each wait it calls is_due(). If
/// the run is due, it makes the run and calls after_run(), otherwise wait_on(). Each returns the next wait.
///
/// Calls functions of the user, so the caller must hold no lock. Their exceptions are added to `errors`, and the
/// schedule goes on. One thread at a time.
class Timetable {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct Wait {
    std::optional<time_point> due;   // when the run is expected; empty: unknown
    std::chrono::nanoseconds delay;  // until the run, or until the next call of is_due()
    bool at_once = false;            // the run is overdue, and does not wait for the next tick
  };

  virtual ~Timetable();

  /// Returns the wait for the first run, or nothing if there is none. Throws exceptions of the user's functions.
  virtual std::optional<Wait> first(time_point now) = 0;
  /// Returns whether the run is due. Called when a wait is over. If it is not due, wait_on() returns the next wait, or
  /// nothing if there is no further run.
  virtual bool is_due(std::exception_ptr& errors) = 0;
  virtual std::optional<Wait> wait_on(time_point now, std::exception_ptr& errors) = 0;
  /// Returns the wait for the next run, or nothing after the last run.
  virtual std::optional<Wait> after_run(time_point started, time_point ended, std::exception_ptr& errors) = 0;
};

/// Makes the timetable of a plan: of its rule if it has one, otherwise of its gaps. Throws std::bad_alloc. Passes on
/// exceptions of copying the plan's functions.
std::unique_ptr<Timetable> make_timetable(const detail::SchedulePlan& plan);

}  // namespace hwt::internal
