#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>

#include "hashed_wheel_timer/detail/driven_timer.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/options.h"

namespace hwt {

/// A Timer without a thread: an event loop runs its tasks. Any thread schedules and cancels.
///
///   hwt::LoopTimer timer{1ms};
///   timer.on_earlier([wakeup] { eventfd_write(wakeup, 1); });   // `wakeup` is among what the loop waits for
///   for (;;) {
///     const int ready = epoll_wait(epoll, events, 64, hwt::poll_timeout(timer.run_due()));
///     ...
///   }
///
/// Guarantees: those of Timer. Its clock is steady_clock, which goes on while the loop sleeps, so a delay counts from
/// the call. A task starts at the end of its tick, or when the loop next calls run_due().
/// Threads: any may call any member. Tasks run where run_due() is called, or in Options::executor.
/// Not for: tests, which want a clock of their own (ManualTimer); an io_context (net::LoopTimer); a loop whose objects
/// can carry their timeout as a base class (PassiveWheel).
/// Source: the deadline queue that libuv, libevent and Asio have inside, for all threads.
class HWT_API LoopTimer final : public detail::DrivenTimer {
 public:
  /// Throws std::invalid_argument for a tick of zero or less; std::bad_alloc.
  explicit LoopTimer(std::chrono::nanoseconds tick_duration = std::chrono::milliseconds(1));
  /// A wheel has 64 slots a level, whatever Options::ticks_per_wheel is. The worker, in the comments of Options, is the
  /// thread that calls run_due(). Throws std::invalid_argument that names the option, its value and the valid range,
  /// also for a thread_factory, since the timer has no thread; std::bad_alloc.
  explicit LoopTimer(const Options& options);
  /// Destroys plain callables that are still pending and cancels TimerTasks. It must not race other calls on the timer,
  /// calls on its Timeouts excepted. It may run inside a task: then run_due() ends after that task.
  ~LoopTimer() override;

  /// Runs what is due by now, in the order of ticks, but at most `max_tasks`. Returns when to call it next, or none if
  /// nothing is pending. That time is never later than the first task is due. It has passed if tasks were left over. It
  /// may be early where a deadline was put off or is far away.
  /// One thread at a time runs tasks; others wait. Throws IllegalState inside a task.
  std::optional<std::chrono::steady_clock::time_point> run_due(
      std::size_t max_tasks = std::numeric_limits<std::size_t>::max());

  /// Sets the function that wakes the loop, so that it calls run_due() again. A thread calls it when it makes something
  /// due before the time that run_due() last returned: it schedules, reschedules to an earlier time, or cancels a
  /// TimerTask, whose cancelled() then waits. Thousands of timeouts that wait to be taken into the wheel are another
  /// reason. At most one call is made until run_due() is called again; it may turn out to be in vain. A call that a
  /// task causes is made when run_due() has run all tasks. The call holds no lock of the library. It must not throw,
  /// wait, destroy the timer, or call on_earlier(). An empty function ends the calls. This function and the destructor
  /// wait for a call that is under way on another thread. Throws IllegalState inside a task.
  void on_earlier(std::function<void()> call) { DrivenTimer::on_earlier(std::move(call)); }
};

/// Returns the wait until `next` as epoll_wait() and poll() take it: milliseconds, rounded up so that the loop does not
/// spin through the last one; 0 if `next` has passed; -1, without end, for none. Reads the clock once.
HWT_API int poll_timeout(std::optional<std::chrono::steady_clock::time_point> next) noexcept;

}  // namespace hwt
