// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"
#include "hashed_wheel_timer/when.h"

namespace hwt {

/// Requests a stop at a deadline, for everything that takes a std::stop_token. It only asks the work to stop. The
/// program still waits for the end of the work.
///
///   hwt::StopAfter limit(timer, 250ms);
///   Answer answer = co_await call(request, limit.token());
///   if (limit.timed_out()) ...
///
/// Guarantees: the stop is requested at the deadline or when `parent` is stopped, whichever comes first. A stop of the
/// parent cancels the deadline. If the timer is stopped or destroyed first, the deadline requests nothing, even if the
/// program runs the timeout that Timer::stop() returned. The work then goes on, so stop the parent before the timer.
/// Threads: any thread may call any member, also in stop callbacks. Stop callbacks of the deadline run where the timer
/// runs tasks, those of the parent on the thread that requests that stop.
/// Not for: abandoning work that cannot be stopped.
class HWT_API StopAfter {
 public:
  /// Requests the stop after a delay or at a deadline; see When. Throws what Timer::new_timeout() throws, with messages
  /// that name StopAfter.
  [[nodiscard("a StopAfter without a name ends at once, and limits nothing")]] StopAfter(Timer& timer, When when,
                                                                                         std::stop_token parent = {});

  /// Cancels the deadline, also one whose task waits in an executor, and ends the link to the parent. If another thread
  /// is requesting the stop, waits until its stop callbacks have returned. Hold no lock that a stop callback takes. Two
  /// objects wait for each other for ever if each is destroyed in a stop callback of the other.
  ~StopAfter();
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  /// Returns the token, which the deadline or the parent stops. It may outlive this object.
  std::stop_token token() const noexcept { return stop_.get_token(); }

  /// Returns whether the deadline has requested the stop, also while the stop callbacks run. Returns false if the
  /// parent was stopped first.
  bool timed_out() const noexcept;

  /// Cancels the deadline. Returns false only if the deadline has requested the stop, also when called again.
  /// The parent stays linked. Waits for no thread.
  bool cancel() noexcept;

  /// Moves the deadline: to a delay from now, or to another deadline. Returns false if the deadline has passed, or if
  /// cancel() or a stop of the parent has cancelled it, or if the timer has ended. Throws what Timeout::reschedule()
  /// throws.
  bool reschedule(When when);

 private:
  class Deadline;
  struct OnParentStop {
    StopAfter* limit;
    void operator()() const noexcept { limit->parent_stopped(); }
  };
  enum class State : std::uint8_t { Pending, Cancelled, TimedOut };

  void time_out() noexcept;
  void parent_stopped() noexcept;

  std::stop_source stop_;
  // One exchange decides between the deadline and cancel(). relaxed: it hands nothing over. A thread that learns of
  // the stop by the token sees everything that was stored before the request.
  std::atomic<State> state_ = State::Pending;
  Timeout timeout_;
  std::optional<std::stop_callback<OnParentStop>> on_parent_stop_;
};

}  // namespace hwt
