// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/platform/sleeper.h"

#include "hashed_wheel_timer/internal/platform/waiting.h"

namespace hwt::internal {

void Sleeper::wake_announced() noexcept {
  if (wake_until_.load(std::memory_order_acquire) == kAwake) return;
  // Without a worker, the exchange of the announcement alone decides which thread calls, not woken_from_. This thread
  // may read the number of a sleep just before its announcement. Then it would call nothing, but store the number in
  // woken_from_, and so keep later threads from calling.
  if (has_outside()) [[unlikely]]
    return call_outside();
  const std::uint64_t sleep = sleep_.load(std::memory_order_acquire);
  if (woken_from_.load(std::memory_order_acquire) == sleep) return;
  wake();
  woken_from_.store(sleep, std::memory_order_release);
}

[[gnu::noinline, gnu::cold]] void Sleeper::call_outside() noexcept {
  begin_call();
  if (wake_until_.exchange(kAwake, std::memory_order_acq_rel) != kAwake)
    outside_.load(std::memory_order_relaxed)->call();
  finish_call();
}

void Sleeper::finish_call() noexcept {
  if (calls_.fetch_sub(1, std::memory_order_release) == 1) announce_change(calls_);
}

bool Sleeper::end_calls() noexcept {
  wake_until_.exchange(kAwake, std::memory_order_acq_rel);
  return calls_.load(std::memory_order_acquire) == 0;
}

void Sleeper::wait_for_calls() noexcept {
  for (std::uint32_t seen = calls_.load(std::memory_order_acquire); seen != 0;
       seen = calls_.load(std::memory_order_acquire)) {
    await_change(calls_, seen);
  }
}

}  // namespace hwt::internal
