#include "hashed_wheel_timer/timer.h"

#include <ostream>
#include <stdexcept>
#include <string>

#include "hashed_wheel_timer/internal/core.h"
#include "hashed_wheel_timer/internal/node.h"
#include "hashed_wheel_timer/internal/node_pool.h"

namespace hwt {

using internal::Core;
using internal::Node;
using internal::State;

IllegalState::~IllegalState() = default;
RejectedExecution::~RejectedExecution() = default;

Timeout::Timeout(const Timeout& other) noexcept : node_(other.node_) {
  if (node_ != nullptr) node_->add_reference();
}

void Timeout::release(Node* node) noexcept {
  if (node->drop_references(1)) internal::recycle(node);
}

bool Timeout::cancel() noexcept { return node_ != nullptr && Core::cancel(*node_); }

bool Timeout::reschedule_in(std::chrono::nanoseconds delay) {
  return node_ != nullptr && Core::reschedule(*node_, delay.count());
}

void Timeout::refuse_nan() { throw std::invalid_argument("delay: NaN (expected: a number)"); }

bool Timeout::is_cancelled() const noexcept {
  return node_ != nullptr && node_->state(std::memory_order_acquire) == State::Cancelled;
}

bool Timeout::is_expired() const noexcept {
  return node_ != nullptr && node_->state(std::memory_order_acquire) == State::Expired;
}

std::chrono::steady_clock::time_point Timeout::deadline() const noexcept { return node_->deadline_point(); }

Timer* Timeout::timer() const noexcept { return node_ == nullptr ? nullptr : node_->core().timer(); }

TimerTask& Timeout::task() const noexcept { return node_->task(); }

std::ostream& operator<<(std::ostream& out, const Timeout& timeout) {
  if (!timeout) return out << "Timeout(null)";
  // Not the timer's own now(): the timer may be going meanwhile.
  const std::chrono::steady_clock::time_point now(std::chrono::nanoseconds(Node::of(timeout)->core().now()));
  // Unsigned: the distance between two time points may exceed the range of the signed one. As a string: whatever base
  // and width the stream is set to.
  const auto distance = [](std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
    const auto nanoseconds = [](auto t) {
      return static_cast<std::uint64_t>(t.time_since_epoch() / std::chrono::nanoseconds(1));
    };
    return std::to_string(nanoseconds(to) - nanoseconds(from));
  };
  out << "Timeout(deadline: ";
  if (timeout.deadline() == (std::chrono::steady_clock::time_point::max)()) {
    out << "never";
  } else if (timeout.deadline() > now) {
    out << distance(now, timeout.deadline()) << " ns later";
  } else if (timeout.deadline() < now) {
    out << distance(timeout.deadline(), now) << " ns ago";
  } else {
    out << "now";
  }
  if (timeout.is_cancelled()) out << ", cancelled";
  if (timeout.is_expired()) out << ", expired";
  return out << ')';
}

TimerTask::~TimerTask() = default;
void TimerTask::cancelled(Timeout&) {}

namespace detail {

SharedTask::~SharedTask() = default;
void SharedTask::run(Timeout& timeout) { task_->run(timeout); }
void SharedTask::cancelled(Timeout& timeout) { task_->cancelled(timeout); }

}  // namespace detail

Timer::~Timer() = default;

Timeout Timer::refuse_argument(const char* what, OnRefusal on_refusal) {
  if (on_refusal == OnRefusal::Throw) throw std::invalid_argument(what);
  return {};
}

Timeout Timer::schedule_shared_task(std::shared_ptr<TimerTask> task, std::chrono::nanoseconds delay,
                                    OnRefusal on_refusal) {
  if (task == nullptr) return refuse_argument("task: null (expected: a TimerTask)", on_refusal);
  const auto build = [](void* storage, void* source) -> TimerTask* {
    return ::new (storage) detail::SharedTask(std::move(*static_cast<std::shared_ptr<TimerTask>*>(source)));
  };
  return schedule({build, &task, detail::TaskKind::Shared}, delay, on_refusal);
}

}  // namespace hwt
