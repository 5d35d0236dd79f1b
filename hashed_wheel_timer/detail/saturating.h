#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

#include "hashed_wheel_timer/detail/export.h"

// Converts any duration to nanoseconds. Rounds away from zero, and saturates instead of overflowing.

namespace hwt::detail {

inline constexpr std::int64_t kMaxNanoseconds = (std::chrono::nanoseconds::max)().count();

/// Stands for NaN. No other value is converted to it.
inline constexpr std::chrono::nanoseconds kNaN = (std::chrono::nanoseconds::min)();

template <class Rep, class Period>
void takes_duration(const std::chrono::duration<Rep, Period>&);

/// A duration, or a type derived from one.
template <class T>
concept Duration = requires(const T& value) { takes_duration(value); };

/// A type that is no duration but converts to nanoseconds, such as an atomic or a setting.
template <class T>
concept ConvertsToNanoseconds = !Duration<T> && std::is_convertible_v<const T&, std::chrono::nanoseconds>;

/// Returns its argument. The implicit conversion of the argument uses the type's conversion operator, where a cast
/// could choose a constructor of nanoseconds.
constexpr std::chrono::nanoseconds as_nanoseconds(std::chrono::nanoseconds value) noexcept { return value; }

template <class Rep, class Period>
constexpr bool is_nan([[maybe_unused]] std::chrono::duration<Rep, Period> value) noexcept {
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    return !(value.count() <= Rep{} || value.count() >= Rep{});
  } else {
    return false;
  }
}

/// Returns `value`, but min() + 1 for min(), which would mean NaN.
constexpr std::chrono::nanoseconds saturating_nanoseconds(std::chrono::nanoseconds value) noexcept {
  return value == kNaN ? kNaN + std::chrono::nanoseconds(1) : value;
}

/// Returns value * num / den, rounded up. Precondition: value < den, so the result fits, although the product may not.
constexpr std::uint64_t scale_up(std::uint64_t value, std::uint64_t num, std::uint64_t den) noexcept {
  if (num <= (std::numeric_limits<std::uint64_t>::max)() / den - 1) return (value * num + den - 1) / den;
  // Long division, one binary digit of num at a time. The variables are those of value * (the digits so far) / den.
  std::uint64_t quotient = 0;
  std::uint64_t remainder = 0;
  const auto add = [&](std::uint64_t more) {  // no overflow: both are less than den, which is less than 2^63
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

/// Returns the nanoseconds in `count` periods, rounded up and saturated. Precondition: count >= 0. Count is an integer
/// of 64 bits or more.
template <class Period, class Count>
constexpr std::int64_t periods_to_nanoseconds(Count count) noexcept {
  using NanosecondsPerPeriod = std::ratio_divide<Period, std::nano>;
  constexpr auto num = static_cast<std::uint64_t>(NanosecondsPerPeriod::num);
  constexpr auto den = static_cast<std::uint64_t>(NanosecondsPerPeriod::den);
  constexpr auto kMax = static_cast<std::uint64_t>(kMaxNanoseconds);
  // Scales quotient and remainder separately, because count * num may not fit although the result does.
  const Count whole = count / static_cast<Count>(den);
  if (whole > static_cast<Count>(kMax / num)) return kMaxNanoseconds;
  const std::uint64_t value = static_cast<std::uint64_t>(whole) * num +
                              scale_up(static_cast<std::uint64_t>(count % static_cast<Count>(den)), num, den);
  return value < kMax ? static_cast<std::int64_t>(value) : kMaxNanoseconds;
}

/// Converts a count of periods to nanoseconds, rounded up and saturated. Precondition: count > 0.
template <class Period, class Rep>
constexpr std::int64_t positive_nanoseconds(Rep count) noexcept {
  // A little below kMaxNanoseconds, so that the conversion to an integer cannot overflow, however the product is
  // rounded.
  constexpr long double kAlmostMax = 9.2233720368547e18L;
  constexpr long double kPeriod = 1e9L * static_cast<long double>(Period::num) / static_cast<long double>(Period::den);
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    const long double exact = static_cast<long double>(count) * kPeriod;
    if (exact >= kAlmostMax) return kMaxNanoseconds;
    const auto whole = static_cast<std::int64_t>(exact);
    // The product may be 0 for a very small count.
    return static_cast<long double>(whole) < exact || whole == 0 ? whole + 1 : whole;
  } else if constexpr (kPeriod >= kAlmostMax) {
    return kMaxNanoseconds;
  } else if constexpr (sizeof(Rep) > sizeof(std::uint64_t)) {
    return periods_to_nanoseconds<Period>(count);
  } else {
    return periods_to_nanoseconds<Period>(static_cast<std::uint64_t>(count));
  }
}

/// Returns -count for a negative count. Does not overflow for the lowest integer.
template <class Rep>
constexpr auto magnitude(Rep count) noexcept {
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    return -count;
  } else if constexpr (sizeof(Rep) > sizeof(std::uint64_t)) {
    using Limits = std::numeric_limits<Rep>;
    return count == (Limits::min)() ? (Limits::max)() : static_cast<Rep>(Rep{} - count);
  } else {
    return 0 - static_cast<std::uint64_t>(count);
  }
}

/// Returns a value in [-nanoseconds::max(), nanoseconds::max()], or kNaN for a NaN. Larger values saturate, and a
/// fraction of a nanosecond is rounded away from zero.
template <class Rep, class Period>
constexpr std::chrono::nanoseconds saturating_nanoseconds(std::chrono::duration<Rep, Period> value) noexcept {
  const Rep count = value.count();
  if (count > Rep{}) [[likely]]
    return std::chrono::nanoseconds(positive_nanoseconds<Period>(count));
  if (count < Rep{}) return std::chrono::nanoseconds(-positive_nanoseconds<Period>(magnitude(count)));
  return is_nan(value) ? kNaN : std::chrono::nanoseconds(0);
}

/// Returns zero for a negative delay and for NaN.
constexpr std::chrono::nanoseconds not_negative(std::chrono::nanoseconds delay) noexcept {
  return delay.count() < 0 ? std::chrono::nanoseconds(0) : delay;
}

/// Returns the time from `now` to `due`, or zero if `due` has passed. Returns max() if `due` is time_point::max(), or
/// if the distance does not fit, because `now` may be far below zero.
constexpr std::chrono::nanoseconds time_until(std::chrono::steady_clock::time_point due,
                                              std::chrono::steady_clock::time_point now) noexcept {
  using std::chrono::nanoseconds;
  if (due == (std::chrono::steady_clock::time_point::max)()) return (nanoseconds::max)();
  if (due <= now) return nanoseconds::zero();
  const auto count = [](std::chrono::steady_clock::time_point time) {
    return static_cast<std::uint64_t>(nanoseconds(time.time_since_epoch()).count());
  };
  const std::uint64_t distance = count(due) - count(now);
  constexpr auto kMax = static_cast<std::uint64_t>(kMaxNanoseconds);
  return nanoseconds(static_cast<std::int64_t>(distance < kMax ? distance : kMax));
}

}  // namespace hwt::detail
