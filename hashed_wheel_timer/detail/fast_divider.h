// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace hwt::detail {

/// Divides by one divisor again and again, and multiplies instead, because a processor takes five to ten times as long
/// for a division. The result is exact for all numbers. It is fast up to kFastUpTo, if the compiler has integers of 128
/// bits.
///
/// Proof that for n in [1, 2^63] floor((n - 1) / d) is (multiplier * n) >> (64 + shift). Let P = 2^(64 + shift). The
/// multiplier m is the largest integer below P / d, so m * d = P - r with 1 <= r <= d. Hence m * n / P = n / d - n * r
/// / (d * P). The shift is the least with d <= 2^(1 + shift), so for n <= 2^63 the subtrahend is more than 0 and at
/// most 1 / d. The result lies in [(n - 1) / d, n / d). The only integer in this interval, if there is one, is its
/// start, so the two floors are equal. The multiplier has at most 64 bits. Compare A. D. Robison, "N-Bit Unsigned
/// Division Via N-Bit Multiply-Add" (2005).
class FastDivider {
 public:
  static constexpr std::uint64_t kFastUpTo = std::uint64_t{1} << 63;

  /// Precondition: divisor != 0.
  constexpr explicit FastDivider(std::uint64_t divisor) noexcept : divisor_(divisor) {
#if defined(__SIZEOF_INT128__)
    shift_ = divisor > 2 ? static_cast<unsigned>(std::bit_width(divisor - 1)) - 1 : 0;
    const Wide below = shift_ == 0 ? Wide{~std::uint64_t{0}} : (Wide{1} << (64 + shift_)) - 1;
    multiplier_ = static_cast<std::uint64_t>(below / divisor);
#endif
  }

  constexpr std::uint64_t divisor() const noexcept { return divisor_; }

  /// Returns (n - 1) / divisor, rounded down. Precondition: 1 <= n <= kFastUpTo.
  constexpr std::uint64_t divide_predecessor(std::uint64_t n) const noexcept {
#if defined(__SIZEOF_INT128__)
    return static_cast<std::uint64_t>(Wide{multiplier_} * n >> 64) >> shift_;
#else
    return (n - 1) / divisor_;
#endif
  }

  /// Returns n divided by the divisor, rounded up.
  constexpr std::uint64_t divide_rounding_up(std::uint64_t n) const noexcept {
    if (n - 1 < kFastUpTo) [[likely]]
      return divide_predecessor(n) + 1;
    return n == 0 ? 0 : (n - 1) / divisor_ + 1;
  }

 private:
  std::uint64_t divisor_;
#if defined(__SIZEOF_INT128__)
  __extension__ typedef unsigned __int128 Wide;  // `using` cannot carry __extension__, which keeps -Wpedantic quiet
  std::uint64_t multiplier_ = 0;
  unsigned shift_ = 0;
#endif
};

}  // namespace hwt::detail
