// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/point.h"

namespace hwt {

/// The time by which a request must be done. The request carries the rest of its time budget from hop to hop.
///
///   hwt::Deadline deadline;                                        // never: a request without the header
///   if (text) deadline = hwt::Deadline::from_grpc_timeout(*text);  // the header grpc-timeout
///   if (deadline.expired()) return too_late();
///   hwt::TimeoutId id = timer.add([request] { fail(request); }, deadline);
///   forward(request, min(deadline, hwt::Deadline::in(100ms)).to_grpc_timeout());
///
/// Guarantees: converts to a time_point, so each function that takes a When or a deadline takes it. A budget that is
/// written to the wire and read again is never longer. A call without `now` reads steady_clock.
/// Threads: like an `int`. Several threads may read one object, unless a thread writes it.
/// Not for: wall-clock times, which may jump.
/// Source: gRPC's deadlines; Go's context.WithDeadline.
class HWT_API Deadline {
 public:
  /// A time of the clock that deadlines are measured by.
  using time_point = std::chrono::steady_clock::time_point;

  /// Makes a deadline that never comes.
  constexpr Deadline() noexcept = default;
  /// Makes a deadline at `at`. time_point::max() makes one that never comes.
  constexpr Deadline(time_point at) noexcept : at_(at) {}  // NOLINT(google-explicit-constructor): it is a time
  /// Makes a deadline at a point of another precision. A fraction of a nanosecond is rounded up. A point beyond the
  /// range of the clock becomes its end, so a late one never comes.
  template <class Duration>
    requires(!std::is_same_v<Duration, time_point::duration> &&
             !std::chrono::treat_as_floating_point_v<typename Duration::rep>)
  constexpr Deadline(  // NOLINT(google-explicit-constructor): it is a time
      std::chrono::time_point<std::chrono::steady_clock, Duration> at) noexcept
      : at_(detail::Point(at)) {}
  /// Returns the deadline `budget` after `now`. A negative budget gives the present time. A budget beyond the range of
  /// the clock gives never(). Throws std::invalid_argument for a NaN. If you compute the budget by another clock, do so
  /// before the call: a compiler may read `now` first, and then the deadline is early.
  static Deadline in(Delay budget, detail::PresentTime now = std::chrono::steady_clock::now());
  /// Returns a deadline that never comes.
  static constexpr Deadline never() noexcept { return {}; }

  /// Returns the time; time_point::max() if it never comes.
  constexpr time_point time() const noexcept { return at_; }
  /// Converts to the time, for functions that take a time_point.
  constexpr operator time_point() const noexcept { return at_; }  // NOLINT(google-explicit-constructor): it is a time
  /// Returns whether the deadline never comes.
  constexpr bool is_never() const noexcept { return at_ == (time_point::max)(); }

  /// Returns the rest of the budget: zero if it is used up, nanoseconds::max() if the deadline never comes.
  constexpr std::chrono::nanoseconds remaining(
      detail::PresentTime now = std::chrono::steady_clock::now()) const noexcept {
    return detail::time_until(at_, now);
  }
  /// Returns whether the budget is used up at `now`.
  constexpr bool expired(detail::PresentTime now = std::chrono::steady_clock::now()) const noexcept {
    return !is_never() && time_point(now) >= at_;
  }

  /// Compares the times. A deadline that never comes is the latest.
  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm of clang-tidy 14
  friend constexpr auto operator<=>(Deadline, Deadline) noexcept = default;
  /// Returns the earlier deadline.
  friend constexpr Deadline(min)(Deadline a, Deadline b) noexcept { return b < a ? b : a; }

  /// Reads the value of a grpc-timeout header, such as "250m": 1 to 8 digits and one of H, M, S, m, u, n (hours,
  /// minutes, seconds, milliseconds, microseconds, nanoseconds). The budget counts from `now`. Throws
  /// std::invalid_argument for any other text, also for an empty one; the message has the text. Use never() for a
  /// request without the header.
  static Deadline from_grpc_timeout(std::string_view text, detail::PresentTime now = std::chrono::steady_clock::now());
  /// Reads the value of a grpc-timeout header. The budget counts from `now`. Returns std::nullopt for any other text.
  static std::optional<Deadline> try_from_grpc_timeout(std::string_view text, detail::PresentTime now) noexcept;

  /// Returns the rest of the budget as the value of a grpc-timeout header, in the finest unit that needs at most 8
  /// digits, rounded down. Returns "0n" if the budget is used up. Returns an empty text if the deadline never comes:
  /// then send no header.
  std::string to_grpc_timeout(detail::PresentTime now = std::chrono::steady_clock::now()) const;

  /// Returns the deadline for a number of milliseconds from the wire, as brpc and Dubbo send it. The budget counts from
  /// `now`. A negative number gives never().
  static Deadline from_milliseconds(std::int64_t budget,
                                    detail::PresentTime now = std::chrono::steady_clock::now()) noexcept;
  /// Returns the rest of the budget in milliseconds, rounded down: 0 if it is used up, -1 if the deadline never comes.
  std::int64_t to_milliseconds(detail::PresentTime now = std::chrono::steady_clock::now()) const noexcept;

 private:
  time_point at_ = (time_point::max)();
};

}  // namespace hwt
