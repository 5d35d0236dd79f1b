#include "hashed_wheel_timer/calendar.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/internal/schedule/time_zone.h"

namespace hwt::calendar {

using internal::refuse;
using internal::TimeZone;
using std::chrono::days;
using std::chrono::floor;
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

/// Daily, Weekly, Monthly and Yearly choose the days of a rule. They divide time into numbered periods (days, weeks,
/// months, years), and choose one day of each period, or none.
struct Daily {
  static std::int64_t period_of(sys_days day) { return day.time_since_epoch().count(); }
  static std::optional<sys_days> day_in(std::int64_t number) { return sys_days(days(number)); }
};

struct Weekly {
  weekday wanted;

  static std::int64_t period_of(sys_days day) { return floor<std::chrono::weeks>(day).time_since_epoch().count(); }
  std::optional<sys_days> day_in(std::int64_t number) const {
    const sys_days start = sys_days(std::chrono::weeks(number));
    return start + (wanted - weekday(start));
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

/// A time of day in a time zone.
class Clock {
 public:
  Clock(seconds time_of_day, const Zone& zone, Gap gap, Fold fold)
      : time_of_day_(time_of_day), zone_(zone.name), gap_(gap), fold_(fold) {
    if (time_of_day < seconds::zero() || time_of_day >= days(1)) {
      refuse("calendar: time_of_day", std::to_string(time_of_day.count()) + " s", "0 .. 86399 s");
    }
  }

  sys_days local_day(WallTime time) const { return floor<days>(zone_.to_local(time)); }

  /// Returns the first moment after `after` that stands for the time of day on that local day, or nothing.
  std::optional<WallTime> on(sys_days local_day, WallTime after) const {
    const TimeZone::Utc utc = zone_.to_utc(local_day + time_of_day_);
    if (utc.kind == TimeZone::Kind::Gap && gap_ == Gap::Skip) return {};
    // In a gap, utc.first is later than utc.second, and is the moment that Gap::ShiftForward asks for.
    const bool only_second = utc.kind == TimeZone::Kind::Fold && fold_ == Fold::Second;
    if (!only_second && utc.first > after) return utc.first;
    const bool second_too = utc.kind == TimeZone::Kind::Fold && fold_ != Fold::First;
    if (second_too && utc.second > after) return utc.second;
    return {};
  }

 private:
  seconds time_of_day_;
  TimeZone zone_;
  Gap gap_;
  Fold fold_;
};

/// Makes a rule from the days and the time of day. The rule goes through the periods in order and returns the first
/// moment after `after`. That is the earliest one, because gaps and folds last at most 24 hours, so the moments of
/// successive days stay in order. A gap of 24 hours, in which a zone skips a day, moves a moment to the next day.
/// Therefore the search begins one day early.
template <class Days>
Rule rule_of(Days wanted, Clock clock) {
  return [wanted, clock](WallTime after) -> std::optional<WallTime> {
    if (after >= kLastDay + days(1)) return {};
    after = std::max<WallTime>(after, kFirstDay);
    for (std::int64_t period = wanted.period_of(clock.local_day(after) - days(1));; ++period) {
      const std::optional<sys_days> day = wanted.day_in(period);
      if (!day) continue;
      if (*day > kLastDay) return {};
      if (const std::optional<WallTime> time = clock.on(*day, after)) return time;
    }
  };
}

}  // namespace

Rule daily(seconds time_of_day, Zone zone, Gap gap, Fold fold) {
  return rule_of(Daily{}, Clock(time_of_day, zone, gap, fold));
}

Rule weekly(weekday weekday, seconds time_of_day, Zone zone, Gap gap, Fold fold) {
  if (!weekday.ok()) refuse("calendar: weekday", std::to_string(weekday.c_encoding()), "0 .. 7, Sunday is 0 and 7");
  return rule_of(Weekly{weekday}, Clock(time_of_day, zone, gap, fold));
}

Rule monthly(unsigned day, seconds time_of_day, Zone zone, MonthEnd month_end, Gap gap, Fold fold) {
  if (day < 1 || day > 31) refuse("calendar: day", std::to_string(day), "1 .. 31");
  return rule_of(Monthly{std::chrono::day(day), month_end}, Clock(time_of_day, zone, gap, fold));
}

Rule yearly(month_day day, seconds time_of_day, Zone zone, MonthEnd month_end, Gap gap, Fold fold) {
  if (!day.ok()) {
    refuse("calendar: day",
           "month " + std::to_string(static_cast<unsigned>(day.month())) + " day " +
               std::to_string(static_cast<unsigned>(day.day())),
           "a day that the month has in some year");
  }
  return rule_of(Yearly{day, month_end}, Clock(time_of_day, zone, gap, fold));
}

}  // namespace hwt::calendar
