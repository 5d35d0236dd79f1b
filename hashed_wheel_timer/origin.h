// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <version>
#if defined(__cpp_lib_source_location)
#include <source_location>
#endif

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/leeway.h"
#include "hashed_wheel_timer/timeout_id.h"

namespace hwt {

/// Where a program scheduled a timeout: a line of its source, or a name. Functions that schedule take their caller's
/// line by default. Only timers with Options::trace_origins remember it.
///
///   timer.new_timeout([this] { fail(); }, 250ms);                             // this line
///   timer.new_timeout([this] { fail(); }, 250ms, hwt::Origin{"fetch user"});  // a name
///
/// Threads: a value.
/// Not for: text that the program builds while it runs, because a timeout remembers only the address of the text.
class HWT_API Origin final {
 public:
  /// Makes an unknown origin.
  constexpr Origin() noexcept = default;
  /// Makes a name from a constant, such as a string literal.
  consteval explicit Origin(const char* name) noexcept : Origin(name, 0) {}
  /// Makes a line of a file. The name of the file must exist as long as timeouts of this origin are pending. A null
  /// name is "unknown".
  constexpr Origin(const char* file, std::uint32_t line) noexcept
      : text_(file != nullptr ? file : kUnknown), line_(line) {}
#if defined(__cpp_lib_source_location)
  /// Converts a line, for functions that pass on the line of their own caller.
  constexpr explicit Origin(const std::source_location& place) noexcept : Origin(place.file_name(), place.line()) {}
#endif

  /// Returns the name or the file, or "unknown".
  constexpr const char* text() const noexcept { return text_; }
  /// Returns the line, or 0 for a name.
  constexpr std::uint32_t line() const noexcept { return line_; }
  /// Returns the name, or the file and the line with a colon between them. Throws std::bad_alloc.
  std::string describe() const;

  /// Compares the texts and the lines.
  friend bool operator==(const Origin& a, const Origin& b) noexcept {
    return a.line_ == b.line_ && (a.text_ == b.text_ || std::strcmp(a.text_, b.text_) == 0);
  }

 private:
  static constexpr const char* kUnknown = "unknown";

  const char* text_ = kUnknown;
  std::uint32_t line_ = 0;
};

/// The last argument of functions that schedule a timeout: its leeway, its origin, or both. Each converts to it.
///
///   timer.new_timeout(task, 30s, hwt::Leeway{1s});
///   timer.new_timeout(task, 30s, hwt::Origin{"keep-alive"});
///   timer.new_timeout(task, 30s, {hwt::Leeway{1s}, hwt::Origin{"keep-alive"}});
///
/// Threads: a value.
class Terms final {
 public:
  /// Makes terms with this leeway. The origin is the caller's line.
  constexpr Terms(Leeway leeway = {}, const char* file = __builtin_FILE(),  // NOLINT(google-explicit-constructor)
                  std::uint32_t line = __builtin_LINE()) noexcept
      : leeway_(leeway), origin_(file, line) {}
  /// Makes terms with this origin and no leeway.
  constexpr Terms(Origin origin) noexcept : origin_(origin) {}  // NOLINT(google-explicit-constructor)
  /// Makes terms with both.
  constexpr Terms(Leeway leeway, Origin origin) noexcept : leeway_(leeway), origin_(origin) {}

  /// Returns the leeway.
  constexpr Leeway leeway() const noexcept { return leeway_; }
  /// Returns the origin.
  constexpr Origin origin() const noexcept { return origin_; }

 private:
  Leeway leeway_;
  Origin origin_;
};

/// A pending timeout, as Timer::for_each_pending() found it.
struct TracedTimeout {
  /// The id, for Timer::cancel(); none if the timeout was scheduled for a handle.
  TimeoutId id;
  /// Where it was scheduled.
  Origin origin;
  /// When it was scheduled, by the timer's clock; up to 4.1 us early or late.
  std::chrono::steady_clock::time_point scheduled;
  /// Its present deadline.
  std::chrono::steady_clock::time_point deadline;
};

/// The pending timeouts of one origin, as Timer::pending_by_origin() found them.
struct PendingOrigin {
  /// Where they were scheduled.
  Origin origin;
  /// Their number.
  std::int64_t count = 0;
  /// When the oldest of them was scheduled, by the timer's clock; up to 4.1 us early or late.
  std::chrono::steady_clock::time_point oldest = (std::chrono::steady_clock::time_point::max)();
  /// The earliest deadline of them.
  std::chrono::steady_clock::time_point next_deadline = (std::chrono::steady_clock::time_point::max)();
};

}  // namespace hwt
