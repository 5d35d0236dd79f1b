// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/point.h"
#include "hashed_wheel_timer/detail/saturating.h"

namespace hwt {

namespace detail {
/// Returns the point of steady_clock, in nanoseconds since its epoch, at which the wall clock will show `wall`
/// nanoseconds since 1970, if nobody sets it. Never earlier. The end of the wall clock is the end of steady_clock.
HWT_API std::int64_t steady_time_of(std::int64_t wall) noexcept;
}  // namespace detail

/// When a timeout is due: after a delay, or at a deadline. The type of a parameter; pass it by value, it has 16 bytes.
///
///   timer.new_timeout(task, 250ms);                                     // a delay, of any duration; see Delay
///   timer.new_timeout(task, std::chrono::steady_clock::now() + 1s);     // a point of the timer's own clock
///   timer.new_timeout(task, deadline);                                  // a hwt::Deadline
///   timer.new_timeout(task, std::chrono::system_clock::now() + 24h);    // a point of the wall clock
///   void retry(hwt::Timer& timer, hwt::When when);                      // functions of your own
///
/// Guarantees:
/// - A delay begins when the timer takes the timeout. A negative delay is due now, one beyond the range of the clock is
///   never due. A function that takes a When refuses a NaN, unless it says what else it does.
/// - A deadline that has passed is due now, time_point::max() is never due. A fraction of a nanosecond counts as one.
///   A point beyond the range of the timer's clock becomes its end. A point of the timer's own clock costs no clock
///   reading.
/// - A point of the wall clock becomes one of steady_clock at once, here, in some ten nanoseconds. The result is exact,
///   or late by the time between two readings on this thread, and never early.
/// - Afterwards the timeout does not follow the wall clock: not if somebody sets it, if it has a leap second, or if the
///   system slews only this clock. On Linux steady_clock stands still while the machine is suspended.
/// Threads: a value; each thread needs a copy of its own.
/// Not for: storing a delay or calculating. If the time of a ManualTimer or PassiveWheel is not that of
/// steady_clock, a point of the wall clock means nothing to it.
class When final {
 public:
  /// A delay.
  [[gnu::always_inline]] constexpr When(Delay delay) noexcept  // NOLINT(google-explicit-constructor)
      : nanoseconds_(delay.is_nan() ? detail::kNaN.count() : detail::not_negative(delay).count()),
        is_deadline_(nanoseconds_ == detail::kMaxNanoseconds) {}
  /// A delay, of any duration.
  template <class Rep, class Period>
  [[gnu::always_inline]] constexpr When(  // NOLINT(google-explicit-constructor)
      std::chrono::duration<Rep, Period> delay) noexcept
      : When(Delay(delay)) {}
  /// A delay, of a type with a conversion to nanoseconds. Throws what that conversion throws.
  template <class Source>
    requires(!std::is_same_v<Source, Delay> && detail::ConvertsToNanoseconds<Source>)
  [[gnu::always_inline]] constexpr When(const Source& delay)  // NOLINT(google-explicit-constructor)
      noexcept(std::is_nothrow_convertible_v<const Source&, std::chrono::nanoseconds>)
      : When(Delay(delay)) {}

  /// A point of the timer's own clock, in any unit of an integer.
  template <class Duration>
    requires(!std::chrono::treat_as_floating_point_v<typename Duration::rep>)
  [[gnu::always_inline]] constexpr When(  // NOLINT(google-explicit-constructor)
      std::chrono::time_point<std::chrono::steady_clock, Duration> deadline) noexcept
      : nanoseconds_(detail::saturating_time<true>(deadline.time_since_epoch()).count()), is_deadline_(true) {}
  /// A point of the timer's own clock, of a type with a conversion to it, such as a Deadline. Throws what that
  /// conversion throws.
  template <class Source>
    requires detail::ConvertsToPoint<Source>
  [[gnu::always_inline]] constexpr When(const Source& deadline)  // NOLINT(google-explicit-constructor)
      noexcept(std::is_nothrow_convertible_v<const Source&, std::chrono::steady_clock::time_point>)
      : When(std::chrono::steady_clock::time_point(detail::Point(deadline))) {}

  /// A point of the wall clock, in any unit of an integer. Reads the clocks.
  template <class Duration>
    requires(!std::chrono::treat_as_floating_point_v<typename Duration::rep>)
  When(  // NOLINT(google-explicit-constructor)
      std::chrono::time_point<std::chrono::system_clock, Duration> deadline) noexcept
      : nanoseconds_(detail::steady_time_of(detail::saturating_time<true>(deadline.time_since_epoch()).count())),
        is_deadline_(true) {}

  /// Returns whether this is a delay that was made from a NaN.
  constexpr bool is_nan() const noexcept { return !is_deadline_ && nanoseconds_ == detail::kNaN.count(); }
  /// Returns whether this is a deadline. A delay that is never over counts as the deadline that never comes, because
  /// the clock of a ManualTimer may begin before its zero.
  constexpr bool is_deadline() const noexcept { return is_deadline_; }
  /// Returns the delay, zero or more, or the deadline since the epoch of steady_clock.
  constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }

  /// Returns the deadline in nanoseconds since the epoch. Calls now(), which returns the time of the clock, only for a
  /// delay. A sum beyond the range of the clock is its end. Precondition: !is_nan().
  template <class Now>
  constexpr std::int64_t deadline(Now&& now) const noexcept {
    if (is_deadline_) return nanoseconds_;
    const std::int64_t begin = now();
    return begin > detail::kMaxNanoseconds - nanoseconds_ ? detail::kMaxNanoseconds : begin + nanoseconds_;
  }

 private:
  std::int64_t nanoseconds_;
  bool is_deadline_ = false;
};

}  // namespace hwt
