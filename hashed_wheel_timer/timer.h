// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/scheduled.h"
#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/histogram.h"
#include "hashed_wheel_timer/leeway.h"
#include "hashed_wheel_timer/origin.h"
#include "hashed_wheel_timer/stats.h"
#include "hashed_wheel_timer/timeout.h"
#include "hashed_wheel_timer/timeout_id.h"
#include "hashed_wheel_timer/version.h"
#include "hashed_wheel_timer/when.h"

namespace hwt {

class Timer;

namespace internal {
class Core;
}

namespace detail {

class UsedTimer;

/// Schedules, and starts the timer if it was not started. For schedule_named().
/// Throws what starting the timer and building the task throw.
HWT_API Scheduled schedule(Timer& timer, const TaskSource& task, When when);

/// Schedules after schedule() has returned Untraced. `name` is the origin. Throws what building the task throws.
HWT_API Scheduled schedule_traced(Timer& timer, const TaskSource& task, When when, const char* name);

/// Schedules, with a constant name as the origin.
inline Scheduled schedule_named(Timer& timer, const TaskSource& task, When when, const char* name) {
  const Scheduled scheduled = schedule(timer, task, when);
  if (scheduled.result() == Result::Untraced) [[unlikely]]
    return schedule_traced(timer, task, when, name);
  return scheduled;
}

/// Throws what Timer::new_timeout() and Timer::add() throw for a refusal. `caller` is the name of the function.
[[noreturn]] HWT_API void raise(Scheduled refused, const char* caller = "new_timeout");

}  // namespace detail

/// Runs a task once, after a delay, unless its Timeout is cancelled first. This is the interface that a framework
/// takes. It is made for request timeouts, which any thread schedules and nearly all of which are cancelled.
///
///   hwt::HashedWheelTimer timer{std::chrono::milliseconds(10)};
///   hwt::Timeout timeout = timer.new_timeout([id] { fail_request(id); }, 250ms);
///   ...
///   if (timeout.cancel()) deliver_answer(id);   // true: the task has not run and never will
///
/// Guarantees: no task starts before its deadline, by the timer's clock. A task runs at most once. Each timeout ends
/// exactly once: expired, cancelled, or returned by stop(). A task sees everything that the thread which scheduled it
/// wrote before. CancelResult says how much of a task a thread sees. The header compiles with -fno-exceptions and
/// -fno-rtti.
/// Threads: any thread may call any member, also inside a task, but see stop() and the destructors. So may a fibre that
/// changes its thread between two calls. A task must not yield to another fibre. On systems other than Linux and
/// Windows, a call that wakes the worker takes a mutex.
/// Not for: intervals shorter than a tick, alarms by the wall clock, or work that runs long on the worker thread.
/// Source: Netty's Timer.
class HWT_API Timer {
 public:
  /// Ends the timer and cancels the pending timeouts; see the derived classes. Must not race other calls on the timer.
  /// Calls on its Timeouts may race it.
  virtual ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Runs `callable`, f(Timeout&) or f(), once, and returns a handle. `when` is a delay, or a deadline by the timer's
  /// own clock or by the wall clock; see When. `terms` is a leeway, an origin, or both; see Terms. Starts the timer if
  /// it was not started. Throws IllegalState after stop(), RejectedExecution at max_pending_timeouts,
  /// std::invalid_argument for a null callable or a NaN, std::bad_alloc, and what copying the callable throws. If it
  /// starts the timer, throws what ThreadedTimer::start() throws. After an exception nothing is scheduled. But the
  /// timer may have been started, and a callable that was passed with std::move may be gone. Any thread. Costs no lock,
  /// and no allocation for callables of up to 32 bytes. A delay costs one clock reading. A point of the timer's own
  /// clock costs none, except to start the timer, and with Options::trace_origins; Timeout::deadline() then returns
  /// exactly this deadline, unless a leeway has moved it.
  template <class F>
    requires detail::TimeoutCallable<F>
  Timeout new_timeout(F&& callable, When when, Terms terms = {{}, __builtin_FILE(), __builtin_LINE()}) {
    return Timeout(schedule_callable<kOrThrow>(std::forward<F>(callable), when, terms, kHandle).node);
  }

  /// Runs a shared task once, as the overload for callables does, and throws what that throws;
  /// std::invalid_argument for a null task.
  Timeout new_timeout(std::shared_ptr<TimerTask> task, When when,
                      Terms terms = {{}, __builtin_FILE(), __builtin_LINE()}) {
    return Timeout(schedule_shared<kOrThrow>(task, when, terms).node);
  }

  /// Runs `callable` once, for code that is built without exceptions. Returns a null handle if
  /// new_timeout() would throw, also for lack of memory or of a thread. Throws only if copying the callable throws.
  template <class F>
    requires detail::TimeoutCallable<F>
  [[nodiscard("a null handle means that nothing was scheduled")]] Timeout try_new_timeout(
      F&& callable, When when,
      Terms terms = {
          {}, __builtin_FILE(), __builtin_LINE()}) noexcept(std::is_nothrow_constructible_v<std::decay_t<F>, F>) {
    return Timeout(schedule_callable<kOrNull>(std::forward<F>(callable), when, terms, kHandle).node);
  }

  /// Runs a shared task once. Returns a null handle where new_timeout() throws.
  // NOLINTNEXTLINE(bugprone-exception-escape): building a shared task throws nothing.
  [[nodiscard("a null handle means that nothing was scheduled")]] Timeout try_new_timeout(
      std::shared_ptr<TimerTask> task, When when, Terms terms = {{}, __builtin_FILE(), __builtin_LINE()}) noexcept {
    return Timeout(schedule_shared<kOrNull>(task, when, terms).node);
  }

  /// Runs `callable`, f(Timeout&) or f(), once, and returns an id instead of a handle. An id is a plain
  /// number that may be kept for ever, and costs less than a handle. Throws what new_timeout() throws. Any thread.
  template <class F>
    requires detail::TimeoutCallable<F>
  TimeoutId add(F&& callable, When when, Terms terms = {{}, __builtin_FILE(), __builtin_LINE()}) {
    return TimeoutId::from_value(schedule_callable<kOrThrow>(std::forward<F>(callable), when, terms, kId).value);
  }

  /// Runs `callable` once, and returns an id. Returns an id of no timeout where add() throws, and throws
  /// only what copying the callable throws.
  template <class F>
    requires detail::TimeoutCallable<F>
  [[nodiscard("an id of no timeout means that nothing was scheduled")]] TimeoutId try_add(
      F&& callable, When when,
      Terms terms = {
          {}, __builtin_FILE(), __builtin_LINE()}) noexcept(std::is_nothrow_constructible_v<std::decay_t<F>, F>) {
    return id_of(schedule_callable<kOrNull>(std::forward<F>(callable), when, terms, kId));
  }

  /// Cancels the timeout that add() returned this id for. Returns Cancelled if this call cancelled it: the task has not
  /// run and never will. Returns Running if the task runs now, on this thread or another, or if an executor has it.
  /// Returns Gone otherwise. `id` may be any number: a stale id, an id of another timer, or a number that was never an
  /// id. Destroys the callable before it returns. Any thread, also inside a task. Takes no lock, waits for no thread.
  CancelResult cancel(TimeoutId id) noexcept;

  /// Cancels the timeout and waits until no thread runs its task, so that objects that the task uses can be destroyed.
  /// Returns Cancelled if this call took the task, which has not run and never will. Returns Running only inside the
  /// task or its callable's destructor, and Gone otherwise. Any thread. See Timeout::cancel_and_wait() for the waits
  /// and for the locks that the caller must not hold.
  CancelResult cancel_and_wait(TimeoutId id) noexcept;

  /// Moves the deadline: to a delay from now, or to another deadline. Returns true if the task will run once, and not
  /// before the new deadline. Returns false if the task has started, or if the id names no pending timeout. With a
  /// leeway the task may run that much later. Any thread. Throws std::invalid_argument for a NaN, and std::bad_alloc
  /// for an earlier deadline; then nothing has changed.
  bool reschedule(TimeoutId id, When when, Leeway leeway = {}) { return find(id).reschedule(when, leeway); }

  /// Returns a handle of the timeout while it is pending, while an executor has its task, and while a thread runs the
  /// task or destroys its callable. Returns a null handle otherwise. Any thread. If the timeout already has 2,097,151
  /// handles, the call ends the program.
  Timeout find(TimeoutId id) noexcept;

  /// Ends the timer for good and returns the pending timeouts, cancelled. No further task starts on the worker or goes
  /// to the executor, and new_timeout() refuses.
  /// Waits for a task that runs on the worker, not for the executor. If several threads call it, one gets the timeouts
  /// and the others an empty vector, and none returns before the worker has finished. A later call returns an empty
  /// vector.
  /// Throws IllegalState inside a task on the worker, and std::bad_alloc; then call it again.
  virtual std::vector<Timeout> stop() = 0;

  /// Returns the number of timeouts that are neither cancelled, expired nor returned by stop(). A running task is not
  /// pending. A timeout that ends on another thread may be counted for a moment after its handle says so. Any thread.
  /// Adds up counters of all threads that use the timer, unless Options::max_pending_timeouts is set.
  std::int64_t pending_timeouts() const noexcept;

  /// Returns the time of the clock that deadlines are measured by: steady_clock, or the time that the caller has given
  /// to the timer. Any thread.
  std::chrono::steady_clock::time_point now() const noexcept;

  /// Returns the counters. Any thread; adds up the counters of all threads that use the timer.
  TimerStats stats() const noexcept;

  /// Returns how late timeouts were. For each expired timeout it has the time at which the worker started to process
  /// its tick, minus its deadline. That includes the rest of the tick, the wake-up of the worker, and the ticks before.
  /// It does not include the time of earlier tasks of the same tick; TimerStats::last_lag does. If ticks below 1 ms are
  /// processed together, it does not include the time of earlier tasks in any of them. Tasks run by an executor are
  /// included; their queueing time is not.
  /// A timeout is counted before its task runs. While timeouts expire, sum() and max() may be ahead of count(), never
  /// behind. Any thread; copies 2 kB.
  LatencyHistogram lateness() const noexcept;

  /// Returns the pending timeouts by origin, the most frequent origin first; none without Options::trace_origins. It
  /// shows a line that schedules and never cancels. Counts each timeout that is pending from beginning to end of the
  /// call, and may count others. At most 4,095 origins of a process are told apart. Any thread, also inside a task.
  /// Takes no lock, so it delays no other thread. Costs 3 to 10 ms for each million timeouts that were pending at the
  /// peak. Throws std::bad_alloc.
  std::vector<PendingOrigin> pending_by_origin() const;

  /// Calls visit(const TracedTimeout&) for each pending timeout; for none without Options::trace_origins. Visits each
  /// timeout that is pending from beginning to end of the call once, and may visit others. It may find a timeout before
  /// the function that schedules it has returned. `visit` may use the timer. Any thread, also inside a task. Takes no
  /// lock. Throws what `visit` throws.
  template <class F>
    requires std::is_invocable_v<F&, const TracedTimeout&>
  void for_each_pending(F&& visit) const {
    visit_pending(
        [](void* context, const TracedTimeout& timeout) {
          std::invoke(*static_cast<std::remove_reference_t<F>*>(context), timeout);
        },
        const_cast<void*>(static_cast<const volatile void*>(std::addressof(visit))));
  }

 protected:
  // For the timers of this library. Programs use a Timer; they do not derive from it.

  Timer() = default;

  /// Builds the task and schedules it. Calls `task.build` at most once. A refusal may have destroyed the task, which
  /// may have owned the timer: the caller must not use the timer after any result but Ok, NotStarted and Untraced.
  /// Throws what building the task throws. Tests override it, to hold a thread here.
  virtual detail::Scheduled schedule(const detail::TaskSource& task, When when);

  /// Starts a timer whose schedule() returned NotStarted. Throws what making the worker throws, IllegalState after
  /// stop().
  virtual void begin();

 private:
  friend detail::Scheduled detail::schedule(Timer& timer, const detail::TaskSource& task, When when);
  friend detail::Scheduled detail::schedule_traced(Timer& timer, const detail::TaskSource& task, When when,
                                                   const char* name);
  friend class TimeoutScope;
  friend class detail::UsedTimer;
  friend class internal::Core;

  // Whether a refused call throws or returns null.
  static constexpr bool kOrThrow = true;
  static constexpr bool kOrNull = false;

  // Values of `named`, which is TaskSource::named: whether the timeout gets an id instead of a handle.
  static constexpr bool kHandle = false;
  static constexpr bool kId = true;

  template <bool kThrows, class F>
  detail::Scheduled schedule_callable(F&& callable, When when, const Terms& terms, bool named) {
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
      return schedule_callable<kThrows>(&callable, when, terms, named);
    } else {
      if (detail::is_null_callable(callable)) return refuse<kThrows>(detail::Result::NullTask, caller(named));
      if constexpr (detail::HasExecutor<std::decay_t<F>>) expect_executors();
      return schedule_source<kThrows>(detail::source_of<F>(callable, named), when, terms);
    }
  }
  template <bool kThrows>
  detail::Scheduled schedule_shared(std::shared_ptr<TimerTask>& task, When when, const Terms& terms) {
    if (task == nullptr) return refuse<kThrows>(detail::Result::NullTask, caller(kHandle));
    return schedule_source<kThrows>(detail::source_of_shared(task), when, terms);
  }
  template <bool kThrows>
  detail::Scheduled schedule_source(const detail::TaskSource& task, When when, const Terms& terms) {
    const char* const name = caller(task.named);
    if (when.is_nan()) return refuse<kThrows>(detail::Result::NotANumber, name);
    if (const Leeway leeway = terms.leeway(); leeway.is_given()) {
      if (leeway.is_nan()) return refuse<kThrows>(detail::Result::LeewayNotANumber, name);
      when = rounded(when, leeway);
    }
    const detail::Scheduled scheduled = schedule(task, when);
    if (scheduled.node == nullptr) [[unlikely]] {
      if constexpr (kThrows) return retry_or_throw(*this, task, when, scheduled, terms.origin(), name);
      return retry_or_null(*this, task, when, scheduled, terms.origin());
    }
    return scheduled;
  }
  template <bool kThrows>
  static detail::Scheduled refuse(detail::Result why, const char* caller) {
    const detail::Scheduled refused = detail::Scheduled::refused(why);
    if constexpr (kThrows) detail::raise(refused, caller);
    return refused;
  }
  /// From now on the worker asks each due task for its executor.
  void expect_executors() noexcept;
  static TimeoutId id_of(detail::Scheduled scheduled) noexcept {
    return TimeoutId::from_value(scheduled.node == nullptr ? 0 : scheduled.value);
  }
  /// Returns the name of the function that schedules, for messages.
  static constexpr const char* caller(bool named) noexcept { return named ? "add" : "new_timeout"; }
  /// Returns the deadline with this leeway. Starts the timer if it was not started, because its ticks count from the
  /// start.
  When rounded(When when, Leeway leeway) noexcept;
  // The rest of a refused call, out of line. Each function starts a timer that was not started, and schedules again. If
  // the timer traces origins, the function passes the origin to it. Both are static, because a refused task may have
  // destroyed the timer that it owned.
  static detail::Scheduled retry_or_throw(Timer& timer, const detail::TaskSource& task, When when,
                                          detail::Scheduled refused, const Origin& origin, const char* caller);
  static detail::Scheduled retry_or_null(Timer& timer, const detail::TaskSource& task, When when,
                                         detail::Scheduled refused, const Origin& origin);
  void visit_pending(void (*visit)(void* context, const TracedTimeout& timeout), void* context) const;

  internal::Core* core_ = nullptr;  // set by the Core when it is made
};

}  // namespace hwt
