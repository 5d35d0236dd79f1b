// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/held_calls.h"

#include <utility>

#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"

namespace hwt::detail {

using internal::Sleeper;

namespace {

// The innermost object of this thread that holds calls back. Each set() and move() of a KeyedTimer writes it, so it has
// the cheap model of thread_cache::latest.
HWT_INITIAL_EXEC constinit thread_local HeldCalls* innermost_held = nullptr;

}  // namespace

void HeldCalls::hold() noexcept {
  outer_ = std::exchange(innermost_held, this);
  holds_ = true;
}

void HeldCalls::make() noexcept {
  innermost_held = outer_;
  holds_ = false;
  if (!std::exchange(owed_, false)) return;
  sleeper_.make_call();
  sleeper_.finish_call();
}

bool HeldCalls::hold_back(Sleeper& sleeper) noexcept {
  for (HeldCalls* held = innermost_held; held != nullptr; held = held->outer_) {
    if (&held->sleeper_ != &sleeper) continue;
    // One call is enough for several reasons, because it comes after them.
    if (!std::exchange(held->owed_, true)) sleeper.begin_call();
    return true;
  }
  return false;
}

}  // namespace hwt::detail
