// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace hwt::internal {

/// Returns a duration as a whole number of the largest unit up to seconds that divides it: "10 s", "1500 us", "0 ns".
inline std::string text_of(std::chrono::nanoseconds duration) {
  constexpr std::pair<std::int64_t, const char*> kUnits[] = {{1'000'000'000, " s"}, {1'000'000, " ms"}, {1'000, " us"}};
  for (const auto& [size, name] : kUnits) {
    if (duration.count() != 0 && duration.count() % size == 0) return std::to_string(duration.count() / size) + name;
  }
  return std::to_string(duration.count()) + " ns";
}

/// Makes a text one line: control characters become question marks. Messages show texts that come from outside.
inline void make_one_line(std::span<char> text) noexcept {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
}

/// Throws the std::invalid_argument for an argument or an option: "what: value (expected: range)". `what` names the
/// class or function too: "HashedWheelTimer: tick_duration". Inline, because the calendar is a library of its own.
[[noreturn]] inline void refuse(std::string_view what, std::string value, const std::string& expected) {
  make_one_line(value);
  throw std::invalid_argument(std::string(what) + ": " + value + " (expected: " + expected + ")");
}
[[noreturn]] inline void refuse(std::string_view what, std::int64_t value, const std::string& expected) {
  refuse(what, std::to_string(value), expected);
}
[[noreturn]] inline void refuse(std::string_view what, std::chrono::nanoseconds value, const std::string& expected) {
  refuse(what, text_of(value), expected);
}

/// A duration that must be longer than nothing. Allocates nothing unless it refuses.
inline std::chrono::nanoseconds positive(std::string_view what, std::chrono::nanoseconds value) {
  if (value <= std::chrono::nanoseconds::zero()) refuse(what, value, "1 ns or more");
  return value;
}

}  // namespace hwt::internal
