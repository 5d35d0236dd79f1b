#pragma once

#include <chrono>
#include <string>

namespace schedules {

/// "4.25 s".
std::string in_seconds(std::chrono::nanoseconds value, int decimals = 2);

/// "Sun 2026-03-29 01:00:00" in UTC, the year with at least four digits.
std::string in_utc(std::chrono::sys_seconds time);

}  // namespace schedules
