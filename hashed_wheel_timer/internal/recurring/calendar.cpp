// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/calendar.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "hashed_wheel_timer/internal/report/refuse.h"

// The library that knows the time zones. The build defines the macro where <chrono> has none.
#ifdef HWT_DATE_LIBRARY
#include <date/tz.h>
namespace tz = date;
#else
namespace tz = std::chrono;
#endif

namespace hwt::calendar {

using internal::refuse;
using std::chrono::days;
using std::chrono::floor;
using std::chrono::local_seconds;
using std::chrono::month_day;
using std::chrono::months;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::weekday;
using std::chrono::year;
using std::chrono::year_month;
using std::chrono::year_month_day;

namespace {

// Far from the ends of std::chrono::year, so that nothing here overflows.
constexpr sys_days kFirstDay = year{1} / 1 / 1;
constexpr sys_days kLastDay = year{9999} / 12 / 31;

/// Weekly and Monthly choose the days of a rule. They divide time into numbered periods (days or months), and choose
/// one day of each period, or none.
struct Weekly {
  std::array<bool, 7> wanted{};  // by weekday::c_encoding()

  static std::int64_t period_of(sys_days day) { return day.time_since_epoch().count(); }
  std::optional<sys_days> day_in(std::int64_t number) const {
    const sys_days day{days(number)};
    return wanted[weekday(day).c_encoding()] ? std::optional(day) : std::nullopt;
  }
};

struct Monthly {
  std::chrono::day day;
  MonthEnd month_end;
  std::optional<std::chrono::month> only{};  // of the year; empty: each month

  static std::int64_t period_of(sys_days day) {
    const year_month_day date(day);
    return static_cast<int>(date.year()) * std::int64_t{12} + (static_cast<unsigned>(date.month()) - 1);
  }
  std::optional<sys_days> day_in(std::int64_t number) const {
    const year_month month = year{0} / 1 + months(number);
    if (only && month.month() != *only) return {};
    const year_month_day date = month / day;
    if (date.ok()) return sys_days(date);
    if (month_end == MonthEnd::Skip) return {};
    return sys_days(month / std::chrono::last);
  }
};

const tz::time_zone* find_zone(const std::string& name) {
  (void)tz::get_tzdb();  // before the try: a missing database must not be reported as an unknown name
  try {
    return tz::locate_zone(name);
  } catch (const std::runtime_error&) {
    refuse("calendar: zone", '"' + name + '"', "a name of the IANA time zone database, such as Europe/Berlin");
  }
}

/// The moments that local times of a zone stand for. The type of a local time is WallTime, because each library of time
/// zones has a local_seconds of its own. Any thread. Throws exceptions of that library.
class ZoneClock {
 public:
  ZoneClock(const Zone& zone, Gap gap, Fold fold)
      : zone_(zone.name == "UTC" ? nullptr : find_zone(zone.name)), gap_(gap), fold_(fold) {
    local({});  // a zone that cannot be read fails here, not at the first occurrence
  }

  WallTime local(WallTime time) const { return zone_ == nullptr ? time : time + zone_->get_info(time).offset; }

  /// The moments of a local time, or none. The order of the plain ones is that of their local times.
  struct Moments {
    std::optional<WallTime> plain;
    std::optional<WallTime> put_off;  // after a gap, or the second one of a fold
  };
  Moments at(WallTime local) const {
    if (zone_ == nullptr) return {local, {}};
    const tz::local_info info = zone_->get_info(tz::local_seconds(local.time_since_epoch()));
    const WallTime first = local - info.first.offset;  // by the offset before a change
    if (info.result == tz::local_info::unique) return {first, {}};
    if (info.result == tz::local_info::nonexistent) {
      // `first` is after the change, and is the moment that Gap::ShiftForward asks for.
      return {{}, gap_ == Gap::Skip ? std::nullopt : std::optional(first)};
    }
    return {fold_ == Fold::Second ? std::nullopt : std::optional(first),
            fold_ == Fold::First ? std::nullopt : std::optional<WallTime>(local - info.second.offset)};
  }

  /// Returns a local time such that neither it nor an earlier one stands for a moment after `after`. That is the local
  /// time at `after`, unless the offset changes within a day: then it is earlier by the change. No change is longer
  /// than a day.
  WallTime begin_of_search(WallTime after) const {
    const WallTime there = local(after);
    const seconds before = local(after - days(1)) + days(1) - there;
    const seconds afterwards = local(after + days(1)) - days(1) - there;
    return there - std::max(std::chrono::abs(before), std::chrono::abs(afterwards));
  }

 private:
  const tz::time_zone* zone_;  // lives as long as the program; null: UTC
  Gap gap_;
  Fold fold_;
};

/// Makes a rule from the days and the time of day.
template <class Days>
Rule rule_of(Days wanted, seconds time_of_day, Zone zone, Gap gap, Fold fold) {
  if (time_of_day < seconds::zero() || time_of_day >= days(1)) {
    refuse("calendar: time_of_day", std::to_string(time_of_day.count()) + " s", "0 .. 86399 s");
  }
  const auto local = [wanted, time_of_day](local_seconds after) -> std::optional<local_seconds> {
    const WallTime time(after.time_since_epoch());
    for (std::int64_t period = wanted.period_of(floor<days>(time));; ++period) {
      const std::optional<sys_days> day = wanted.day_in(period);
      if (!day || *day + time_of_day <= time) continue;
      if (*day > kLastDay) return {};
      return local_seconds((*day + time_of_day).time_since_epoch());
    }
  };
  return in_zone(local, std::move(zone), gap, fold);
}

}  // namespace

Rule daily(seconds time_of_day, Zone zone, Gap gap, Fold fold) {
  Weekly week;
  week.wanted.fill(true);
  return rule_of(week, time_of_day, std::move(zone), gap, fold);
}

Rule weekly(weekday weekday, seconds time_of_day, Zone zone, Gap gap, Fold fold) {
  return weekly(std::vector{weekday}, time_of_day, std::move(zone), gap, fold);
}

Rule weekly(const std::vector<weekday>& weekdays, seconds time_of_day, Zone zone, Gap gap, Fold fold) {
  if (weekdays.empty()) refuse("calendar: weekdays", "none", "at least one");
  Weekly week;
  for (const weekday day : weekdays) {
    if (!day.ok()) refuse("calendar: weekday", std::to_string(day.c_encoding()), "0 .. 7, Sunday is 0 and 7");
    week.wanted[day.c_encoding()] = true;
  }
  return rule_of(week, time_of_day, std::move(zone), gap, fold);
}

Rule monthly(unsigned day, seconds time_of_day, Zone zone, MonthEnd month_end, Gap gap, Fold fold) {
  if (day < 1 || day > 31) refuse("calendar: day", std::to_string(day), "1 .. 31");
  return rule_of(Monthly{std::chrono::day(day), month_end}, time_of_day, std::move(zone), gap, fold);
}

Rule yearly(month_day day, seconds time_of_day, Zone zone, MonthEnd month_end, Gap gap, Fold fold) {
  if (!day.ok()) {
    refuse("calendar: day",
           "month " + std::to_string(static_cast<unsigned>(day.month())) + " day " +
               std::to_string(static_cast<unsigned>(day.day())),
           "a day that the month has in some year");
  }
  return rule_of(Monthly{day.day(), month_end, day.month()}, time_of_day, std::move(zone), gap, fold);
}

Rule in_zone(LocalRule local, Zone zone, Gap gap, Fold fold) {
  if (!local) refuse("calendar: local", "null", "a function");
  return [local = std::move(local), zone = ZoneClock(zone, gap, fold)](WallTime after) -> std::optional<WallTime> {
    if (after >= kLastDay + days(1)) return {};
    after = std::max<WallTime>(after, kFirstDay);
    // The moments of ascending local times ascend too, except that those of a gap come after some of later times, and
    // the second ones of a fold too. Their first one, if it is earlier than the result of the search, is the result.
    std::optional<WallTime> put_off;
    for (WallTime time = zone.begin_of_search(after);;) {
      const auto found = local(local_seconds(time.time_since_epoch()));
      if (!found) return put_off;
      const WallTime next(found->time_since_epoch());
      if (next <= time) {
        refuse("calendar: local", "returned " + std::to_string(next.time_since_epoch().count()) + " s since 1970",
               "more than " + std::to_string(time.time_since_epoch().count()) + " s");
      }
      if (next >= kLastDay + days(1)) return put_off;
      time = next;
      const ZoneClock::Moments moments = zone.at(time);
      if (moments.put_off && *moments.put_off > after && (!put_off || moments.put_off < put_off)) {
        put_off = moments.put_off;
      }
      if (moments.plain && *moments.plain > after) return put_off ? std::min(*put_off, *moments.plain) : moments.plain;
    }
  };
}

}  // namespace hwt::calendar
