// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/stop_after.h"

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/internal/core/named_timeout.h"

namespace hwt {

/// The task of the deadline. After the timer's end the user may run it, even when the StopAfter was destroyed.
class StopAfter::Deadline {
 public:
  explicit Deadline(StopAfter& limit) noexcept : limit_(&limit) {}

  void operator()() {
    if (limit_ != nullptr) limit_->time_out();
  }
  void will_not_run(detail::NotRun) noexcept { limit_ = nullptr; }

 private:
  StopAfter* limit_;
};

StopAfter::StopAfter(Timer& timer, When when, std::stop_token parent)
    : timeout_(internal::named_timeout(timer, Deadline(*this), detail::number("StopAfter: delay", when),
                                       "hwt::StopAfter", "StopAfter")) {
  // Last, because the callback runs at once if the parent was stopped before.
  on_parent_stop_.emplace(std::move(parent), OnParentStop{this});
}

StopAfter::~StopAfter() {
  on_parent_stop_.reset();
  timeout_.cancel_and_wait();
}

bool StopAfter::timed_out() const noexcept { return state_.load(std::memory_order_relaxed) == State::TimedOut; }

bool StopAfter::cancel() noexcept {
  State seen = State::Pending;
  if (state_.compare_exchange_strong(seen, State::Cancelled, std::memory_order_relaxed)) {
    Timeout(timeout_).cancel();  // a copy, because on_earlier() may destroy this
  }
  return seen != State::TimedOut;
}

bool StopAfter::reschedule(When when) { return detail::reschedule(timeout_, detail::number("StopAfter: delay", when)); }

void StopAfter::time_out() noexcept {
  State seen = State::Pending;
  if (!state_.compare_exchange_strong(seen, State::TimedOut, std::memory_order_relaxed)) return;
  std::stop_source stop = stop_;  // a stop callback may destroy this
  stop.request_stop();
}

void StopAfter::parent_stopped() noexcept {
  std::stop_source stop = stop_;  // a stop callback or on_earlier() may destroy this
  cancel();
  stop.request_stop();
}

}  // namespace hwt
