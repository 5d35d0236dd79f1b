#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <optional>

#include "hashed_wheel_timer/detail/driven_timer.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/options.h"

namespace hwt {

/// A Timer without a thread and without a clock: the caller says how time passes. For tests, which then need not sleep,
/// and for simulations.
///
///   hwt::ManualTimer timer;
///   timer.new_timeout([] { retry(); }, 5s);
///   timer.advance(5s);   // retry() has run
///
/// Guarantees: those of Timer. A task runs at the first grid point, start + k * tick_duration, at or after its
/// deadline; a delay of zero or less, and a deadline that is not after now(), are due at the next grid point.
/// Threads: any may call any member; one at a time advances, others wait for it. Tasks run where advance() is called.
/// Not for: event loops. now() stands still between two calls, so a delay would count from the last wake-up of the loop
/// and end early: LoopTimer reads the real clock.
/// Source: compare folly's ManualTimekeeper.
class HWT_API ManualTimer final : public detail::DrivenTimer {
 public:
  /// The clock begins at zero: see advance_to(). Throws std::invalid_argument for a tick of zero or less;
  /// std::bad_alloc.
  explicit ManualTimer(std::chrono::nanoseconds tick_duration = std::chrono::milliseconds(1));
  /// The clock begins at `start`. `on_task_error` is that of Options. A timeout that is due more than 2^63 ticks after
  /// `start` never runs; such a span needs a start before the clock's zero and a tick of a nanosecond. Throws
  /// std::invalid_argument for a tick of zero or less; std::bad_alloc.
  ManualTimer(std::chrono::nanoseconds tick_duration, std::chrono::steady_clock::time_point start,
              std::function<void(std::exception_ptr, const Timeout&)> on_task_error = {});
  /// The clock begins at `start`, or at zero without one. A wheel has 64 slots a level, whatever
  /// Options::ticks_per_wheel is. The worker, in the comments of Options, is the thread that advances the timer;
  /// slow_task is measured by steady_clock. Throws std::invalid_argument that names the option, its value and the valid
  /// range, also for a thread_factory, since the timer has no thread; std::bad_alloc.
  explicit ManualTimer(const Options& options, std::optional<std::chrono::steady_clock::time_point> start = {});

  /// Destroys plain callables that are still pending and cancels TimerTasks. It must not race other calls on the timer,
  /// calls on its Timeouts excepted. It may run inside a task: then the advance() that runs the task ends after it.
  ~ManualTimer() override;

  /// Time passes tick by tick: inside a task, now() is the end of its tick, so that a task which schedules itself again
  /// for 1 s runs ten times in advance(10s). Returns how many tasks ran. Throws std::invalid_argument for a negative
  /// duration and for a NaN, IllegalState inside a task.
  std::size_t advance(Delay by);

  /// The clock jumps to `now`, then what is due runs, in the order of ticks, but no more than `max_tasks`; what they
  /// leave over runs at the next call, and may be joined by what was scheduled meanwhile without a delay, or for a time
  /// that had passed. Returns how many ran. A `now` before the timer's is taken as the timer's: time never goes back.
  /// A timer without a start refuses a first jump beyond next_wakeup(): delays have counted from zero, so a jump to the
  /// time of a real clock would end them all. Throws std::invalid_argument then, and nothing has changed; IllegalState
  /// inside a task.
  std::size_t advance_to(std::chrono::steady_clock::time_point now,
                         std::size_t max_tasks = std::numeric_limits<std::size_t>::max());

  /// Returns when to call advance_to() next, or none if nothing is pending. The time is never later than the first task
  /// is due. It is earlier where a deadline has been put off or is far away (nearer and nearer, some steps in all).
  /// Inside a task it is now(), whatever is pending. May call the cancelled() of tasks.
  std::optional<std::chrono::steady_clock::time_point> next_wakeup() const;

  /// Sets the function that a thread calls when it makes something due before the time that next_wakeup() last
  /// returned: for simulations that sleep until then. See LoopTimer::on_earlier(), with next_wakeup() in the place of
  /// run_due(). Throws IllegalState inside a task.
  void on_earlier(std::function<void()> call) { DrivenTimer::on_earlier(std::move(call)); }
};

}  // namespace hwt
