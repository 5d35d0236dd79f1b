#include "histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace rpc {
namespace {

// Below 256 ns a bucket is one nanosecond; above, each power of two is cut into 128.
constexpr int kSubBucketBits = 7;
constexpr std::size_t kSubBuckets = std::size_t{1} << kSubBucketBits;
constexpr std::size_t kBuckets = (63 - kSubBucketBits + 1) * kSubBuckets;

std::size_t index_of(std::int64_t value) {
  const auto v = static_cast<std::uint64_t>(value);
  if (v < 2 * kSubBuckets) return static_cast<std::size_t>(v);
  const auto shift = static_cast<std::size_t>(std::bit_width(v)) - (kSubBucketBits + 1);
  return shift * kSubBuckets + static_cast<std::size_t>(v >> shift);
}

struct Range {
  double from;
  double width;
};

Range range_of(std::size_t index) {
  if (index < 2 * kSubBuckets) return {static_cast<double>(index), 1};
  const std::size_t shift = index / kSubBuckets - 1;
  return {std::ldexp(static_cast<double>(index - shift * kSubBuckets), static_cast<int>(shift)),
          std::ldexp(1.0, static_cast<int>(shift))};
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets) {}

void Histogram::record(std::chrono::nanoseconds value) {
  const std::int64_t ns = std::max<std::int64_t>(0, value.count());
  ++buckets_[index_of(ns)];
  min_ = count_ == 0 ? ns : std::min(min_, ns);
  max_ = std::max(max_, ns);
  ++count_;
}

std::chrono::nanoseconds Histogram::quantile(double q) const {
  const double rank = std::max(1.0, std::ceil(q * static_cast<double>(count_)));
  std::int64_t seen = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (static_cast<double>(seen) >= rank) {
      const Range range = range_of(i);
      return std::chrono::nanoseconds(std::min(max_, static_cast<std::int64_t>(range.from + range.width) - 1));
    }
  }
  return max();
}

double Histogram::count_between(double from, double to) const {
  double sum = 0;
  if (count_ == 0 || to <= from) return sum;
  for (std::size_t i = index_of(std::max<std::int64_t>(0, static_cast<std::int64_t>(from))); i < buckets_.size(); ++i) {
    const Range range = range_of(i);
    if (range.from >= to) break;
    const double inside = std::min(to, range.from + range.width) - std::max(from, range.from);
    sum += static_cast<double>(buckets_[i]) * std::max(0.0, inside) / range.width;
  }
  return sum;
}

}  // namespace rpc
