#include "hashed_wheel_timer/internal/checked_options.h"

#include <bit>
#include <stdexcept>

#include "hashed_wheel_timer/internal/diagnostics.h"

namespace hwt::internal {

void refuse_option(const char* option, std::int64_t value, const std::string& expected) {
  throw std::invalid_argument(std::string(option) + ": " + std::to_string(value) + " (expected: " + expected + ")");
}

std::int64_t checked_ticks_per_wheel(std::int64_t ticks, std::int64_t min, std::int64_t max) {
  if (ticks < min || ticks > max) {
    refuse_option("ticks_per_wheel", ticks, std::to_string(min) + " .. " + std::to_string(max));
  }
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ticks)));
}

std::chrono::nanoseconds at_least_a_millisecond(std::chrono::nanoseconds tick_duration) noexcept {
  constexpr std::chrono::nanoseconds kMin = std::chrono::milliseconds(1);
  if (tick_duration >= kMin) return tick_duration;
  warn("tick_duration: " + std::to_string(tick_duration.count()) + " ns is below 1 ms; using 1 ms");
  return kMin;
}

}  // namespace hwt::internal
