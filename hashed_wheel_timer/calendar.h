#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hashed_wheel_timer/export.h"

namespace hwt {

/// A moment of the wall clock, in UTC.
using WallTime = std::chrono::sys_seconds;

/// Rules for Schedule::calendar(). daily() and the others come in a library of their own, because they need a time zone
/// database: link hashed_wheel_timer_calendar (Meson dependency, pkg-config), hashed_wheel_timer::calendar (CMake). A
/// Rule of your own does not.
///
/// A wall clock shows some times of the day not at all and some twice when a zone changes its offset from UTC; Gap and
/// Fold say what becomes of them. Zones change by law: a rule knows what the system's database knew when the zone was
/// first used, and nothing about changes after 2037 unless the database spells them out.
namespace calendar {

/// The first occurrence strictly after `after`; nullopt: never again. Must not have side effects that matter: it is
/// asked again when the wall clock was set back.
using Rule = std::function<std::optional<WallTime>(WallTime after)>;

/// A day that the month does not have: the 31st in a month of 30 days, 29 February.
enum class MonthEnd : std::uint8_t {
  Clamp,  // the last day of the month
  Skip,   // not in this month
};

/// A local time that does not exist that day, because clocks are put forward over it.
enum class Gap : std::uint8_t {
  ShiftForward,  // later by the length of the gap: 02:30 becomes 03:30 where clocks go from 02:00 to 03:00
  Skip,          // not on this day
};

/// A local time that exists twice that day, because clocks are put back over it.
enum class Fold : std::uint8_t { First, Second, Both };

/// A name of the IANA time zone database, such as "Europe/Berlin". "UTC" needs no database.
struct Zone {
  std::string name = "UTC";
};

/// The rules end (nullopt) after the year 9999. Each throws std::invalid_argument for a time of day outside
/// 0 .. 24 h (exclusive), a day that no month has, and a zone that is not in the database, naming value and range;
/// std::runtime_error when there is no database.
HWT_API Rule daily(std::chrono::seconds time_of_day, Zone zone = {}, Gap gap = Gap::ShiftForward,
                   Fold fold = Fold::First);
HWT_API Rule weekly(std::chrono::weekday weekday, std::chrono::seconds time_of_day, Zone zone = {},
                    Gap gap = Gap::ShiftForward, Fold fold = Fold::First);
HWT_API Rule monthly(unsigned day, std::chrono::seconds time_of_day, Zone zone = {},
                     MonthEnd month_end = MonthEnd::Clamp, Gap gap = Gap::ShiftForward, Fold fold = Fold::First);
HWT_API Rule yearly(std::chrono::month_day day, std::chrono::seconds time_of_day, Zone zone = {},
                    MonthEnd month_end = MonthEnd::Clamp, Gap gap = Gap::ShiftForward, Fold fold = Fold::First);

}  // namespace calendar
}  // namespace hwt
