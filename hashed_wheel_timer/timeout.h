// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <utility>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/leeway.h"
#include "hashed_wheel_timer/when.h"

namespace hwt {

class BatchExecutor;
class Timeout;
class Timer;
class TimerTask;

namespace detail {
enum class NotRun : unsigned char;
/// Moves a timeout, as Timeout::reschedule() does. Precondition: not a NaN.
bool reschedule(Timeout& timeout, When when);
}  // namespace detail
namespace internal {
struct Node;
}

/// Handle of one scheduled timeout: a reference, 8 bytes, null by default.
///
///   hwt::Timeout timeout = timer.new_timeout([id] { fail_request(id); }, 250ms);
///   if (timeout.cancel()) deliver_answer(id);   // true: the task has not run and never will
///
/// Guarantees: a timeout ends in exactly one of expired, cancelled, or returned by stop(). Handles may outlive the
/// timer.
/// Threads: several may use different handles of the same timeout at once; one handle object is like any value and
/// needs outside locking when shared.
/// Not for: ownership. Dropping a handle does not cancel.
/// Source: Netty's Timeout.
class HWT_API Timeout {
 public:
  /// Makes a null handle.
  Timeout() noexcept = default;
  /// Makes another handle of the same timeout. A timeout has at most 2^21 - 1 handles (2,097,151) at a time. A copy
  /// beyond that ends the program with a line on stderr.
  Timeout(const Timeout& other) noexcept;
  /// Takes over the handle and leaves `other` null.
  Timeout(Timeout&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  /// Drops the present handle and becomes another handle of the timeout of `other`.
  Timeout& operator=(const Timeout& other) noexcept {
    Timeout copy(other);
    swap(copy);
    return *this;
  }
  /// Drops the present handle, takes over that of `other` and leaves `other` null.
  Timeout& operator=(Timeout&& other) noexcept {
    Timeout(std::move(other)).swap(*this);
    return *this;
  }
  /// Drops the handle. That does not cancel. The last handle of a timeout that stop() returned destroys its callable.
  ~Timeout() {
    if (node_ != nullptr) release(node_);
  }

  /// Cancels the timeout. Returns true exactly once, and only if the task has not started and never will. Returns false
  /// if expiry, another cancel or stop() came first, and on a null handle. Destroys a plain callable before it returns.
  /// Any thread, also inside a task. Takes no lock and waits for no thread.
  bool cancel() noexcept;

  /// Cancels the timeout and waits until no thread runs its task, so that objects that the task uses can be destroyed.
  /// Returns true if this call took the task, which has not run and never will. Returns false if the task has run, or
  /// if the timeout was cancelled or returned by stop() before. Afterwards the caller sees everything that the task
  /// wrote.
  /// Waits while another thread runs the task, or destroys its callable. A task that waits in an executor is disarmed:
  /// its job does nothing, and a callable is destroyed before this returns. The timeout stays expired.
  /// Returns false at once inside the task or its callable's destructor, after stop() or the timer's end cancelled the
  /// timeout, and on a null handle. Does not wait for TimerTask::cancelled(), nor in a forked child on a timer of its
  /// parent.
  /// Any thread, also inside other tasks. Do not hold a lock that the task takes: both would wait for ever, as would
  /// two tasks that wait for each other.
  /// Source: Linux's timer_delete_sync.
  bool cancel_and_wait() noexcept;

  /// Moves the deadline: to a delay from now, or to another deadline; see When. Returns true if the task will run once,
  /// and not before the new deadline. (Exception: two threads move it while it expires, and one of them is preempted
  /// until its new deadline.) Returns false if the timeout has expired, also while its task waits in an executor.
  /// Returns false if it was cancelled or returned by stop(), or if the handle is null. A race with one of these has
  /// exactly one winner. With a leeway the task may run that much later. Any thread, also inside a task. For a later
  /// deadline the call allocates and enqueues nothing. An earlier deadline takes effect when the worker takes its
  /// request, normally by the end of the present tick. SECURITY.md, "Bounds under load", says when it is later. Throws
  /// std::invalid_argument for a NaN, and std::bad_alloc for an earlier deadline; then nothing has changed.
  bool reschedule(When when, Leeway leeway = {}) {
    when = detail::number("reschedule: delay", when);
    if (!leeway.is_given()) return move_to(when);
    if (leeway.is_nan()) detail::refuse_nan("reschedule: leeway");
    return move_to(when, leeway);
  }

  /// Returns whether the timeout is neither cancelled nor expired. A task that waits in an executor may still start,
  /// but its timeout has expired. False on a null handle.
  bool is_pending() const noexcept;

  /// Returns whether cancel() or stop() cancelled the timeout. False on a null handle.
  bool is_cancelled() const noexcept;

  /// Returns whether the task was claimed for execution: it runs, has run, or waits in the executor. False on a null
  /// handle.
  bool is_expired() const noexcept;

  /// Returns the time before which the task does not start, by the timer's clock. A deadline that was given comes back
  /// exactly, also one in the past, unless a leeway has moved it. Returns time_point::max() if the delay was beyond the
  /// range of the clock, and on a null handle. While a reschedule() is under way, this may be a deadline that the
  /// reschedule() will take back. If several of these calls race with the expiry, such a deadline may stay.
  std::chrono::steady_clock::time_point deadline() const noexcept;

  /// Returns the timer, or null if the timer is gone or the handle is null. Does not keep the timer alive.
  Timer* timer() const noexcept;

  /// Returns the task: the shared TimerTask, or a wrapper of the plain callable. A callable that stop() returned is
  /// kept until its last handle is destroyed, so `timeout.task().run(timeout)` runs it. Throws IllegalState on a null
  /// handle.
  /// Precondition: a plain callable still exists. It is gone after cancel() or cancel_and_wait() took it, after it ran,
  /// after the executor dropped its job, and after the timer was destroyed while it was pending.
  TimerTask& task() const;

  /// Returns false on a null handle.
  explicit operator bool() const noexcept { return node_ != nullptr; }
  /// Returns whether both are handles of the same timeout, or both null.
  friend bool operator==(const Timeout& a, const Timeout& b) noexcept { return a.node_ == b.node_; }
  /// Swaps the two handles.
  void swap(Timeout& other) noexcept { std::swap(node_, other.node_); }

 private:
  friend class Timer;
  friend struct internal::Node;
  friend struct std::hash<Timeout>;
  friend bool detail::reschedule(Timeout& timeout, When when);
  explicit Timeout(internal::Node* adopted) noexcept : node_(adopted) {}
  static void release(internal::Node* node) noexcept;
  bool move_to(When when);
  bool move_to(When when, Leeway leeway);

  internal::Node* node_ = nullptr;
};

inline bool detail::reschedule(Timeout& timeout, When when) { return timeout.move_to(when); }

/// Prints "Timeout(deadline: 1234567 ns later, cancelled)", with "ago", "now", "never" or "expired" where that applies;
/// or "Timeout(null)".
HWT_API std::ostream& operator<<(std::ostream& out, const Timeout& timeout);

/// A task as a class whose objects are shared, for code that comes from Netty. New code passes a callable instead.
///
///   struct Ping : hwt::TimerTask {
///     void run(hwt::Timeout&) override { ping(); }
///   };
///   timer.new_timeout(std::make_shared<Ping>(), 1s);
///
/// Guarantees: for each timeout the timer calls either run() or cancelled(), and once. It calls neither if an executor
/// drops the task, or cancel_and_wait() disarms it there.
/// Threads: the worker calls both, unless a member says otherwise. A task of several timeouts may be called for one of
/// them on the worker and for another on a thread of the executor at the same time.
/// Source: Netty's TimerTask.
class HWT_API TimerTask {
 public:
  /// Constructs, copies and assigns nothing: a TimerTask has no members.
  TimerTask() = default;
  /// Copies nothing.
  TimerTask(const TimerTask&) = default;
  /// Assigns nothing.
  TimerTask& operator=(const TimerTask&) = default;
  /// Destroyed on the thread that releases the last reference. The timer holds one until the last handle of the timeout
  /// is gone and cancelled() has run.
  virtual ~TimerTask();

  /// Runs when the timeout expires, on the worker or where the executor puts it. An exception goes to
  /// Options::on_task_error.
  virtual void run(Timeout& timeout) = 0;

  /// Runs on the worker after a successful cancel(): normally within a tick or a millisecond, whichever is longer.
  /// SECURITY.md, "Bounds under load", says when it is later. For a timeout that stop() cancels it runs before stop()
  /// returns. An exception goes to Options::on_task_error. Netty 4.2: TimerTask.cancelled.
  virtual void cancelled(Timeout& timeout);

 private:
  friend struct internal::Node;
  // Their names begin with hwt_, so that a task of the user may have members named `executor` and `will_not_run`.

  /// Not for users: see detail::NotRun.
  virtual void hwt_will_not_run(detail::NotRun why);
  /// Not for users: where on() makes the task run; null: where the timer runs its tasks.
  virtual const BatchExecutor* hwt_executor() const noexcept;
};

}  // namespace hwt

/// Handles of the same timeout have the same hash, so they may be keys of unordered containers.
template <>
struct std::hash<hwt::Timeout> {
  /// Returns the hash. A null handle has one too.
  std::size_t operator()(const hwt::Timeout& timeout) const noexcept { return std::hash<const void*>()(timeout.node_); }
};
