#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

using Jitter = std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)>;

/// Adds the current exception to those of one task. Only one can leave the task, so the earlier is nested in the later.
void add_current_exception(std::exception_ptr& all) noexcept;

/// When the runs of a schedule are due. It calls functions of the user, so no lock is held meanwhile; one thread at a
/// time. `errors` takes what those throw; the schedule goes on all the same.
class Timetable {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  struct Wait {
    std::optional<time_point> due;   // when the run is expected; none: not known
    std::chrono::nanoseconds delay;  // until then, or until is_due() is to be asked
    bool made_up = false;            // it has passed, and is to run at once instead of at the next tick
  };

  virtual ~Timetable();

  /// Returns the wait for the first run, or nothing if there is none. Passes on exceptions of the user's functions.
  virtual std::optional<Wait> first(time_point now) = 0;
  /// Called when a wait is over. If it returns false, wait_on() returns how much longer to wait, or nothing if there is
  /// no run any more.
  virtual bool is_due(std::exception_ptr& errors) = 0;
  virtual std::optional<Wait> wait_on(time_point now, std::exception_ptr& errors) = 0;
  /// Returns nothing after the last run.
  virtual std::optional<Wait> after_run(time_point started, time_point ended, std::exception_ptr& errors) = 0;
};

std::unique_ptr<Timetable> make_timetable(const detail::SchedulePlan& plan);

}  // namespace hwt::internal
