// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hashed_wheel_timer/detail/calendar_rule.h"
#include "hashed_wheel_timer/detail/export.h"

namespace hwt {

/// Rules for Schedule::calendar(): the times of the wall clock at which a job runs.
///
///   using namespace hwt::calendar;
///   hwt::schedule(timer, hwt::Schedule::calendar(daily(3h, {"Europe/Berlin"})), tidy_up);
///   hwt::schedule(timer, hwt::Schedule::calendar(monthly(31, 9h + 30min)), send_bills);   // at the month's end
///
/// Guarantees: each occurrence is after the one before. When a zone changes its offset from UTC, some local times do
/// not exist that day and some come twice; see Gap and Fold.
/// Threads: any thread may call a function, and a Rule.
/// Not for: changes of a zone that the database lacks. A rule follows the database as it was when the zone was first
/// used. The files of a system list the changes up to a year such as 2037. After it, a zone may keep its last
/// offset. daily() and the others need a time zone database, so they are a library of their own. Link
/// hashed_wheel_timer_calendar (Meson dependency, pkg-config) or hashed_wheel_timer::calendar (CMake). Your own Rule in
/// UTC does not need it.
/// Source: the time zone database of the IANA.
namespace calendar {

/// A day that the month does not have: the 31st in a month of 30 days, 29 February.
enum class MonthEnd : std::uint8_t {
  Clamp,  ///< the last day of the month
  Skip,   ///< not in this month
};

/// A local time that does not exist that day, because clocks are put forward over it.
enum class Gap : std::uint8_t {
  ShiftForward,  ///< later by the length of the gap: 02:30 becomes 03:30 where clocks go from 02:00 to 03:00
  Skip,          ///< not on this day
};

/// A local time that exists twice that day, because clocks are put back over it.
enum class Fold : std::uint8_t {
  First,   ///< at the earlier of the two
  Second,  ///< at the later
  Both,    ///< at each of them
};

/// A name of the IANA time zone database, such as "Europe/Berlin". "UTC" needs no database.
struct Zone {
  std::string name = "UTC";  ///< as the database spells it
};

/// Returns a rule for `time_of_day`, local time of the zone, each day. Rules end after the year 9999. Throws
/// std::invalid_argument, naming value and range, for a time of day outside 0 .. 24 h (exclusive), and for a zone that
/// is not in the database; std::runtime_error if there is no database.
HWT_API Rule daily(std::chrono::seconds time_of_day, Zone zone = {}, Gap gap = Gap::ShiftForward,
                   Fold fold = Fold::First);
/// Returns a rule for `time_of_day` on this day of each week. Throws as daily() does, also for an invalid weekday.
HWT_API Rule weekly(std::chrono::weekday weekday, std::chrono::seconds time_of_day, Zone zone = {},
                    Gap gap = Gap::ShiftForward, Fold fold = Fold::First);
/// Returns a rule for `time_of_day` on these days of each week, at least one:
///   weekly({Monday, Tuesday, Wednesday, Thursday, Friday}, 9h, {"Pacific/Auckland"})   // std::chrono::Monday
/// Throws as daily() does, also for no weekday and for an invalid one.
HWT_API Rule weekly(const std::vector<std::chrono::weekday>& weekdays, std::chrono::seconds time_of_day, Zone zone = {},
                    Gap gap = Gap::ShiftForward, Fold fold = Fold::First);
/// Returns a rule for `time_of_day` on this day of each month, 1 .. 31. Throws as daily() does, also for a day that no
/// month has.
HWT_API Rule monthly(unsigned day, std::chrono::seconds time_of_day, Zone zone = {},
                     MonthEnd month_end = MonthEnd::Clamp, Gap gap = Gap::ShiftForward, Fold fold = Fold::First);
/// Returns a rule for `time_of_day` on this day of each year. Throws as daily() does, also for a day that its month
/// never has.
HWT_API Rule yearly(std::chrono::month_day day, std::chrono::seconds time_of_day, Zone zone = {},
                    MonthEnd month_end = MonthEnd::Clamp, Gap gap = Gap::ShiftForward, Fold fold = Fold::First);

/// Returns the first local time strictly after `after`, or nothing if there is none. It knows nothing of zones.
using LocalRule = std::function<std::optional<std::chrono::local_seconds>(std::chrono::local_seconds after)>;
/// Returns the rule that `local` is in the local time of a zone, where a Monday is a Monday. Each occurrence needs one
/// call of `local`. Within a day of a change of the zone's offset it needs one for each of the times that `local` has
/// in two spans as long as the change. Throws std::invalid_argument for a null `local`, and as daily() does. The rule
/// throws what `local` throws, and std::invalid_argument if `local` returns a time that is not after its argument.
HWT_API Rule in_zone(LocalRule local, Zone zone, Gap gap = Gap::ShiftForward, Fold fold = Fold::First);

}  // namespace calendar
}  // namespace hwt
