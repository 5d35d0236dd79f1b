// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "hashed_wheel_timer/delay.h"

namespace hwt {

/// By how much a timeout may run later than its deadline, so that timeouts of many threads meet in one wake-up of the
/// worker. It is the last argument of functions that schedule or move a timeout.
///
///   timer.new_timeout([this] { ping(); }, 30s, hwt::Leeway{1s});   // runs in 30 to 31 s
///
/// Guarantees: the timer numbers its ticks from its start. Of the ticks that end in [deadline, deadline + leeway] it
/// chooses the one whose number has the most trailing zero bits. The end of that tick becomes the deadline, which
/// Timeout::deadline() returns. So the task is never early, and late by at most the leeway, a tick and the worker's own
/// lag. If all timeouts have a leeway of 2^n ticks or more, at most one tick in 2^n has due timeouts. A leeway in which
/// no tick ends changes nothing, so it should be some ticks.
/// Threads: a value.
/// Not for: spreading timeouts out, which is the opposite: see jitter.h.
/// Source: Linux's timer slack.
class Leeway final {
 public:
  /// Makes a leeway of zero: none.
  constexpr Leeway() noexcept = default;
  /// Converts any duration. A negative one counts as zero. A function that takes a NaN throws std::invalid_argument.
  constexpr explicit Leeway(Delay leeway) noexcept : leeway_(leeway) {}

  /// Returns the leeway, zero or more.
  constexpr std::chrono::nanoseconds duration() const noexcept { return detail::not_negative(leeway_); }
  /// Returns whether the duration was a floating-point NaN.
  constexpr bool is_nan() const noexcept { return leeway_.is_nan(); }
  /// Returns whether a leeway other than zero was given, also a negative one, which then counts as zero.
  constexpr bool is_given() const noexcept { return std::chrono::nanoseconds(leeway_).count() != 0; }

 private:
  Delay leeway_;
};

}  // namespace hwt
