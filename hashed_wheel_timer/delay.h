// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <type_traits>

#include "hashed_wheel_timer/detail/saturating.h"

namespace hwt {

/// The type of a parameter that takes any duration: integral or floating, of any period, and types with a conversion to
/// std::chrono::nanoseconds. Pass it by value; it has 8 bytes.
///
///   timer.new_timeout(task, 250ms);
///   timer.new_timeout(task, std::chrono::duration<double>(0.25));
///   timer.new_timeout(task, std::chrono::hours::max());                 // saturates: never
///   void retry_later(hwt::Timer& timer, hwt::Delay delay);              // functions of your own
///
/// Guarantees: a fraction of a nanosecond is rounded away from zero, so that nothing is early. Floating-point units
/// other than whole nanoseconds may err by half a nanosecond. A duration beyond 292 years becomes nanoseconds::max() or
/// -nanoseconds::max(). A NaN stays one, so that a function which takes a Delay can refuse it.
/// Threads: a value; each thread needs a copy of its own.
/// Not for: storing or calculating. Convert it to nanoseconds for that.
class Delay final {
 public:
  /// Makes a delay of zero.
  constexpr Delay() noexcept = default;

  /// Converts any duration.
  template <class Rep, class Period>
  constexpr Delay(std::chrono::duration<Rep, Period> delay) noexcept  // NOLINT(google-explicit-constructor)
      : delay_(detail::saturating_nanoseconds(delay)) {}

  /// Converts a type with a conversion to nanoseconds. Throws what that conversion throws.
  template <class Source>
    requires(!std::is_same_v<Source, Delay> && detail::ConvertsToNanoseconds<Source>)
  constexpr Delay(const Source& source)  // NOLINT(google-explicit-constructor)
      noexcept(std::is_nothrow_convertible_v<const Source&, std::chrono::nanoseconds>)
      : delay_(detail::saturating_nanoseconds(detail::as_nanoseconds(source))) {}

  /// Returns a value from -nanoseconds::max() to nanoseconds::max(), or nanoseconds::min() if this is a NaN.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator std::chrono::nanoseconds() const noexcept { return delay_; }

  /// Returns whether this delay was made from a NaN.
  constexpr bool is_nan() const noexcept { return delay_ == detail::kNaN; }

 private:
  std::chrono::nanoseconds delay_{};
};

}  // namespace hwt
