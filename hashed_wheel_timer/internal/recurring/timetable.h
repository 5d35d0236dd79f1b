// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

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
