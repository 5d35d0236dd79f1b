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
    return !(delay.count() <= Rep{} || delay.count() >= Rep{});
  } else {
    return false;
  }
}

/// value * num / den, rounded up, for value < den: so the result fits, but the product may not.
constexpr std::uint64_t scale_up(std::uint64_t value, std::uint64_t num, std::uint64_t den) noexcept {
  if (num <= (std::numeric_limits<std::uint64_t>::max)() / den - 1) return (value * num + den - 1) / den;
  // Digit by digit of num in base two: quotient and remainder of value * (the digits so far) / den.
  std::uint64_t quotient = 0;
  std::uint64_t remainder = 0;
  const auto add = [&](std::uint64_t more) {  // both are less than den, which is less than 2^63
    remainder += more;
    if (remainder >= den) {
      remainder -= den;
      ++quotient;
    }
  };
  for (int digit = 63; digit >= 0; --digit) {
    quotient *= 2;
    add(remainder);
    if ((num >> digit & 1) != 0) add(value);
  }
  return remainder == 0 ? quotient : quotient + 1;
}

/// Any duration as nanoseconds in [0, max]: a negative one is due now, one beyond 292 years saturates, a fraction of a
/// nanosecond rounds up so that nothing is ever early.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturating_nanoseconds(std::chrono::duration<Rep, Period> delay) noexcept {
  using std::chrono::nanoseconds;
  if (!(delay.count() > Rep{})) return nanoseconds::zero();
  // A little below the limit, so that no rounding can let the conversion to an integer overflow.
  constexpr long double kAlmostMax = 9.2233720368547e18L;
  constexpr long double kPeriod = 1e9L * static_cast<long double>(Period::num) / static_cast<long double>(Period::den);
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    const long double exact = static_cast<long double>(delay.count()) * kPeriod;
    if (exact >= kAlmostMax) return (nanoseconds::max)();
    const auto whole = static_cast<std::int64_t>(exact);
    return nanoseconds(static_cast<long double>(whole) < exact ? whole + 1 : whole);
  } else if constexpr (kPeriod >= kAlmostMax) {
    return (nanoseconds::max)();
  } else {
    using ToNano = std::ratio_divide<Period, std::nano>;
    constexpr auto num = static_cast<std::uint64_t>(ToNano::num);
    constexpr auto den = static_cast<std::uint64_t>(ToNano::den);
    if constexpr (sizeof(Rep) > sizeof(std::uint64_t)) {
      if (delay.count() > static_cast<Rep>((std::numeric_limits<std::uint64_t>::max)())) return (nanoseconds::max)();
    }
    const auto count = static_cast<std::uint64_t>(delay.count());
    if constexpr (den == 1) {
      if (count > static_cast<std::uint64_t>((nanoseconds::max)().count()) / num) return (nanoseconds::max)();
    } else if constexpr (constexpr long double kMaxCount = kAlmostMax / kPeriod; kMaxCount < 1.8e19L) {
      if (count > static_cast<std::uint64_t>(kMaxCount)) return (nanoseconds::max)();
    }
    // Quotient and remainder apart: count * num may not fit although the result does.
    const std::uint64_t value = count / den * num + scale_up(count % den, num, den);
    constexpr auto kMax = static_cast<std::uint64_t>((nanoseconds::max)().count());
    return nanoseconds(static_cast<std::int64_t>(value < kMax ? value : kMax));
  }
}

/// From `now` to `due`: zero when that has passed; max() when it is the end of time, or farther than nanoseconds reach:
/// a clock may begin far below zero.
constexpr std::chrono::nanoseconds time_until(std::chrono::steady_clock::time_point due,
                                              std::chrono::steady_clock::time_point now) noexcept {
  using std::chrono::nanoseconds;
  if (due == (std::chrono::steady_clock::time_point::max)()) return (nanoseconds::max)();
  if (due <= now) return nanoseconds::zero();
  const auto count = [](std::chrono::steady_clock::time_point time) {
    return static_cast<std::uint64_t>(nanoseconds(time.time_since_epoch()).count());
  };
  const std::uint64_t distance = count(due) - count(now);
  constexpr auto kMax = static_cast<std::uint64_t>((nanoseconds::max)().count());
  return nanoseconds(static_cast<std::int64_t>(distance < kMax ? distance : kMax));
}

template <class T>
inline constexpr bool is_duration = false;
template <class Rep, class Period>
inline constexpr bool is_duration<std::chrono::duration<Rep, Period>> = true;

/// A parameter that takes what std::chrono::nanoseconds takes, but for which no unit overflows on its way: hours::max()
/// arrives as nanoseconds::max(), and hours::min() as nanoseconds::min().
class Span {
 public:
  constexpr Span() noexcept : span_() {}
  constexpr Span(std::chrono::nanoseconds span) noexcept : span_(span) {}  // NOLINT(google-explicit-constructor)
  template <class Rep, class Period>
  requires std::is_convertible_v<std::chrono::duration<Rep, Period>, std::chrono::nanoseconds>
  constexpr Span(std::chrono::duration<Rep, Period> span) noexcept  // NOLINT(google-explicit-constructor)
      : span_(span.count() < Rep{} ? negative(span) : saturating_nanoseconds(span)) {}

  /// What converts by an operator of its own: an atomic, a setting.
  template <class Source>
  requires(!is_duration<Source> && !std::is_same_v<Source, Span> &&
           std::is_convertible_v<const Source&, std::chrono::nanoseconds>) constexpr Span(const Source& source)
      : span_(source) {}  // NOLINT(google-explicit-constructor)

  constexpr operator std::chrono::nanoseconds() const noexcept { return span_; }  // NOLINT(google-explicit-constructor)

 private:
  template <class Rep, class Period>
  static constexpr std::chrono::nanoseconds negative(std::chrono::duration<Rep, Period> span) noexcept {
    constexpr std::chrono::nanoseconds kMin = (std::chrono::nanoseconds::min)();
    if constexpr (std::is_unsigned_v<Rep>) {
      return kMin;  // never called
    } else {
      constexpr std::intmax_t kNanoseconds = std::ratio_divide<Period, std::nano>::num;
      return span.count() < kMin.count() / kNanoseconds ? kMin : std::chrono::nanoseconds(span);
    }
  }

  std::chrono::nanoseconds span_;
};

}  // namespace hwt::detail
