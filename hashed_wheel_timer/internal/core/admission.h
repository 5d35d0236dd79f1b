// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// Options::max_pending_timeouts: counts the pending timeouts exactly, if there is a limit. Any thread.
class alignas(kCacheLine) Admission {  // on a line of its own: every producer writes it
 public:
  /// `limit`: zero or less means no limit; then nothing is counted.
  explicit Admission(std::int64_t limit) noexcept : limit_(limit) {}

  bool limited() const noexcept { return limit_ > 0; }
  std::int64_t limit() const noexcept { return limit_; }
  /// Precondition: limited().
  std::int64_t pending() const noexcept { return admitted_.load(std::memory_order_acquire); }

  // Precondition of full() and admit(): limited().

  /// Returns whether the limit was reached a moment ago. Only admit() decides.
  bool full() const noexcept { return admitted_.load(std::memory_order_relaxed) >= limit_; }

  /// Counts a timeout. Returns false if the limit is reached.
  bool admit() noexcept {
    std::int64_t seen = admitted_.load(std::memory_order_relaxed);
    // A compare-exchange, because adding and taking back could refuse another thread although the limit is not reached.
    while (seen < limit_) {
      if (admitted_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  /// Counts the end of a timeout, if there is a limit. Returns whether it was the last one.
  bool release() noexcept { return limited() && admitted_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  std::atomic<std::int64_t> admitted_{0};
  const std::int64_t limit_;
};

}  // namespace hwt::internal
