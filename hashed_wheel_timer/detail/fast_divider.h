#pragma once

#include <bit>
#include <cstdint>

namespace hwt::detail {

/// A number to divide others by, again and again, rounding up: by one multiplication instead of a division, which takes
/// a processor five to ten times as long. Exact for all numbers; fast up to 2^63.
///
/// For n >= 1, n / d rounded up is floor((n - 1) / d) + 1, and that floor is (multiplier * n) >> (64 + shift): the
/// multiplier is the largest number below 2^(64 + shift) / d, so multiplier * d = 2^(64 + shift) - r with 1 <= r <= d,
/// and the exact product over 2^(64 + shift) is n / d - n * r / (d * 2^(64 + shift)). The shift is the least with
/// d <= 2^(1 + shift). So for n <= 2^63 what is taken off is more than 0 and at most 1 / d, and the result lies in
/// [(n - 1) / d, n / d), where no whole number begins but at its start. The multiplier has 64 bits at most.
/// Compare A. D. Robison, "N-Bit Unsigned Division Via N-Bit Multiply-Add" (2005).
class FastDivider {
 public:
  /// Not 0.
  constexpr explicit FastDivider(std::uint64_t divisor) noexcept : divisor_(divisor) {
#if defined(__SIZEOF_INT128__)
    shift_ = divisor > 2 ? static_cast<unsigned>(std::bit_width(divisor - 1)) - 1 : 0;
    const Wide below = shift_ == 0 ? Wide{~std::uint64_t{0}} : (Wide{1} << (64 + shift_)) - 1;
    multiplier_ = static_cast<std::uint64_t>(below / divisor);
#endif
  }

  constexpr std::uint64_t divisor() const noexcept { return divisor_; }

  /// n divided by the divisor, rounded up.
  constexpr std::uint64_t divide_rounding_up(std::uint64_t n) const noexcept {
#if defined(__SIZEOF_INT128__)
    if (n - 1 < kFastUpTo) [[likely]] {
      return (static_cast<std::uint64_t>(Wide{multiplier_} * n >> 64) >> shift_) + 1;
    }
#endif
    return n == 0 ? 0 : (n - 1) / divisor_ + 1;
  }

 private:
#if defined(__SIZEOF_INT128__)
  static constexpr std::uint64_t kFastUpTo = std::uint64_t{1} << 63;
  __extension__ typedef unsigned __int128 Wide;  // `using` cannot carry __extension__, which keeps -Wpedantic quiet
  std::uint64_t multiplier_ = 0;
  unsigned shift_ = 0;
#endif
  std::uint64_t divisor_;
};

}  // namespace hwt::detail
