// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/calendar.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/recurring/time_zone.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::calendar {

using internal::refuse;
using internal::TimeZone;
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

/// Daily, Weekly, Monthly and Yearly choose the days of a rule. They divide time into numbered periods (days, months,
/// years), and choose one day of each period, or none.
struct Daily {
  static std::int64_t period_of(sys_days day) { return day.time_since_epoch().count(); }
  static std::optional<sys_days> day_in(std::int64_t number) { return sys_days(days(number)); }
};

struct Weekly {
  std::array<bool, 7> wanted{};  // by weekday::c_encoding()

  static std::int64_t period_of(sys_days day) { return Daily::period_of(day); }
  std::optional<sys_days> day_in(std::int64_t number) const {
    const std::optional<sys_days> day = Daily::day_in(number);
    return wanted[weekday(*day).c_encoding()] ? day : std::nullopt;
  }
};

std::optional<sys_days> day_of(year_month month, std::chrono::day day, MonthEnd month_end) {
  const year_month_day date = month / day;
  if (date.ok()) return sys_days(date);
  if (month_end == MonthEnd::Skip) return {};
  return sys_days(month / std::chrono::last);
}

struct Monthly {
  std::chrono::day day;
  MonthEnd month_end;

  static std::int64_t period_of(sys_days day) {
    const year_month_day date(day);
    return static_cast<int>(date.year()) * std::int64_t{12} + (static_cast<unsigned>(date.month()) - 1);
  }
  std::optional<sys_days> day_in(std::int64_t number) const {
    return day_of(year{0} / 1 + months(number), day, month_end);
  }
};

struct Yearly {
  month_day day;
  MonthEnd month_end;

  static std::int64_t period_of(sys_days day) { return static_cast<int>(year_month_day(day).year()); }
  std::optional<sys_days> day_in(std::int64_t number) const {
    return day_of(year{static_cast<int>(number)} / day.month(), day.day(), month_end);
  }
};

/// The moments that local times of a zone stand for.
class ZoneClock {
 public:
  ZoneClock(const Zone& zone, Gap gap, Fold fold) : zone_(zone.name), gap_(gap), fold_(fold) {}

  WallTime local(WallTime time) const { return zone_.to_local(time); }

  /// The moments of a local time, or none. The order of the plain ones is that of their local times.
  struct Moments {
    std::optional<WallTime> plain;
    std::optional<WallTime> put_off;  // after a gap, or the second one of a fold
  };
  Moments at(WallTime local) const {
    const TimeZone::Utc utc = zone_.to_utc(local);
    switch (utc.kind) {
      case TimeZone::Kind::Gap:
        // utc.first is later than utc.second, and is the moment that Gap::ShiftForward asks for.
        return {{}, gap_ == Gap::Skip ? std::nullopt : std::optional(utc.first)};
      case TimeZone::Kind::Fold:
        return {fold_ == Fold::Second ? std::nullopt : std::optional(utc.first),
                fold_ == Fold::First ? std::nullopt : std::optional(utc.second)};
      case TimeZone::Kind::Unique:
        break;
    }
    return {utc.first, {}};
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
  TimeZone zone_;
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
  return rule_of(Daily{}, time_of_day, std::move(zone), gap, fold);
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
  return rule_of(Yearly{day, month_end}, time_of_day, std::move(zone), gap, fold);
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
