#pragma once

#include <chrono>
#include <cstdint>

#include "hashed_wheel_timer/delay.h"

namespace hwt::detail {

/// When a timeout is due: after a delay from the moment at which the timer takes it, or at a deadline of its clock.
class When {
 public:
  /// A negative delay counts as zero. A NaN stays one: see is_nan().
  constexpr When(Delay delay) noexcept  // NOLINT(google-explicit-constructor)
      : nanoseconds_(delay.is_nan() ? kNaN.count() : not_negative(delay).count()) {}
  constexpr When(std::chrono::steady_clock::time_point deadline) noexcept  // NOLINT(google-explicit-constructor)
      : nanoseconds_(std::chrono::nanoseconds(deadline.time_since_epoch()).count()), is_deadline_(true) {}

  /// Returns whether this is a delay that was made from a NaN.
  constexpr bool is_nan() const noexcept { return !is_deadline_ && nanoseconds_ == kNaN.count(); }
  constexpr bool is_deadline() const noexcept { return is_deadline_; }
  /// Returns the delay, zero or more, or the deadline since the epoch of the clock.
  constexpr std::int64_t nanoseconds() const noexcept { return nanoseconds_; }

  /// Returns the deadline in nanoseconds since the epoch. Calls now(), which returns the time of the clock, only for a
  /// delay. A sum beyond the range of the clock is its end. Precondition: !is_nan().
  template <class Now>
  constexpr std::int64_t deadline(Now&& now) const noexcept {
    if (is_deadline_) return nanoseconds_;
    const std::int64_t begin = now();
    return begin > kMaxNanoseconds - nanoseconds_ ? kMaxNanoseconds : begin + nanoseconds_;
  }

 private:
  std::int64_t nanoseconds_;
  bool is_deadline_ = false;
};

}  // namespace hwt::detail
