// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace hwt::detail {

#if defined(__SIZEOF_INT128__)
/// Divides 1 .. 2^63 by one divisor, rounding up, by a multiplication. `Word` has 64 bits and `Wide` has 128. They are
/// parameters so that tests/arithmetic can prove it with symbolic integers.
///
/// Proof. For n >= 1, n / d rounded up is floor((n - 1) / d) + 1. We show that this floor is
/// (multiplier * n) >> (64 + shift). Let P = 2^(64 + shift). The multiplier m is the largest integer below P / d, so
/// m * d = P - r with 1 <= r <= d. Hence m * n / P = n / d - n * r / (d * P). The shift is the least with
/// d <= 2^(1 + shift), so for n <= 2^63 the subtrahend is more than 0 and at most 1 / d. The result lies in
/// [(n - 1) / d, n / d). The only integer in this interval, if there is one, is its start, so the two floors are equal.
/// The multiplier has at most 64 bits.
/// Compare A. D. Robison, "N-Bit Unsigned Division Via N-Bit Multiply-Add" (2005).
template <class Word, class Wide>
class Reciprocal {
 public:
  /// Precondition: divisor != 0.
  constexpr explicit Reciprocal(Word divisor) noexcept {
    using std::bit_width;
    shift_ = divisor > 2 ? static_cast<unsigned>(bit_width(divisor - 1)) - 1 : 0;
    const Wide below = shift_ == 0 ? Wide{~std::uint64_t{0}} : (Wide{1} << (64 + shift_)) - 1;
    multiplier_ = static_cast<Word>(below / Wide{divisor});
  }

  /// Returns n divided by the divisor, rounded up. Precondition: 1 <= n <= 2^63.
  constexpr Word multiply(Word n) const noexcept {
    return (static_cast<Word>(Wide{multiplier_} * Wide{n} >> 64) >> shift_) + 1;
  }

 protected:
  Word multiplier_{0};
  unsigned shift_ = 0;
};
#endif

/// Divides by one divisor again and again, rounding up. It multiplies instead, because a processor takes five to ten
/// times as long for a division. The result is exact for all numbers. It is fast up to 2^63, if the compiler has
/// integers of 128 bits.
class FastDivider {
 public:
  /// Precondition: divisor != 0.
  constexpr explicit FastDivider(std::uint64_t divisor) noexcept : divisor_(divisor) {}

  constexpr std::uint64_t divisor() const noexcept { return divisor_; }

  /// Returns n divided by the divisor, rounded up.
  constexpr std::uint64_t divide_rounding_up(std::uint64_t n) const noexcept {
#if defined(__SIZEOF_INT128__)
    if (n - 1 < kFastUpTo) [[likely]]
      return reciprocal_.multiply(n);
#endif
    return n == 0 ? 0 : (n - 1) / divisor_ + 1;
  }

 private:
  std::uint64_t divisor_;
#if defined(__SIZEOF_INT128__)
  static constexpr std::uint64_t kFastUpTo = std::uint64_t{1} << 63;
  __extension__ typedef unsigned __int128 Wide;  // `using` cannot carry __extension__, which keeps -Wpedantic quiet
  Reciprocal<std::uint64_t, Wide> reciprocal_{divisor_};
#endif
};

}  // namespace hwt::detail
