// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hashed_wheel_timer/detail/export.h"

namespace hwt::detail {

/// The buckets of LatencyHistogram, each the values in (upper end of the one before, its own upper end], in
/// nanoseconds. The first ends at 125 ns; then each doubling is cut into eight. So every power of two in microseconds
/// is an upper end, and from 1 us on no bucket is wider than an eighth of where it begins. The last bucket holds values
/// above 2^32 us (an hour and eleven minutes).
struct LatencyBuckets {
  static constexpr std::size_t kCut = 8;
  static constexpr std::size_t kDoublings = 3 + 32;  // to a microsecond, and from there
  static constexpr std::size_t kCount = 1 + kDoublings * kCut + 1;
  static constexpr std::int64_t kFirstEnd = 125;
  /// The upper end of the last bucket that has one.
  static constexpr std::int64_t kLastEnd = kFirstEnd << kDoublings;

  /// Returns the bucket of any value. A negative value counts as 0.
  static constexpr std::size_t index_of(std::int64_t value) noexcept {
    if (value > kLastEnd) return kCount - 1;
    return index_within(value < 0 ? 0 : static_cast<std::uint64_t>(value));
  }

  /// Returns the bucket of a value up to kLastEnd. Takes few instructions, because the worker calls it for each
  /// timeout: the number of the bucket is the exponent of a double, with the first three bits of its fraction.
  static constexpr std::size_t index_within(std::uint64_t value) noexcept {
    // Subtracts half a nanosecond. So an upper end falls into its own bucket, and the rounding of the product moves no
    // value across an end. A signed number takes one instruction to convert.
    const double microseconds = static_cast<double>(static_cast<std::int64_t>(2 * value) - 1) * 0.0005;
    return static_cast<std::size_t>(prefix_of(microseconds < kInFirst ? kInFirst : microseconds) - prefix_of(kInFirst));
  }

  /// Returns the upper end of a bucket. Precondition: it is not the last bucket, which has none.
  static constexpr std::int64_t upper_end(std::size_t index) noexcept {
    if (index == 0) return kFirstEnd;
    const std::size_t eighths = kCut + (index - 1) % kCut + 1;
    // Rounds to the nearest nanosecond, and a half down, because index_within() subtracts half a nanosecond.
    return ((static_cast<std::int64_t>(eighths) * kFirstEnd << (index - 1) / kCut) + 3) /
           static_cast<std::int64_t>(kCut);
  }

 private:
  static_assert(std::numeric_limits<double>::is_iec559 && sizeof(double) == sizeof(std::uint64_t));

  static constexpr std::uint64_t prefix_of(double number) noexcept {
    return std::bit_cast<std::uint64_t>(number) >> (52 - std::countr_zero(kCut));
  }

  // The lower end of the last eighth below the end of the first bucket: 0.125 us * 15 / 16. Smaller values count as
  // this.
  static constexpr double kInFirst = 0.1171875;
};

}  // namespace hwt::detail
