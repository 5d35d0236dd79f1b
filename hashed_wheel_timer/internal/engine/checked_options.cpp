#include "hashed_wheel_timer/internal/engine/checked_options.h"

#include <bit>
#include <string>

#include "hashed_wheel_timer/internal/platform/diagnostics.h"
#include "hashed_wheel_timer/internal/platform/refuse.h"

namespace hwt::internal {

std::int64_t checked_ticks_per_wheel(std::int64_t ticks, std::int64_t min, std::int64_t max) {
  if (ticks < min || ticks > max) {
    refuse("ticks_per_wheel", ticks, std::to_string(min) + " .. " + std::to_string(max));
  }
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ticks)));
}

std::chrono::nanoseconds checked_tick_duration(std::chrono::nanoseconds tick_duration,
                                               std::chrono::nanoseconds shortest, const char* name) {
  if (positive("tick_duration", tick_duration) >= shortest) return tick_duration;
  warn("tick_duration: " + std::to_string(tick_duration.count()) + " ns is below " + name + "; using " + name);
  return shortest;
}

std::chrono::nanoseconds checked_slow_task(std::chrono::nanoseconds slow_task) {
  if (slow_task < std::chrono::nanoseconds::zero()) refuse("slow_task", slow_task, "1 ns or more, or 0 for off");
  return slow_task;
}

}  // namespace hwt::internal
