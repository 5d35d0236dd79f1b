#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class ManualEngine;
}

/// A Timer without a thread, whose time is what the caller says: a test advances it, an event loop feeds it its clock.
///
///   hwt::ManualTimer timer;
///   timer.new_timeout([] { retry(); }, 5s);
///   timer.advance(5s);   // retry() has run
///
/// Guarantees: those of Timer. A task runs at the first grid point, start + k * tick_duration, at or after its
/// deadline; a delay of zero or less, and a deadline that is not after now(), are due at the next grid point.
/// Threads: any may call any member; one at a time advances, others wait for it. Tasks run where advance() is called.
/// Not for: one thread whose objects can carry their timeout as a base class: PassiveWheel allocates nothing for them.
/// Source: compare folly's ManualTimekeeper.
class HWT_API ManualTimer final : public Timer {
 public:
  /// Throws std::invalid_argument for a tick of zero or less; std::bad_alloc. `on_task_error` as in Options.
  /// What is due more than 2^63 ticks after `start` never runs. (That takes a start before the clock's zero, and a tick
  /// of a nanosecond.)
  explicit ManualTimer(std::chrono::nanoseconds tick_duration = std::chrono::milliseconds(1),
                       std::chrono::steady_clock::time_point start = {},
                       std::function<void(std::exception_ptr, const Timeout&)> on_task_error = {});

  /// Plain callables that are still pending are destroyed, TimerTasks are cancelled. Like any destructor it must not
  /// race other calls on the timer, calls on its Timeouts excepted. May run inside a task: then the advance() that runs
  /// it ends after that task.
  ~ManualTimer() override;

  /// Time passes tick by tick: inside a task, now() is the end of its tick, so that a task which schedules itself again
  /// for 1 s runs ten times in advance(10s). Returns how many tasks ran. Throws std::invalid_argument for a negative
  /// duration and for a NaN, IllegalState inside a task.
  std::size_t advance(Delay by);

  /// The clock jumps to `now`, then what is due runs, in the order of ticks, but no more than `max_tasks`; what they
  /// leave over runs at the next call, and may be joined by what was scheduled meanwhile without a delay, or for a time
  /// that had passed. Returns how many ran. A `now` before the timer's is taken as the timer's: time never goes back.
  /// Throws IllegalState inside a task.
  std::size_t advance_to(std::chrono::steady_clock::time_point now,
                         std::size_t max_tasks = std::numeric_limits<std::size_t>::max());

  /// When to call advance_to() next: never later than the first task is due, so it is safe as the timeout of an epoll
  /// wait; earlier where a deadline has been put off or is far away (nearer and nearer, some steps in all). None when
  /// nothing is pending. Inside a task it is now(), whatever is pending. May call the cancelled() of tasks.
  std::optional<std::chrono::steady_clock::time_point> next_wakeup() const;

  /// For a loop that sleeps until next_wakeup() while other threads use the timer: `call` is to wake it, so that it
  /// asks again. It is called by the thread that makes something due before what next_wakeup() last said, or where that
  /// said none: which schedules, reschedules to an earlier time, or cancels a TimerTask, whose cancelled() waits then.
  /// And now and then for nothing but memory, when thousands of timeouts wait to be taken into the wheel. At most once
  /// until next_wakeup() is asked again (this asks it, too), and perhaps in vain. Null: nobody is called. The library
  /// holds no lock meanwhile; inside a task, the call is made when advance() or advance_to() ends. It must not throw,
  /// wait, destroy the timer, or call on_earlier(). The destructor waits for a call by another thread, and none begins
  /// after it. Throws IllegalState inside a task.
  void on_earlier(std::function<void()> call);

  /// See Timer. After it nothing runs, but time may still pass. Waits for the advance() of another thread, which ends
  /// after its present task.
  std::vector<Timeout> stop() override;
  std::int64_t pending_timeouts() const noexcept override;
  std::chrono::steady_clock::time_point now() const noexcept override;

 protected:
  Timeout schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay, OnRefusal on_refusal) override;
  Timeout schedule_at(const detail::TaskSource& task, std::chrono::steady_clock::time_point deadline,
                      OnRefusal on_refusal) override;

 private:
  std::shared_ptr<internal::ManualEngine> engine_;  // an advance() keeps it: the timer may go inside one of its tasks
};

}  // namespace hwt
