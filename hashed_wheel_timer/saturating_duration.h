#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace hwt::detail {

/// True for a delay that is not a number: the only delay that new_timeout() refuses.
template <class Rep, class Period>
constexpr bool is_nan([[maybe_unused]] std::chrono::duration<Rep, Period> delay) noexcept {
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    return delay.count() != delay.count();
  } else {
    return false;
  }
}

/// Any duration as nanoseconds in [0, max]: a negative one is due now, one beyond 292 years saturates, a fraction of a
/// nanosecond rounds up so that nothing is ever early.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturating_nanoseconds(std::chrono::duration<Rep, Period> delay) noexcept {
  using std::chrono::nanoseconds;
  using ToNano = std::ratio_divide<Period, std::nano>;
  if (!(delay.count() > Rep{})) return nanoseconds::zero();
  // Compared as floating point a little below the limit, so that no rounding can let the integer conversion overflow.
  constexpr long double kAlmostMax = 9.2233720368547e18L;
  const long double approximate = static_cast<long double>(delay.count()) * static_cast<long double>(ToNano::num) /
                                  static_cast<long double>(ToNano::den);
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    if (approximate >= kAlmostMax) return nanoseconds::max();
    const auto whole = static_cast<std::int64_t>(approximate);
    return nanoseconds(static_cast<long double>(whole) < approximate ? whole + 1 : whole);
  } else if constexpr (ToNano::num == 1 && ToNano::den == 1 && sizeof(Rep) <= sizeof(std::int64_t) &&
                       std::is_signed_v<Rep>) {
    return nanoseconds(static_cast<std::int64_t>(delay.count()));
  } else {
    if (approximate >= kAlmostMax) return nanoseconds::max();
    // Quotient and remainder apart: count * num may not fit although the result does.
    const auto count = static_cast<std::uint64_t>(delay.count());
    constexpr auto num = static_cast<std::uint64_t>(ToNano::num);
    constexpr auto den = static_cast<std::uint64_t>(ToNano::den);
    const std::uint64_t value = count / den * num + (count % den * num + den - 1) / den;
    return nanoseconds(static_cast<std::int64_t>(value));
  }
}

}  // namespace hwt::detail
