#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace hwt::internal {

/// Throws the std::invalid_argument for an argument or an option: "what: value (expected: range)". Durations are told
/// in ns. (Inline, because the calendar is a library of its own.)
[[noreturn]] inline void refuse(const std::string& what, const std::string& value, const std::string& expected) {
  throw std::invalid_argument(what + ": " + value + " (expected: " + expected + ")");
}
[[noreturn]] inline void refuse(const std::string& what, std::int64_t value, const std::string& expected) {
  refuse(what, std::to_string(value), expected);
}
[[noreturn]] inline void refuse(const std::string& what, std::chrono::nanoseconds value, const std::string& expected) {
  refuse(what, std::to_string(value.count()) + " ns", expected);
}

/// A duration that must be longer than nothing.
inline std::chrono::nanoseconds positive(const std::string& what, std::chrono::nanoseconds value) {
  if (value <= std::chrono::nanoseconds::zero()) refuse(what, value, "1 ns or more");
  return value;
}

}  // namespace hwt::internal
