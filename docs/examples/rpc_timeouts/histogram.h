#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace rpc {

/// Counts durations in buckets of 0.8 % width, as HdrHistogram does: 57 KiB however long the run. For one thread.
class Histogram {
 public:
  Histogram();

  /// A negative value counts as 0.
  void record(std::chrono::nanoseconds value);

  std::int64_t count() const { return count_; }
  std::chrono::nanoseconds min() const { return std::chrono::nanoseconds(min_); }
  std::chrono::nanoseconds max() const { return std::chrono::nanoseconds(max_); }

  /// The value that a share of `q` does not exceed, rounded up to its bucket; 0 when empty.
  std::chrono::nanoseconds quantile(double q) const;

  /// How many lie in [from, to) nanoseconds; a bucket that is cut counts by the part inside.
  double count_between(double from, double to) const;

 private:
  std::vector<std::int64_t> buckets_;
  std::int64_t count_ = 0;
  std::int64_t min_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace rpc
