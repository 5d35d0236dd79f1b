#pragma once

#include <chrono>
#include <cstdint>

// Times as unsigned numbers, because the distance of two points of a clock may exceed a signed number.

namespace hwt::test {

using TimePoint = std::chrono::steady_clock::time_point;

inline std::uint64_t distance(TimePoint from, TimePoint to) {
  const auto count = [](TimePoint time) { return static_cast<std::uint64_t>(time.time_since_epoch().count()); };
  return count(to) - count(from);
}

/// from + ahead, or the end of time.
inline TimePoint later_by(TimePoint from, std::uint64_t ahead) {
  if (ahead >= distance(from, TimePoint::max())) return TimePoint::max();
  const std::uint64_t sum = static_cast<std::uint64_t>(from.time_since_epoch().count()) + ahead;
  return TimePoint(std::chrono::nanoseconds(static_cast<std::int64_t>(sum)));
}

/// The point of the clock at which a delay from `now` ends; a negative one counts as zero.
inline TimePoint after(TimePoint now, std::chrono::nanoseconds delay) {
  return delay.count() <= 0 ? now : later_by(now, static_cast<std::uint64_t>(delay.count()));
}

}  // namespace hwt::test
