// SPDX-License-Identifier: Apache-2.0
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
///   timer.on_earlier([wakeup] { eventfd_write(wakeup, 1); });   // the loop waits for `wakeup` too, with EPOLLET
///   for (auto next = timer.run_due(); !ended; next = timer.run_due()) {
///     const int ready = epoll_wait(epoll, events, 64, hwt::poll_timeout(next));
///     ...
///   }
///   ...
///   ended = true;   // on any thread
///   timer.stop();   // wakes the loop
///
/// Guarantees: those of Timer. Its clock is steady_clock, which goes on while the loop sleeps, so a delay counts from
/// the call. A task starts in the first run_due() after the end of its tick. If the loop waits for the eventfd without
/// EPOLLET, it must read the eventfd, or it spins.
/// Threads: any thread may call any member. Tasks run on the thread that calls run_due(), or in Options::executor.
/// Fork: both processes have the pending timeouts, and run their tasks. In the child, the first run_due() or
/// on_earlier() makes the timer the child's. Until then stop() returns nothing, the destructor releases nothing, and
/// objects that use the timer cancel nothing. At the fork no other thread may be in a task, or in a call of the timer,
/// of its Timeouts or of such an object. Otherwise the child may call only stop() and the destructor.
/// Not for: tests, which want a clock of their own (ManualTimer); an io_context (net::LoopTimer); a loop whose objects
/// can carry their timeout as a base class (PassiveWheel).
/// Source: the deadline queue inside libuv, libevent and Asio, opened to all threads.
class HWT_API LoopTimer final : public detail::DrivenTimer {
 public:
  /// Makes a timer with this tick. Throws std::invalid_argument for a tick of zero or less; std::bad_alloc;
  /// std::system_error if no pthread key is left.
  explicit LoopTimer(std::chrono::nanoseconds tick_duration = std::chrono::milliseconds(1));
  /// Makes a timer with these options. The wheel has 64 slots a level and ignores Options::ticks_per_wheel. Throws
  /// std::invalid_argument that names the option, its value and the valid range, also for a thread_factory;
  /// std::bad_alloc; std::system_error if no pthread key is left.
  explicit LoopTimer(const Options& options);
  /// Destroys pending callables and cancels TimerTasks. Must not race other calls on the timer, except calls on its
  /// Timeouts. May run inside a task; run_due() then ends after it.
  ~LoopTimer() override;

  /// Runs the due tasks in the order of ticks, at most `max_tasks`. Returns when to call it next, or none if no pending
  /// timeout will ever be due or the timer was stopped. That time is never later than the first due task. It has passed
  /// if something was left over. If a deadline was moved or is far away, the time may be too early, and there may be
  /// one although nothing will be due. A call takes the timeouts that are due when it begins, and up to some 10,000 or
  /// 20,000 of the others. So it returns even while other threads schedule and cancel without a pause. One thread at a
  /// time runs tasks; others wait. Throws IllegalState inside a task.
  std::optional<std::chrono::steady_clock::time_point> run_due(
      std::size_t max_tasks = (std::numeric_limits<std::size_t>::max)());

  /// Sets the function that wakes the loop, so that it calls run_due() again. A thread calls it when it makes something
  /// due before the time that run_due() last returned. It does so by scheduling, by rescheduling to an earlier time, or
  /// by cancelling a TimerTask, whose cancelled() runs in run_due(). There are other reasons: thousands of timeouts
  /// wait to be taken into the wheel, or thousands were cancelled, or memory can be returned to the system. With
  /// Options::max_pending_timeouts, the cancel of the last pending timeout is a reason too, so that run_due() then
  /// returns none.
  /// At most one such call is made until run_due() is called again, and it may turn out to be unnecessary. But if
  /// run_due() or stop() comes during a slow call, two threads may call the function at a time. If a task gives a
  /// reason, the call is made when run_due() has run all tasks. The stop() that ends the timer makes one more call,
  /// even if the loop does not sleep. From then on run_due() returns none. So a thread that tells the loop to end, and
  /// then calls stop(), wakes it. The library holds no lock during a call. So the function may use objects that share
  /// the timer, such as a KeyedTimer, even if a call of that object runs it. But it must not destroy the handle or the
  /// coroutine whose call runs it, and must not use a WheelTimer whose call runs it. The function must not throw, wait,
  /// destroy the timer, or call on_earlier(). An empty function ends the calls. The destructor makes none. The
  /// destructor and on_earlier() wait for a call on another thread. In addition, on_earlier() waits for a run_due() on
  /// another thread. It calls the new function itself if a stop() found no function, or if the loop would sleep past a
  /// timeout or a cancelled(). Another thread may call the function at the same time. So nothing is late if the
  /// function is replaced while the loop sleeps. Throws IllegalState inside a task.
  void on_earlier(std::function<void()> call) { DrivenTimer::on_earlier(std::move(call)); }
};

/// Returns the wait until `next` in milliseconds, for epoll_wait() and poll(). Rounds up, because the loop would spin
/// otherwise. Tasks are then up to 1 ms later: with ticks below 1 ms, use epoll_pwait2() or a timerfd. Returns 0 if
/// `next` has passed, and -1, for ever, if there is none. Reads the clock once.
HWT_API int poll_timeout(std::optional<std::chrono::steady_clock::time_point> next) noexcept;

}  // namespace hwt
