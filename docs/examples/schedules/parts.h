#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

namespace schedules {

/// Every kind of schedule but the calendar, on one ManualTimer that is held up for a while.
void show_kinds(std::ostream& out);

/// The next occurrences of calendar rules in a zone, and then a year of them on one ManualTimer.
void show_calendars(std::ostream& out, const std::string& zone, std::chrono::sys_days from);

/// A few schedules on a HashedWheelTimer, for as long as it takes. False: something ran too early or not at all.
bool show_real_time(std::ostream& out);

}  // namespace schedules
