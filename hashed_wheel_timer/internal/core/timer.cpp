// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/timer.h"

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/core.h"

namespace hwt {

using detail::Result;
using detail::Scheduled;

IllegalState::~IllegalState() = default;
RejectedExecution::~RejectedExecution() = default;

Timer::~Timer() = default;

std::int64_t Timer::pending_timeouts() const noexcept { return core_->pending(); }

std::chrono::steady_clock::time_point Timer::now() const noexcept {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(core_->now()));
}

TimerStats Timer::stats() const noexcept { return core_->stats(); }

LatencyHistogram Timer::lateness() const noexcept { return core_->lateness(); }

void Timer::begin() {}

CancelResult Timer::cancel_and_wait(TimeoutId id) noexcept { return core_->cancel_and_wait(id); }

void Timer::expect_executors() noexcept { core_->expect_executors(); }

Timeout Timer::find(TimeoutId id) noexcept { return core_->find(id); }

Scheduled Timer::retry_or_throw(Timer& timer, const detail::TaskSource& task, When when, Scheduled refused,
                                const Origin& origin, const char* caller) {
  if (refused.result() == Result::NotStarted) refused = detail::schedule(timer, task, when);
  if (refused.result() == Result::Untraced) refused = timer.core_->schedule_traced(task, when, origin);
  if (refused.node == nullptr) detail::raise(refused, caller);
  return refused;
}

Scheduled Timer::retry_or_null(Timer& timer, const detail::TaskSource& task, When when, Scheduled refused,
                               const Origin& origin) {
  if (refused.result() == Result::NotStarted) {
    try {
      timer.begin();
    } catch (...) {
      return refused;
    }
    refused = timer.schedule(task, when);
  }
  return refused.result() == Result::Untraced ? timer.core_->schedule_traced(task, when, origin) : refused;
}

When Timer::rounded(When when, Leeway leeway) noexcept {
  if (!core_->lifecycle().started()) {
    try {
      begin();
    } catch (...) {
      return when;  // schedule() finds out why, and refuses
    }
  }
  return core_->rounded(when, leeway);
}

Scheduled detail::schedule(Timer& timer, const TaskSource& task, When when) {
  const Scheduled scheduled = timer.schedule(task, when);
  if (scheduled.result() != Result::NotStarted) [[likely]]
    return scheduled;
  try {
    timer.begin();
  } catch (...) {
    // begin() also throws if another thread has stopped the timer meanwhile. Then the refusal says so.
    const Scheduled stopped = timer.schedule(task, when);
    if (stopped.result() == Result::NotStarted) throw;
    return stopped;
  }
  return timer.schedule(task, when);
}

Scheduled detail::schedule_traced(Timer& timer, const TaskSource& task, When when, const char* name) {
  return timer.core_->schedule_traced(task, when, Origin(name, 0));
}

void detail::raise(Scheduled refused, const char* caller) {
  const std::string name(caller);
  switch (refused.result()) {
    case Result::Stopped:
      throw IllegalState(name + ": the timer has been stopped");
    case Result::Full:
      throw RejectedExecution(name + ": max_pending_timeouts: " + std::to_string(refused.limit()) +
                              " timeouts are pending already");
    case Result::NullTask:
      throw std::invalid_argument(name + ": task: null (expected: a callable or a TimerTask)");
    case Result::NotANumber:
      throw std::invalid_argument(name + ": delay: NaN (expected: a number)");
    case Result::LeewayNotANumber:
      throw std::invalid_argument(name + ": leeway: NaN (expected: a number)");
    default:
      throw std::bad_alloc();
  }
}

}  // namespace hwt
