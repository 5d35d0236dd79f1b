// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "hashed_wheel_timer/stats.h"

namespace hwt::internal {

/// A counter with one writer at a time. It costs a plain addition, not a read-modify-write on a shared cache line.
class OwnedCounter {
 public:
  void add(std::int64_t n) noexcept {
    // release: a thread that reads the sum with acquire sees whatever happened before, so that counters can be
    // compared.
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }
  std::int64_t get() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// The counters of one producer. Only its owner writes them.
struct ProducerCounters {
  OwnedCounter scheduled;
  OwnedCounter cancelled;
  OwnedCounter rejected;

  /// Adds all but `scheduled`, which a reader adds later, after the ends of all producers.
  void add_to(TimerStats& stats) const noexcept {
    stats.cancelled += cancelled.get();
    stats.rejected += rejected.get();
  }
};

}  // namespace hwt::internal
