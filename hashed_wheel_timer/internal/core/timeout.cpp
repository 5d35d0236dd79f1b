// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/timeout.h"

#include <ostream>
#include <string>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/memory/node.h"

namespace hwt {

using internal::Core;
using internal::Node;
using internal::NodeState;

Timeout::Timeout(const Timeout& other) noexcept : node_(other.node_) {
  if (node_ != nullptr) node_->add_reference();
}

void Timeout::release(Node* node) noexcept {
  if (node->drop_references(1)) internal::recycle(node);
}

bool Timeout::cancel() noexcept { return node_ != nullptr && Core::cancel(*node_); }

bool Timeout::cancel_and_wait() noexcept { return node_ != nullptr && internal::cancel_and_wait(*node_); }

bool Timeout::move_to(When when) { return node_ != nullptr && Core::reschedule(*node_, when); }

bool Timeout::move_to(When when, Leeway leeway) {
  return node_ != nullptr && Core::reschedule(*node_, node_->core().rounded(when, leeway));
}

bool Timeout::is_pending() const noexcept {
  return node_ != nullptr && Node::pending(node_->word.load(std::memory_order_acquire));
}

bool Timeout::is_cancelled() const noexcept {
  return node_ != nullptr && node_->state(std::memory_order_acquire) == NodeState::Cancelled;
}

bool Timeout::is_expired() const noexcept {
  return node_ != nullptr && node_->state(std::memory_order_acquire) == NodeState::Expired;
}

std::chrono::steady_clock::time_point Timeout::deadline() const noexcept {
  using Point = std::chrono::steady_clock::time_point;
  if (node_ == nullptr) return (Point::max)();
  return Point(std::chrono::nanoseconds(node_->deadline.load(std::memory_order_relaxed)));
}

Timer* Timeout::timer() const noexcept { return node_ == nullptr ? nullptr : node_->core().timer(); }

TimerTask& Timeout::task() const {
  if (node_ == nullptr) throw IllegalState("task() of a null Timeout");
  return node_->task();
}

std::ostream& operator<<(std::ostream& out, const Timeout& timeout) {
  if (!timeout) return out << "Timeout(null)";
  // Asks the core and not the timer, because another thread may be destroying the timer.
  const std::chrono::steady_clock::time_point now(std::chrono::nanoseconds(Node::of(timeout)->core().now()));
  // A string, because a stream may print numbers in another base.
  const auto distance = [](std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
    return std::to_string(detail::nanoseconds_between(from, to));
  };
  const std::chrono::steady_clock::time_point deadline = timeout.deadline();  // once: another thread may move it
  out << "Timeout(deadline: ";
  if (deadline == (std::chrono::steady_clock::time_point::max)()) {
    out << "never";
  } else if (deadline > now) {
    out << distance(now, deadline) << " ns later";
  } else if (deadline < now) {
    out << distance(deadline, now) << " ns ago";
  } else {
    out << "now";
  }
  if (timeout.is_cancelled()) out << ", cancelled";
  if (timeout.is_expired()) out << ", expired";
  return out << ')';
}

TimerTask::~TimerTask() = default;
void TimerTask::cancelled(Timeout&) {}
void TimerTask::hwt_will_not_run(detail::NotRun) {}

const BatchExecutor* TimerTask::hwt_executor() const noexcept { return nullptr; }

detail::SharedTask::~SharedTask() = default;
void detail::SharedTask::run(Timeout& timeout) { task_->run(timeout); }
void detail::SharedTask::cancelled(Timeout& timeout) { task_->cancelled(timeout); }

}  // namespace hwt
