// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/detail/latency_buckets.h"

namespace hwt {

namespace internal {
class LatenessRecord;
}

/// Counts durations in buckets that grow with them. It takes 2 kB, whatever the number of values.
///
///   const hwt::LatencyHistogram lateness = timer.lateness();
///   log("p99 {} of {}", lateness.percentile(99), lateness.count());
///
/// Guarantees: from 1 us to 2^32 us (71 min) no bucket is wider than 12.5 % of its beginning. Buckets from 125 ns to
/// 1 us are about as narrow. One bucket takes everything up to 125 ns, and one everything beyond 71 min. Upper ends
/// belong to their buckets, and powers of two in microseconds are upper ends.
/// Threads: a value like any other; add() needs a lock if the object is shared.
/// Not for: exact values. Only max() and sum() are exact.
/// Source: HdrHistogram's layout.
struct LatencyHistogram {
  /// Adds a value. A negative value counts as zero.
  void add(std::chrono::nanoseconds value) noexcept {
    const std::int64_t clamped = std::max<std::int64_t>(value.count(), 0);
    ++counts_[Buckets::index_of(clamped)];
    ++count_;
    sum_ = std::chrono::nanoseconds(clamped > (std::chrono::nanoseconds::max)().count() - sum_.count()
                                        ? (std::chrono::nanoseconds::max)().count()
                                        : sum_.count() + clamped);
    max_ = (std::max)(max_, std::chrono::nanoseconds(clamped));
  }

  /// Returns the number of values.
  std::uint64_t count() const noexcept { return count_; }
  /// Returns the sum of all values. It stays at nanoseconds::max(), 292 years, once it is there.
  std::chrono::nanoseconds sum() const noexcept { return sum_; }
  /// Returns the largest value, or zero if there is none.
  std::chrono::nanoseconds(max)() const noexcept { return max_; }

  /// Returns the nearest rank: the smallest value that at least `p` percent of the values do not exceed. It is rounded
  /// up to the end of its bucket, in the last occupied bucket to max(). So a value from 125 ns to 71 min is at most
  /// 12.5 % too high. A smaller one becomes 125 ns at most, and a larger one max(). Returns zero if there is no value.
  /// A `p` outside of 0 .. 100 counts as the nearest end, NaN as 0.
  std::chrono::nanoseconds percentile(double p) const noexcept {
    const double wanted = std::ceil(p * static_cast<double>(count_) / 100);
    std::chrono::nanoseconds result{0};
    double seen = 0;
    for_each([&](std::chrono::nanoseconds upper, std::uint64_t count) {
      if (seen == 0 || seen < wanted) result = upper;
      seen += static_cast<double>(count);
    });
    return result;
  }

  /// Calls f(upper end, number of values) for each occupied bucket, in rising order. The end of the last one is max().
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t i = 0; i < Buckets::kCount; ++i) {
      if (counts_[i] != 0) f(i + 1 == Buckets::kCount ? max_ : upper_end(i), counts_[i]);
    }
  }

 private:
  using Buckets = detail::LatencyBuckets;
  friend class internal::LatenessRecord;

  std::chrono::nanoseconds upper_end(std::size_t index) const noexcept {
    return (std::min)(std::chrono::nanoseconds(Buckets::upper_end(index)), max_);
  }

  std::array<std::uint64_t, Buckets::kCount> counts_{};
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds sum_{0};
  std::chrono::nanoseconds max_{0};
};

}  // namespace hwt
