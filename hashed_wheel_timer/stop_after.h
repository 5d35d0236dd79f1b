#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// A stop that is requested at a deadline, for whatever takes a std::stop_token: it asks the work to stop, and whoever
/// waits for the work waits until it has.
///
///   hwt::StopAfter limit(timer, 250ms);
///   Answer answer = co_await call(request, limit.token());
///   if (limit.timed_out()) ...
///
/// Guarantees: the stop is requested at the deadline, or when `parent` is stopped, whichever is first; a stop of the
/// parent cancels the deadline. If the timer ends first, the deadline requests nothing.
/// Threads: any may call any member, stop callbacks included. The deadline's stop callbacks run where the timer runs
/// tasks, the parent's on the thread that requests that stop.
/// Not for: abandoning work that cannot be stopped.
class HWT_API StopAfter {
 public:
  /// Throws what Timer::new_timeout() throws.
  [[nodiscard("a StopAfter without a name ends at once, and limits nothing")]] StopAfter(Timer& timer, Delay delay,
                                                                                         std::stop_token parent = {});

  /// cancel(), and ends the link to the parent. Waits while another thread makes the request, stop callbacks included;
  /// a deadline that waits in an executor is disarmed. Inside that request it does not wait. Hold no lock that a stop
  /// callback takes; two that destroy each other in their callbacks wait for ever.
  ~StopAfter();
  StopAfter(const StopAfter&) = delete;
  StopAfter& operator=(const StopAfter&) = delete;

  /// May outlive this. Stopped by the deadline or by the parent.
  std::stop_token token() const noexcept { return stop_.get_token(); }

  /// The deadline has requested the stop, and nobody else; true before the stop callbacks run.
  bool timed_out() const noexcept;

  /// True: the deadline has not requested the stop, and never will. Also again, after a stop of the parent, and after
  /// the timer's end. The parent stays linked. Waits for nobody.
  bool cancel() noexcept;

  /// Puts the deadline to `delay` from now. False: it has passed, or was cancelled, by the parent too, or the timer has
  /// ended. Throws what Timeout::reschedule() throws.
  bool reschedule(Delay delay);

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
  // One exchange decides between the deadline and cancel(). relaxed: it hands nothing over; who learns of the stop by
  // the token sees what was stored before the request.
  std::atomic<State> state_ = State::Pending;
  Timeout timeout_;
  std::optional<std::stop_callback<OnParentStop>> on_parent_stop_;
};

}  // namespace hwt
