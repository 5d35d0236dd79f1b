#pragma once

#include <atomic>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// Options::max_pending_timeouts: counts the pending timeouts exactly, if there is a limit. Any thread.
class alignas(kCacheLine) Admission {  // on a line of its own: every producer writes it
 public:
  /// `limit` of zero or less: none, and nothing is counted.
  explicit Admission(std::int64_t limit) noexcept : limit_(limit) {}

  bool limited() const noexcept { return limit_ > 0; }
  std::int64_t limit() const noexcept { return limit_; }
  /// Precondition: limited().
  std::int64_t pending() const noexcept { return admitted_.load(std::memory_order_acquire); }

  // Only where there is a limit.

  /// No more than a look: admit() decides.
  bool full() const noexcept { return admitted_.load(std::memory_order_relaxed) >= limit_; }

  /// One more. False: the limit has been reached.
  bool admit() noexcept {
    std::int64_t seen = admitted_.load(std::memory_order_relaxed);
    // Compare-exchange, not add and take back: a transient excess would refuse others below the limit.
    while (seen < limit_) {
      if (admitted_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  /// One less. True: that was the last.
  bool release() noexcept { return limited() && admitted_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  std::atomic<std::int64_t> admitted_{0};
  const std::int64_t limit_;
};

}  // namespace hwt::internal
