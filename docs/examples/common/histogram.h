#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

namespace common {

/// Counts durations in buckets of 0.8 % width, as HdrHistogram does. It takes 57 KiB. For one thread.
class Histogram {
 public:
  /// Counts a negative value as 0.
  void record(std::chrono::nanoseconds value) {
    value = std::max(value, std::chrono::nanoseconds(0));
    ++buckets_[index_of(static_cast<std::uint64_t>(value.count()))];
    min_ = count_ == 0 ? value : std::min(min_, value);
    max_ = std::max(max_, value);
    ++count_;
  }

  std::int64_t count() const { return count_; }
  std::chrono::nanoseconds min() const { return min_; }
  std::chrono::nanoseconds max() const { return max_; }

  /// Returns the value that a share of `q` does not exceed, rounded up to its bucket; 0 when empty.
  std::chrono::nanoseconds quantile(double q) const {
    const double rank = std::max(1.0, std::ceil(q * static_cast<double>(count_)));
    double seen = 0;
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      seen += static_cast<double>(buckets_[i]);
      if (seen >= rank) return std::min(max_, std::chrono::nanoseconds(static_cast<std::int64_t>(begin_of(i + 1)) - 1));
    }
    return max_;
  }

  /// Returns the number of values in [from, to) nanoseconds. A bucket that is cut counts in proportion.
  double count_between(double from, double to) const {
    double sum = 0;
    for (std::size_t i = index_of(static_cast<std::uint64_t>(std::max(0.0, from))); i < kBuckets; ++i) {
      const double begin = begin_of(i);
      const double end = begin_of(i + 1);
      if (begin >= to) break;
      sum +=
          static_cast<double>(buckets_[i]) * std::max(0.0, std::min(to, end) - std::max(from, begin)) / (end - begin);
    }
    return sum;
  }

 private:
  // Below 256 ns a bucket is one nanosecond. Above, each power of two has 128 buckets.
  static constexpr std::size_t kBits = 7;
  static constexpr std::size_t kCut = std::size_t{1} << kBits;
  static constexpr std::size_t kBuckets = (63 - kBits + 1) * kCut;

  static std::size_t index_of(std::uint64_t value) {
    if (value < 2 * kCut) return static_cast<std::size_t>(value);
    const auto shift = static_cast<std::size_t>(std::bit_width(value)) - (kBits + 1);
    return shift * kCut + static_cast<std::size_t>(value >> shift);
  }
  static double begin_of(std::size_t index) {
    if (index < 2 * kCut) return static_cast<double>(index);
    const std::size_t shift = index / kCut - 1;
    return std::ldexp(static_cast<double>(index - shift * kCut), static_cast<int>(shift));
  }

  std::vector<std::int64_t> buckets_ = std::vector<std::int64_t>(kBuckets);
  std::int64_t count_ = 0;
  std::chrono::nanoseconds min_{0};
  std::chrono::nanoseconds max_{0};
};

}  // namespace common
