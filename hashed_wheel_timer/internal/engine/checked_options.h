#pragma once

#include <chrono>
#include <cstdint>

namespace hwt::internal {

// `timer` is the name of the class, for messages.

/// Options::ticks_per_wheel, refused outside of [min, max], rounded up to a power of two.
std::int64_t checked_ticks_per_wheel(const char* timer, std::int64_t ticks, std::int64_t min, std::int64_t max);

/// Options::tick_duration, refused unless it is positive. A shorter one than `shortest` is raised to that, with a
/// warning.
std::chrono::nanoseconds checked_tick_duration(const char* timer, std::chrono::nanoseconds tick_duration,
                                               std::chrono::nanoseconds shortest);

/// Refuses a negative Options::slow_task.
void check_slow_task(const char* timer, std::chrono::nanoseconds slow_task);

}  // namespace hwt::internal
