#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <utility>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/detail/when.h"

namespace hwt {

class Timeout;
class Timer;
class TimerTask;

namespace detail {
enum class NotRun : unsigned char;
/// Moves a timeout: Timeout::reschedule() or reschedule_at(). Precondition: not a NaN.
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
  /// Null.
  Timeout() noexcept = default;
  /// Another handle of the same timeout. A timeout has at most 2^23 - 1 handles (8,388,607) at a time: a copy beyond
  /// that ends the program, with a line on stderr.
  Timeout(const Timeout& other) noexcept;
  /// Leaves `other` null.
  Timeout(Timeout&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  /// Another handle of the same timeout. The one that it was is dropped, as by the destructor.
  Timeout& operator=(const Timeout& other) noexcept {
    Timeout copy(other);
    swap(copy);
    return *this;
  }
  /// The same; leaves `other` null.
  Timeout& operator=(Timeout&& other) noexcept {
    Timeout(std::move(other)).swap(*this);
    return *this;
  }
  /// Drops the handle, which does not cancel. The last one of a timeout that stop() returned destroys its callable.
  ~Timeout() {
    if (node_ != nullptr) release(node_);
  }

  /// True exactly once, and only if the task has not started and never will. False when it lost against expiry, another
  /// cancel or stop(), and on a null handle. A plain callable is destroyed in here. Any thread, tasks included.
  bool cancel() noexcept;

  /// As cancel(), and afterwards the task is not running either: waits while another thread runs it, its callable's
  /// destruction included, or while another cancel() destroys the callable. For destroying what a task refers to.
  /// A task that waits in an executor is disarmed: its job does nothing, and a callable is destroyed in here; the
  /// timeout stays expired. True: the task has not run and never will.
  /// False at once from inside the task or its callable's destructor, if stop() or the timer's end has cancelled it,
  /// and on a null handle. Any thread, other tasks included. Do not hold a lock that the task takes; two tasks that
  /// wait for each other wait for ever. Waits neither for TimerTask::cancelled(), nor in a forked child for what ran in
  /// its parent. Source: Linux's timer_delete_sync.
  bool cancel_and_wait() noexcept;

  /// Puts the deadline to `delay` from now. True: the task runs once, and not before the new deadline. False: it has
  /// started, was cancelled or returned by stop(), or the handle is null. Racing any of these, exactly one wins. Any
  /// thread, tasks included. Made for keep-alives: a later deadline costs no allocation and no queue; an earlier one
  /// counts from the next tick. Throws std::invalid_argument for a NaN delay; std::bad_alloc, for an earlier deadline
  /// only; after either nothing has changed.
  bool reschedule(Delay delay) { return move_to(Delay(detail::number("reschedule: delay", delay))); }

  /// Puts the deadline to a point of the timer's own clock, as reschedule() does, but reads no clock. A deadline that
  /// has passed is due now; time_point::max() is never. Throws std::bad_alloc, for an earlier deadline only; then
  /// nothing has changed.
  bool reschedule_at(std::chrono::steady_clock::time_point deadline) { return move_to(deadline); }

  /// Cancelled by cancel() or by stop(). False on a null handle.
  bool is_cancelled() const noexcept;

  /// Its task was claimed for execution: it runs, has run, or waits in the executor. False on a null handle.
  bool is_expired() const noexcept;

  /// Returns when the task may start, by the timer's clock. A deadline that was passed comes back exactly, also one in
  /// the past. time_point::max(), never, when the delay was beyond the range of the clock, and on a null handle.
  std::chrono::steady_clock::time_point deadline() const noexcept;

  /// The timer that made it, or null once that timer is gone, and on a null handle.
  Timer* timer() const noexcept;

  /// Returns the task: the shared TimerTask itself, or a wrapper of the plain callable. A callable that stop() has
  /// returned is kept until its last handle is destroyed, so `timeout.task().run(timeout)` runs it. Throws IllegalState
  /// on a null handle. Precondition: a plain callable has neither been cancelled by cancel() or cancel_and_wait() nor
  /// finished running.
  TimerTask& task() const;

  /// False on a null handle.
  explicit operator bool() const noexcept { return node_ != nullptr; }
  /// Handles of the same timeout, or both null.
  friend bool operator==(const Timeout& a, const Timeout& b) noexcept { return a.node_ == b.node_; }
  /// Each becomes what the other was.
  void swap(Timeout& other) noexcept { std::swap(node_, other.node_); }

 private:
  friend class Timer;
  friend struct internal::Node;
  friend struct std::hash<Timeout>;
  friend bool detail::reschedule(Timeout& timeout, detail::When when);
  explicit Timeout(internal::Node* adopted) noexcept : node_(adopted) {}
  static void release(internal::Node* node) noexcept;
  bool move_to(detail::When when);

  internal::Node* node_ = nullptr;
};

inline bool detail::reschedule(Timeout& timeout, When when) { return timeout.move_to(when); }

/// Prints "Timeout(deadline: 1234567 ns later, cancelled)", with "ago", "now", "never" or "expired" where that applies;
/// or "Timeout(null)".
HWT_API std::ostream& operator<<(std::ostream& out, const Timeout& timeout);

/// What runs when a timeout expires, as a class whose objects are shared: for code that comes from Netty.
///
///   struct Ping : hwt::TimerTask {
///     void run(hwt::Timeout&) override { ping(); }
///   };
///   timer.new_timeout(std::make_shared<Ping>(), 1s);
///
/// Guarantees: for each timeout, the timer calls either run() or cancelled(), and once; neither if an executor drops
/// it, or cancel_and_wait() disarms it there.
/// Threads: both are called on the worker, or where a comment below says so; a task of several timeouts may be called
/// for one on the worker and for another on a thread of the executor at once.
/// Not for: new code, which passes a callable instead.
/// Source: Netty's TimerTask.
class HWT_API TimerTask {
 public:
  /// For derived classes, as are copying and assigning: a TimerTask holds nothing itself.
  TimerTask() = default;
  /// As above.
  TimerTask(const TimerTask&) = default;
  /// As above.
  TimerTask& operator=(const TimerTask&) = default;
  /// Runs where the last owner lets go: a timer is one until the last handle of the timeout has gone and cancelled()
  /// has run.
  virtual ~TimerTask();

  /// Runs on the worker, or where the executor puts it. An exception goes to Options::on_task_error.
  virtual void run(Timeout& timeout) = 0;

  /// Called after a successful cancel(), on the worker, within a tick; for those that stop() cancels, before stop()
  /// returns. An exception goes to Options::on_task_error. Netty 4.2: TimerTask.cancelled.
  virtual void cancelled(Timeout& timeout);

 private:
  friend struct internal::Node;
  /// Not for users: see detail::NotRun.
  virtual void will_not_run(detail::NotRun why);
};

}  // namespace hwt

/// Handles of the same timeout have the same hash, so they may be keys of unordered containers.
template <>
struct std::hash<hwt::Timeout> {
  /// Of a null handle too.
  std::size_t operator()(const hwt::Timeout& timeout) const noexcept { return std::hash<const void*>()(timeout.node_); }
};
