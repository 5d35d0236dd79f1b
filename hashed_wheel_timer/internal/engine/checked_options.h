#pragma once

#include <chrono>
#include <cstdint>

namespace hwt::internal {

/// Options::ticks_per_wheel, refused outside of [min, max], rounded up to a power of two.
std::int64_t checked_ticks_per_wheel(std::int64_t ticks, std::int64_t min, std::int64_t max);

/// Options::tick_duration, refused unless it is positive; a shorter one than `shortest` is raised to that, with a
/// warning that names it by `name`.
std::chrono::nanoseconds checked_tick_duration(std::chrono::nanoseconds tick_duration,
                                               std::chrono::nanoseconds shortest, const char* name);

/// Options::slow_task, refused if it is negative.
std::chrono::nanoseconds checked_slow_task(std::chrono::nanoseconds slow_task);

}  // namespace hwt::internal
