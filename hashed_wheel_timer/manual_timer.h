// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <optional>

#include "hashed_wheel_timer/detail/driven_timer.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/point.h"
#include "hashed_wheel_timer/options.h"

namespace hwt {

/// A Timer without a thread, whose clock stands still: the caller decides how time passes. It is made for tests, which
/// then need not sleep, and for simulations. The clock begins at the present time of steady_clock, so that deadlines of
/// the program come, unless a simulation gives a start.
///
///   hwt::ManualTimer timer;
///   timer.new_timeout([] { retry(); }, 5s);
///   timer.advance(5s);   // retry() has run
///
/// Guarantees: those of Timer. A task runs at the first grid point, start + k * tick_duration, at or after its
/// deadline. A delay of zero or less, and a deadline that is not after now(), are due at the next grid point.
/// Threads: any thread may call any member. One thread at a time advances, and others wait for it. Tasks run on the
/// thread that calls advance(), or in Options::executor.
/// Fork: both processes have the pending timeouts, and run their tasks. In the child, the first advance(),
/// advance_to(), next_wakeup() or on_earlier() makes the timer the child's. Until then stop() returns nothing, the
/// destructor releases nothing, and objects that use the timer cancel nothing. At the fork no other thread may be in a
/// task, or in a call of the timer, of its Timeouts or of such an object. Otherwise the child may call only stop() and
/// the destructor.
/// Not for: event loops. now() stands still between two calls, so a delay would count from the last wake-up of the loop
/// and end early. LoopTimer reads the real clock.
/// Source: compare folly's ManualTimekeeper.
class HWT_API ManualTimer final : public detail::DrivenTimer {
 public:
  /// Makes a timer whose clock begins at steady_clock::now(). Throws std::invalid_argument for a tick of zero or less;
  /// std::bad_alloc; std::system_error if no pthread key is left.
  explicit ManualTimer(std::chrono::nanoseconds tick_duration = std::chrono::milliseconds(1));
  /// Makes a timer whose clock begins at `start`, for simulations. `on_task_error` is that of Options. A timeout that
  /// is due more than 2^63 ticks after `start` never runs; that takes a start before the clock's zero and a tick of a
  /// nanosecond. Throws std::invalid_argument for a tick of zero or less; std::bad_alloc; std::system_error if no
  /// pthread key is left.
  ManualTimer(std::chrono::nanoseconds tick_duration, detail::PresentTime start,
              std::function<void(std::exception_ptr, const Timeout&)> on_task_error = {});
  /// Makes a timer with these options, whose clock begins at `start`, or at steady_clock::now(). The wheel has 64 slots
  /// a level and ignores Options::ticks_per_wheel. slow_task is measured by steady_clock. Throws std::invalid_argument
  /// that names the option, its value and the valid range, also for a thread_factory; std::bad_alloc; std::system_error
  /// if no pthread key is left.
  explicit ManualTimer(const Options& options, std::optional<detail::PresentTime> start = {});

  /// Destroys pending callables and cancels TimerTasks. Must not race other calls on the timer, except calls on its
  /// Timeouts. May run inside a task; the advance() that runs the task then ends after it.
  ~ManualTimer() override;

  /// Passes time tick by tick, runs the due tasks and returns their number. Inside a task now() is the end of its tick:
  /// a task that schedules itself again for 1 s runs ten times in advance(10s). Throws std::invalid_argument for a
  /// negative duration and for a NaN, IllegalState inside a task.
  std::size_t advance(Delay by);

  /// Sets the clock to `now`, runs the due tasks in the order of ticks, at most `max_tasks`, and returns their number.
  /// A `now` before the timer's time counts as that time: time never goes back.
  /// Left-over tasks run at the next call. Timeouts that were scheduled meanwhile without a delay, or for a time that
  /// had passed, may run with them.
  /// Throws IllegalState inside a task.
  std::size_t advance_to(detail::PresentTime now, std::size_t max_tasks = (std::numeric_limits<std::size_t>::max)());

  /// Returns when to call advance_to() next, or none if no pending timeout will ever be due. The time is never later
  /// than the first due task. It may be earlier, and a time instead of none, if a deadline was moved or is far away. It
  /// is now() if this call has made a cancelled() that cancelled another task, whose cancelled() comes next. Then a few
  /// such calls lead to the first due task. Returns now() inside a task. Waits for a thread that advances. May call the
  /// cancelled() of tasks.
  std::optional<std::chrono::steady_clock::time_point> next_wakeup() const;

  /// Sets the function that a thread calls when it makes something due before the time that next_wakeup() last
  /// returned, and that stop() calls. It is for simulations that sleep until then. See LoopTimer::on_earlier(), with
  /// next_wakeup() in the place of run_due(). Throws IllegalState inside a task.
  void on_earlier(std::function<void()> call) { DrivenTimer::on_earlier(std::move(call)); }
};

}  // namespace hwt
