#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/histogram.h"
#include "hashed_wheel_timer/stats.h"
#include "hashed_wheel_timer/timeout.h"
#include "hashed_wheel_timer/version.h"

namespace hwt {

namespace detail {
class AsyncWait;
}

/// What a framework programs against: runs a task once, after a delay, unless its Timeout is cancelled first. Made for
/// request timeouts: scheduled for every request, from any thread, and nearly all of them cancelled.
///
///   hwt::HashedWheelTimer timer{std::chrono::milliseconds(10)};
///   hwt::Timeout timeout = timer.new_timeout([id] { fail_request(id); }, 250ms);
///   ...
///   if (timeout.cancel()) deliver_answer(id);   // true: the task has not run and never will
///
/// Guarantees: never early by the timer's clock; a task runs at most once; a timeout ends in exactly one of expired,
/// cancelled, or returned by stop(). Compiles with -fno-exceptions and -fno-rtti.
/// Threads: any may call any member, tasks included, but for what stop() and the destructors say.
/// Not for: intervals shorter than a tick, alarms by the wall clock, or work that runs long on the worker thread.
/// Source: Netty's Timer.
class HWT_API Timer {
 public:
  /// Ends the timer: what is still pending is cancelled, see the classes. Must not race other calls on the timer; calls
  /// on its Timeouts may.
  virtual ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Runs `callable`, f(Timeout&) or f(), once after `delay`: a negative one is due now, one beyond the range of the
  /// clock is never. Starts the timer if need be.
  /// Throws IllegalState after stop(), RejectedExecution at max_pending_timeouts, std::invalid_argument for a null
  /// callable or a NaN delay, std::bad_alloc, std::system_error when the worker cannot be started, and what copying the
  /// callable throws; after any of them nothing more is pending, and no statistic but TimerStats::rejected has changed.
  template <class F>
    requires detail::TimeoutCallable<F>
  Timeout new_timeout(F&& callable, Delay delay) {
    return schedule_callable(std::forward<F>(callable), delay, OnRefusal::Throw);
  }

  /// The same for a shared task; null: std::invalid_argument.
  Timeout new_timeout(std::shared_ptr<TimerTask> task, Delay delay) {
    return schedule_shared(std::move(task), delay, OnRefusal::Throw);
  }

  /// As new_timeout, at a point of the timer's own clock: for who has the deadline at hand, since it came with the
  /// request, say. Reads no clock but to start the timer, and costs half as much. deadline() is what was passed. A
  /// deadline that has passed is due now, as a delay of zero is; time_point::max() is never. Throws what new_timeout()
  /// throws.
  template <class F>
    requires detail::TimeoutCallable<F>
  Timeout new_timeout_at(F&& callable, std::chrono::steady_clock::time_point deadline) {
    return schedule_callable(std::forward<F>(callable), deadline, OnRefusal::Throw);
  }

  /// The same for a shared task; null: std::invalid_argument.
  Timeout new_timeout_at(std::shared_ptr<TimerTask> task, std::chrono::steady_clock::time_point deadline) {
    return schedule_shared(std::move(task), deadline, OnRefusal::Throw);
  }

  /// As new_timeout, but every refusal, lack of memory and threads included, is a null handle instead of an exception:
  /// for code that is built without exceptions.
  template <class F>
    requires detail::TimeoutCallable<F>
  Timeout try_new_timeout(F&& callable, Delay delay) noexcept(std::is_nothrow_constructible_v<std::decay_t<F>, F>) {
    return schedule_callable(std::forward<F>(callable), delay, OnRefusal::ReturnNull);
  }

  /// The same for a shared task; null is refused too.
  // NOLINTNEXTLINE(bugprone-exception-escape): what throws does so only where it is told to.
  Timeout try_new_timeout(std::shared_ptr<TimerTask> task, Delay delay) noexcept {
    return schedule_shared(std::move(task), delay, OnRefusal::ReturnNull);
  }

  /// As new_timeout_at, but every refusal is a null handle, as it is of try_new_timeout().
  template <class F>
    requires detail::TimeoutCallable<F>
  Timeout try_new_timeout_at(F&& callable, std::chrono::steady_clock::time_point deadline) noexcept(
      std::is_nothrow_constructible_v<std::decay_t<F>, F>) {
    return schedule_callable(std::forward<F>(callable), deadline, OnRefusal::ReturnNull);
  }

  /// The same for a shared task; null is refused too.
  // NOLINTNEXTLINE(bugprone-exception-escape): as above.
  Timeout try_new_timeout_at(std::shared_ptr<TimerTask> task, std::chrono::steady_clock::time_point deadline) noexcept {
    return schedule_shared(std::move(task), deadline, OnRefusal::ReturnNull);
  }

  /// Ends the timer for good: no further task starts on the worker or goes to the executor, and new_timeout() refuses.
  /// Waits for a task that is running on the worker, not for the executor. Returns what was still pending, cancelled;
  /// of several concurrent calls one gets it and the others an empty vector, none before the worker has finished.
  /// Again: empty. Throws IllegalState when called from inside a task on the worker, std::bad_alloc (call it again).
  virtual std::vector<Timeout> stop() = 0;

  /// Scheduled and neither cancelled, expired (a running task is not pending) nor returned by stop(). One that ends on
  /// another thread may count for a moment after its handle tells so.
  virtual std::int64_t pending_timeouts() const noexcept = 0;

  /// The clock that deadlines are measured by.
  virtual std::chrono::steady_clock::time_point now() const noexcept = 0;

  /// Returns the counters as they are now. Any thread; it adds up the counters of all threads that use the timer. An
  /// implementation that counts nothing else returns the number of pending timeouts alone.
  virtual TimerStats stats() const noexcept;

  /// Returns how late timeouts were: of every expired one, the time at which the worker started to process its tick,
  /// minus its deadline. That includes the rest of the tick, the time until the system woke the worker, and the time
  /// that the ticks before took. It leaves out the tasks before it in its own tick, which TimerStats::last_lag
  /// includes. Tasks run by an executor are included; their queueing time is not. A timeout is counted before its task
  /// runs. Any thread; a copy of 2 kB. While timeouts expire, sum() and max() may be ahead of count(), never behind.
  /// Empty if an implementation does not measure it.
  virtual LatencyHistogram lateness() const noexcept;

 protected:
  /// What a refused call does: the new_timeout() functions throw, the try_ functions return a null handle.
  enum class OnRefusal : bool {
    Throw,       ///< the exception that new_timeout() names
    ReturnNull,  ///< no exception, none of the callable's own apart
  };

  /// For implementations.
  Timer() = default;

  /// One of the two points of entry for an implementation. `task.build` is called at most once. `delay` is not
  /// negative, and counts from now().
  virtual Timeout schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay, OnRefusal on_refusal) = 0;
  /// The other one. `deadline` may be any, a past one too.
  virtual Timeout schedule_at(const detail::TaskSource& task, std::chrono::steady_clock::time_point deadline,
                              OnRefusal on_refusal) = 0;

 private:
  friend class Sleep;
  friend class detail::AsyncWait;
  static Timeout refuse_argument(const char* what, OnRefusal on_refusal);

  // `when`: a Delay or a deadline.

  template <class F, class When>
  Timeout schedule_callable(F&& callable, When when, OnRefusal on_refusal) {
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
      return schedule_callable(&callable, when, on_refusal);
    } else {
      if (detail::is_null_callable(callable))
        return refuse_argument("new_timeout: task: null (expected: a callable)", on_refusal);
      return schedule_source(detail::source_of<F>(callable), when, on_refusal);
    }
  }
  Timeout schedule_source(const detail::TaskSource& task, Delay delay, OnRefusal on_refusal) {
    if (delay.is_nan()) return refuse_argument("new_timeout: delay: NaN (expected: a number)", on_refusal);
    return schedule(task, detail::not_negative(delay), on_refusal);
  }
  Timeout schedule_source(const detail::TaskSource& task, std::chrono::steady_clock::time_point deadline,
                          OnRefusal on_refusal) {
    return schedule_at(task, deadline, on_refusal);
  }
  Timeout schedule_shared(std::shared_ptr<TimerTask> task, Delay delay, OnRefusal on_refusal);
  Timeout schedule_shared(std::shared_ptr<TimerTask> task, std::chrono::steady_clock::time_point deadline,
                          OnRefusal on_refusal);
};

}  // namespace hwt
