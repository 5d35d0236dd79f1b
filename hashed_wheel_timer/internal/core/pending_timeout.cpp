// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/pending_timeout.h"

#include "hashed_wheel_timer/internal/memory/node.h"

namespace hwt::detail {

using internal::Node;

std::uintptr_t PendingTimeout::place_of(Timeout& timeout) noexcept {
  return reinterpret_cast<std::uintptr_t>(Node::disown(timeout));
}

Timeout PendingTimeout::timeout_of(std::uintptr_t place) noexcept {
  return place == kLent ? Timeout() : Node::adopt(reinterpret_cast<Node*>(place));
}

void PendingTimeout::set(Timeout timeout) noexcept {
  timeout_of(place_.exchange(place_of(timeout), std::memory_order_acq_rel));
}

void PendingTimeout::set_first(Timeout timeout) noexcept {
  const std::uintptr_t place = place_of(timeout);
  std::uintptr_t seen = kNone;
  if (!place_.compare_exchange_strong(seen, place, std::memory_order_release, std::memory_order_relaxed)) {
    timeout_of(place);
  }
}

Timeout PendingTimeout::take() {
  const std::lock_guard lock(users_);
  return timeout_of(place_.exchange(kNone, std::memory_order_acq_rel));
}

PendingTimeout::Loan::Loan(PendingTimeout& pending) : pending_(pending), lock_(pending.users_) {
  // Sets no mark if there is no timeout, because set_first() would take the mark for a timeout.
  std::uintptr_t seen = pending_.place_.load(std::memory_order_acquire);
  while (seen != kNone && !pending_.place_.compare_exchange_weak(seen, kLent, std::memory_order_acquire)) {
  }
  timeout_ = timeout_of(seen);
}

PendingTimeout::Loan::~Loan() {
  if (!timeout_) return;
  const std::uintptr_t place = place_of(timeout_);
  std::uintptr_t seen = kLent;
  // relaxed: this thread has changed nothing, and its exchanges continue the release sequence of the thread that stored
  // the timeout.
  if (!pending_.place_.compare_exchange_strong(seen, place, std::memory_order_relaxed)) timeout_ = timeout_of(place);
}

}  // namespace hwt::detail
