#pragma once

#include <chrono>
#include <type_traits>

#include "hashed_wheel_timer/detail/saturating.h"

namespace hwt {

/// The type of a parameter that takes any duration: integral or floating, of any period, and what becomes
/// std::chrono::nanoseconds by an operator of its own. 8 bytes, to be passed by value.
///
///   timer.new_timeout(task, 250ms);
///   timer.new_timeout(task, std::chrono::duration<double>(0.25));
///   timer.new_timeout(task, std::chrono::hours::max());                 // saturates: never
///   void retry_later(hwt::Timer& timer, hwt::Delay delay);              // functions of your own
///
/// Guarantees: a fraction of a nanosecond is rounded away from zero, so nothing is ever early; what is beyond 292
/// years is nanoseconds::max(), or its negative; the sign stays; a NaN stays one, so that whoever takes a Delay can
/// refuse it.
/// Threads: a value; each thread needs a copy of its own.
/// Not for: storing or calculating; take nanoseconds from it for that.
class Delay final {
 public:
  /// Zero.
  constexpr Delay() noexcept = default;

  /// Any duration.
  template <class Rep, class Period>
  constexpr Delay(std::chrono::duration<Rep, Period> delay) noexcept  // NOLINT(google-explicit-constructor)
      : delay_(detail::saturating_nanoseconds(delay)) {}

  /// What becomes nanoseconds by an operator of its own. Throws what that operator throws.
  template <class Source>
    requires(!std::is_same_v<Source, Delay> && detail::ConvertsToNanoseconds<Source>)
  constexpr Delay(const Source& source)  // NOLINT(google-explicit-constructor)
      noexcept(std::is_nothrow_convertible_v<const Source&, std::chrono::nanoseconds>)
      : delay_(detail::saturating_nanoseconds(detail::as_nanoseconds(source))) {}

  /// -nanoseconds::max() .. nanoseconds::max(); nanoseconds::min() for a NaN, and for nothing else.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator std::chrono::nanoseconds() const noexcept { return delay_; }

  /// It came from a floating NaN.
  constexpr bool is_nan() const noexcept { return delay_ == detail::kNaN; }

 private:
  std::chrono::nanoseconds delay_{};
};

}  // namespace hwt
