// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/histogram.h"

namespace hwt::internal {

/// A LatencyHistogram that only the worker writes. Any thread may read it meanwhile.
class LatenessRecord {
 public:
  /// Adds `begun` minus `deadline`, or zero if that is negative. Only the worker calls it.
  void add(std::int64_t begun, std::int64_t deadline) noexcept {
    const std::uint64_t late = static_cast<std::uint64_t>(begun) - static_cast<std::uint64_t>(deadline);
    const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum_.load(std::memory_order_relaxed)) + late);
    // As an unsigned number, a negative lateness and one beyond the range are larger than the last end, too. `sum` is
    // negative if it has overflowed.
    if (late > static_cast<std::uint64_t>(Buckets::kLastEnd) || sum < 0) [[unlikely]]
      return add_rare(begun, deadline);
    store(static_cast<std::int64_t>(late), sum, Buckets::index_within(late));
  }

  /// Returns a copy. It has all values that were added before, if the caller has synchronized with the worker since.
  /// Values that are added meanwhile may be included or not. Sum and maximum may include values that are not counted
  /// yet, never the other way round. Any thread.
  LatencyHistogram snapshot() const noexcept {
    LatencyHistogram result;
    for (std::size_t i = 0; i < Buckets::kCount; ++i) {
      result.counts_[i] = counts_[i].load(std::memory_order_acquire);
      result.count_ += result.counts_[i];
    }
    result.sum_ = std::chrono::nanoseconds(sum_.load(std::memory_order_relaxed));
    result.max_ = std::chrono::nanoseconds(max_.load(std::memory_order_relaxed));
    return result;
  }

 private:
  using Buckets = detail::LatencyBuckets;

  void store(std::int64_t late, std::int64_t sum, std::size_t bucket) noexcept {
    if (late > max_.load(std::memory_order_relaxed)) max_.store(late, std::memory_order_relaxed);
    sum_.store(sum, std::memory_order_relaxed);
    std::atomic<std::uint64_t>& count = counts_[bucket];
    // release: with the acquire in snapshot(), a thread that sees a value counted finds it in the maximum and the sum.
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  [[gnu::noinline, gnu::cold]] void add_rare(std::int64_t begun, std::int64_t deadline) noexcept {
    std::int64_t late = 0;
    // A deadline may be further in the past than a duration goes.
    if (deadline < begun) late = deadline < 0 && begun > kMost + deadline ? kMost : begun - deadline;
    const std::int64_t sum = sum_.load(std::memory_order_relaxed);
    store(late, late > kMost - sum ? kMost : sum + late, Buckets::index_of(late));
  }

  static constexpr std::int64_t kMost = (std::chrono::nanoseconds::max)().count();

  // The worker's alone to write.
  std::atomic<std::int64_t> max_{0};
  std::atomic<std::int64_t> sum_{0};
  std::array<std::atomic<std::uint64_t>, Buckets::kCount> counts_{};
};

}  // namespace hwt::internal
