// SPDX-License-Identifier: Apache-2.0
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

// The integers of these templates have 64 bits. They are parameters so that tests/arithmetic can prove them with
// symbolic ones.

/// Divides value * num by `den` without computing the product, by the binary digits of num, the highest first. If the
/// digits so far are those of a number n, then value * n is quotient * den + remainder.
template <class Word>
struct LongDivision {
  Word quotient{0};
  Word remainder{0};

  /// Does not overflow, because both are less than den, which is less than 2^63.
  constexpr void add(Word more, Word den) noexcept {
    remainder += more;
    if (remainder >= den) {
      remainder -= den;
      ++quotient;
    }
  }
  constexpr void take_digit(bool digit, Word value, Word den) noexcept {
    quotient *= 2;
    add(remainder, den);
    if (digit) add(value, den);
  }
};

/// Returns value * num / den, rounded up. Precondition: value < den, so the result fits, although the product may not.
template <class Word>
constexpr Word scale_up(Word value, std::uint64_t num, std::uint64_t den) noexcept {
  if (num <= (std::numeric_limits<std::uint64_t>::max)() / den - 1) return (value * num + (den - 1)) / den;
  LongDivision<Word> division;
  for (int digit = 63; digit >= 0; --digit) division.take_digit((num >> digit & 1) != 0, value, den);
  return division.remainder == 0 ? division.quotient : division.quotient + 1;
}

/// Returns count * num / den, rounded up and saturated at kMaxNanoseconds. `Count` may be wider than `Word`.
template <class Word, class Count>
constexpr Word scale(Count count, std::uint64_t num, std::uint64_t den) noexcept {
  constexpr auto kMax = static_cast<std::uint64_t>(kMaxNanoseconds);
  // Scales quotient and remainder separately, because count * num may not fit although the result does.
  const Count whole = count / static_cast<Count>(den);
  if (whole > static_cast<Count>(kMax / num)) return kMax;
  const Word value =
      static_cast<Word>(whole) * num + scale_up(static_cast<Word>(count % static_cast<Count>(den)), num, den);
  return value < kMax ? value : Word{kMax};
}

/// Returns the nanoseconds in `count` periods, rounded up and saturated. Precondition: count >= 0. Count is an integer
/// of 64 bits or more.
template <class Period, class Count>
constexpr std::int64_t periods_to_nanoseconds(Count count) noexcept {
  using NanosecondsPerPeriod = std::ratio_divide<Period, std::nano>;
  constexpr auto num = static_cast<std::uint64_t>(NanosecondsPerPeriod::num);
  constexpr auto den = static_cast<std::uint64_t>(NanosecondsPerPeriod::den);
  return static_cast<std::int64_t>(scale<std::uint64_t>(count, num, den));
}

/// Converts a count of periods to nanoseconds, rounded up and saturated. Precondition: count > 0.
template <class Period, class Rep>
constexpr std::int64_t positive_nanoseconds(Rep count) noexcept {
  // A little below kMaxNanoseconds, so that the conversion to an integer cannot overflow, however the product is
  // rounded.
  constexpr long double kAlmostMax = 9.2233720368547e18L;
  constexpr long double kPeriod = 1e9L * static_cast<long double>(Period::num) / static_cast<long double>(Period::den);
  if constexpr (std::chrono::treat_as_floating_point_v<Rep>) {
    const auto wide = static_cast<long double>(count);
    if (wide * kPeriod >= kAlmostMax) return kMaxNanoseconds;
    // Whole periods of whole nanoseconds as an integer, because their product may need more digits than a long double
    // has.
    constexpr std::int64_t kWhole = kPeriod < kAlmostMax ? static_cast<std::int64_t>(kPeriod) : 0;
    const std::int64_t periods = static_cast<long double>(kWhole) == kPeriod ? static_cast<std::int64_t>(wide) : 0;
    const std::int64_t whole = periods * kWhole;
    const long double rest = (wide - static_cast<long double>(periods)) * kPeriod;
    const auto down = static_cast<std::int64_t>(rest);
    // Rounded up. The product may be 0 for a very small count.
    const std::int64_t up = static_cast<long double>(down) < rest || (whole == 0 && down == 0) ? down + 1 : down;
    return up < kMaxNanoseconds - whole ? whole + up : kMaxNanoseconds;
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

/// Converts a count of periods to nanoseconds, rounded down and saturated. Precondition: count > 0, an integer.
template <class Period, class Rep>
constexpr std::int64_t whole_nanoseconds(Rep count) noexcept {
  const std::int64_t rounded_up = positive_nanoseconds<Period>(count);
  // Whole seconds have no fraction, and periods of centuries saturate.
  if constexpr (Period::den == 1 || Period::num / Period::den >= kMaxNanoseconds / std::nano::den) {
    return rounded_up;
  } else {
    using Count = std::conditional_t<(sizeof(Rep) > sizeof(std::uint64_t)), Rep, std::uint64_t>;
    // In lowest terms. So a fraction is left unless the denominator divides the count.
    constexpr auto kDen = static_cast<Count>(std::ratio_divide<Period, std::nano>::den);
    return static_cast<Count>(count) % kDen == 0 || rounded_up == kMaxNanoseconds ? rounded_up : rounded_up - 1;
  }
}

/// Returns a time since an epoch in nanoseconds, saturated. A fraction of a nanosecond becomes the next later one
/// (`kLater`) or the next earlier one, also before the epoch. The count is an integer.
template <bool kLater, class Rep, class Period>
constexpr std::chrono::nanoseconds saturating_time(std::chrono::duration<Rep, Period> since_epoch) noexcept {
  using std::chrono::nanoseconds;
  if constexpr (std::is_same_v<std::chrono::duration<Rep, Period>, nanoseconds>) {
    return since_epoch;
  } else {
    const Rep count = since_epoch.count();
    if (count == Rep{}) return nanoseconds::zero();
    if (count > Rep{}) {
      return nanoseconds(kLater ? positive_nanoseconds<Period>(count) : whole_nanoseconds<Period>(count));
    }
    const auto before = magnitude(count);
    return nanoseconds(-(kLater ? whole_nanoseconds<Period>(before) : positive_nanoseconds<Period>(before)));
  }
}

/// Returns zero for a negative delay and for NaN.
constexpr std::chrono::nanoseconds not_negative(std::chrono::nanoseconds delay) noexcept {
  return delay.count() < 0 ? std::chrono::nanoseconds(0) : delay;
}

/// Returns the time from `from` to `to`, which is not earlier, saturated at kMaxNanoseconds. Both were converted from
/// signed integers.
template <class Word>
constexpr Word distance(Word from, Word to) noexcept {
  constexpr auto kMax = static_cast<std::uint64_t>(kMaxNanoseconds);
  const Word exact = to - from;
  return exact < kMax ? exact : Word{kMax};
}

/// Returns to - from. Unsigned, because the distance may exceed nanoseconds::max(): a clock may begin far below zero.
constexpr std::uint64_t nanoseconds_between(std::chrono::steady_clock::time_point from,
                                            std::chrono::steady_clock::time_point to) noexcept {
  const auto count = [](std::chrono::steady_clock::time_point time) {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time.time_since_epoch()).count());
  };
  return count(to) - count(from);
}

/// Returns the time from `now` to `due`, or zero if `due` has passed. Returns max() if `due` is time_point::max(), or
/// if the distance does not fit.
constexpr std::chrono::nanoseconds time_until(std::chrono::steady_clock::time_point due,
                                              std::chrono::steady_clock::time_point now) noexcept {
  using std::chrono::nanoseconds;
  if (due == (std::chrono::steady_clock::time_point::max)()) return (nanoseconds::max)();
  if (due <= now) return nanoseconds::zero();
  return nanoseconds(static_cast<std::int64_t>(distance(std::uint64_t{0}, nanoseconds_between(now, due))));
}

}  // namespace hwt::detail
