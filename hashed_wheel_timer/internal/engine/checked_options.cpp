#include "hashed_wheel_timer/internal/engine/checked_options.h"

#include <bit>
#include <string>

#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::internal {

std::int64_t checked_ticks_per_wheel(const char* timer, std::int64_t ticks, std::int64_t min, std::int64_t max) {
  if (ticks < min || ticks > max) {
    refuse(std::string(timer) + ": ticks_per_wheel", ticks, std::to_string(min) + " .. " + std::to_string(max));
  }
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ticks)));
}

std::chrono::nanoseconds checked_tick_duration(const char* timer, std::chrono::nanoseconds tick_duration,
                                               std::chrono::nanoseconds shortest) {
  if (tick_duration >= shortest) return tick_duration;
  const std::string what = std::string(timer) + ": tick_duration";
  const std::string least = text_of(shortest);
  if (tick_duration <= std::chrono::nanoseconds::zero()) refuse(what, tick_duration, least + " or more");
  warn(what + ": " + text_of(tick_duration) + " is below " + least + "; using " + least);
  return shortest;
}

void check_slow_task(const char* timer, std::chrono::nanoseconds slow_task) {
  if (slow_task < std::chrono::nanoseconds::zero()) {
    refuse(std::string(timer) + ": slow_task", slow_task, "1 ns or more, or 0 for off");
  }
}

}  // namespace hwt::internal
