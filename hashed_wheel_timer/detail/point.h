// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <type_traits>

#include "hashed_wheel_timer/detail/saturating.h"

namespace hwt::detail {

template <class Duration>
void takes_point(const std::chrono::time_point<std::chrono::steady_clock, Duration>&);

/// A time_point of steady_clock, of any precision.
template <class T>
concept PointOfSteadyClock = requires(const T& value) { takes_point(value); };

/// A type that is no time_point but converts to one, such as hwt::Deadline.
template <class T>
concept ConvertsToPoint =
    !PointOfSteadyClock<T> && std::is_convertible_v<const T&, std::chrono::steady_clock::time_point>;

/// The type of a parameter that takes a point of the timer's clock in any unit of an integer. A point beyond the range
/// of the clock becomes its end, where a conversion by <chrono> would overflow. A fraction of a nanosecond is rounded
/// to the next later one (`kLater`) or the next earlier one.
template <bool kLater>
class BasicPoint final {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// Makes the epoch of the clock, as time_point() does.
  constexpr BasicPoint() noexcept = default;
  template <class Duration>
    requires(!std::chrono::treat_as_floating_point_v<typename Duration::rep>)
  constexpr BasicPoint(  // NOLINT(google-explicit-constructor)
      std::chrono::time_point<std::chrono::steady_clock, Duration> point) noexcept
      : point_(saturating_time<kLater>(point.time_since_epoch())) {}
  template <class Source>
    requires(!std::is_same_v<Source, BasicPoint> && ConvertsToPoint<Source>)
  constexpr BasicPoint(const Source& source)  // NOLINT(google-explicit-constructor)
      noexcept(std::is_nothrow_convertible_v<const Source&, time_point>)
      : point_(saturating_time<kLater>(time_point(source).time_since_epoch())) {}

  constexpr operator time_point() const noexcept { return point_; }  // NOLINT(google-explicit-constructor)

 private:
  time_point point_{};
};

/// A deadline is not earlier than the point that was given.
using Point = BasicPoint<true>;
/// A present time is not later than the point that was given. So no deadline seems to have come before it has. A delay
/// that begins at it may be early by a fraction of a nanosecond.
using PresentTime = BasicPoint<false>;

}  // namespace hwt::detail
