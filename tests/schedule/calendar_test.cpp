// The rules of calendar.h, on days on which a time zone has changed its clocks.

#include "hashed_wheel_timer/calendar.h"

#include <cstdio>
#include <map>

#include "tests/support/test_support.h"
#if !defined(_WIN32)
#include "tests/support/localtime_zone.h"
#endif

namespace hwt::test {
namespace {

using calendar::Fold;
using calendar::Gap;
using calendar::MonthEnd;
using calendar::Rule;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::year_month_day;
using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

/// "2026-03-29 00:30" in UTC.
WallTime utc(const char* text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  EXPECT_EQ(std::sscanf(text, "%d-%d-%d %d:%d", &year, &month, &day, &hour, &minute), 5) << text;
  return sys_days(std::chrono::year(year) / month / day) + std::chrono::hours(hour) + std::chrono::minutes(minute);
}

std::string text_of(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const year_month_day date(day);
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(time - day).count();
  char text[32];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), static_cast<int>(minutes / 60),
                static_cast<int>(minutes % 60));
  return text;
}

/// Returns the first `count` occurrences after a time.
Texts next(const Rule& rule, const char* after, int count) {
  Texts texts;
  std::optional<WallTime> time = utc(after);
  for (int i = 0; i < count && (time = rule(*time)); ++i) texts.push_back(text_of(*time));
  return texts;
}

TEST(CalendarDaily, RunsInUtcByDefaultAndStrictlyAfter) {
  EXPECT_EQ(next(calendar::daily(9h + 30min), "2026-02-27 09:29", 3),
            Texts({"2026-02-27 09:30", "2026-02-28 09:30", "2026-03-01 09:30"}));
  const WallTime midnight = utc("2026-01-01 00:00");
  for (const seconds time : {seconds(0s), seconds(9h), seconds(24h - 1s)}) {
    const Rule rule = calendar::daily(time);
    EXPECT_EQ(rule(midnight + time - 1s), midnight + time) << time.count();
    EXPECT_EQ(rule(midnight + time), midnight + time + 24h) << time.count();
  }
}

TEST(CalendarDaily, KeepsToTheLocalTimeWhenTheOffsetChanges) {
  const Rule in_berlin = calendar::daily(9h, {"Europe/Berlin"});
  EXPECT_EQ(next(in_berlin, "2026-03-28 00:00", 2), Texts({"2026-03-28 08:00", "2026-03-29 07:00"}));
  EXPECT_EQ(next(in_berlin, "2026-10-24 00:00", 2), Texts({"2026-10-24 07:00", "2026-10-25 08:00"}));
  EXPECT_EQ(next(calendar::daily(9h, {"America/New_York"}), "2026-03-07 00:00", 2),
            Texts({"2026-03-07 14:00", "2026-03-08 13:00"}));
  // Fails if the library that reads the time zones cannot read the whole file.
  EXPECT_EQ(next(in_berlin, "2035-07-01 00:00", 1), Texts({"2035-07-01 07:00"}));
}

TEST(CalendarGap, ShiftForwardMovesByTheLengthOfTheGap) {
  EXPECT_EQ(next(calendar::daily(2h + 30min, {"Europe/Berlin"}), "2026-03-28 00:00", 3),
            Texts({"2026-03-28 01:30", "2026-03-29 01:30", "2026-03-30 00:30"}));  // 02:30, 03:30, 02:30
  for (const seconds time : {2h, 3h}) {
    EXPECT_EQ(next(calendar::daily(time, {"Europe/Berlin"}), "2026-03-29 00:00", 1), Texts({"2026-03-29 01:00"}));
  }
}

TEST(CalendarGap, SkipOmitsTheDay) {
  EXPECT_EQ(next(calendar::daily(2h + 30min, {"Europe/Berlin"}, Gap::Skip), "2026-03-28 00:00", 2),
            Texts({"2026-03-28 01:30", "2026-03-30 00:30"}));
  EXPECT_EQ(next(calendar::daily(3h, {"Europe/Berlin"}, Gap::Skip), "2026-03-28 12:00", 1),
            Texts({"2026-03-29 01:00"}));
}

// Berlin, 2026-10-25: from 03:00 CEST back to 02:00 CET, at 01:00 UTC.
TEST(CalendarFold, FirstSecondOrBoth) {
  const auto expect = [](Fold fold, const Texts& after_the_day_before, const char* between_the_two) {
    const Rule half_past_two = calendar::daily(2h + 30min, {"Europe/Berlin"}, Gap::ShiftForward, fold);
    EXPECT_EQ(next(half_past_two, "2026-10-24 12:00", static_cast<int>(after_the_day_before.size())),
              after_the_day_before);
    EXPECT_EQ(next(half_past_two, "2026-10-25 00:45", 1), Texts({between_the_two}));
  };
  expect(Fold::First, {"2026-10-25 00:30", "2026-10-26 01:30"}, "2026-10-26 01:30");
  expect(Fold::Second, {"2026-10-25 01:30", "2026-10-26 01:30"}, "2026-10-25 01:30");
  expect(Fold::Both, {"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-26 01:30"}, "2026-10-25 01:30");
}

// Samoa changed sides of the date line: after 2011-12-29 came 2011-12-31, at 10:00 UTC on the 30th, a Friday.
TEST(CalendarZones, ApiaSkippedADay) {
  const calendar::Zone zone{"Pacific/Apia"};
  EXPECT_EQ(next(calendar::weekly(std::chrono::Friday, 9h, zone), "2011-12-24 12:00", 2),
            Texts({"2011-12-30 19:00", "2012-01-05 19:00"}));
  EXPECT_EQ(next(calendar::weekly(std::chrono::Friday, 9h, zone, Gap::Skip), "2011-12-24 12:00", 1),
            Texts({"2012-01-05 19:00"}));
  EXPECT_EQ(next(calendar::yearly(std::chrono::December / 30, 9h, zone), "2011-12-30 18:00", 1),
            Texts({"2011-12-30 19:00"}))
      << "in the zone it is the 31st already, but the run of the 30th is still to come";
}

// Kiritimati did the same at the end of a year: after 1994-12-30 came 1995-01-01.
TEST(CalendarZones, KiritimatiSkippedTheLastDayOfAYear) {
  const char* new_years_day = "1994-12-31 15:00";  // 05:00 there
  const calendar::Zone zone{"Pacific/Kiritimati"};
  EXPECT_EQ(next(calendar::yearly(std::chrono::December / 31, 9h, zone), new_years_day, 2),
            Texts({"1994-12-31 19:00", "1995-12-30 19:00"}));
  EXPECT_EQ(next(calendar::monthly(31, 9h, zone), new_years_day, 1), Texts({"1994-12-31 19:00"}));
  EXPECT_EQ(next(calendar::monthly(31, 9h, zone, MonthEnd::Clamp, Gap::Skip), new_years_day, 1),
            Texts({"1995-01-30 19:00"}));
}

TEST(CalendarWeekly, EachWeekday) {
  const WallTime thursday = utc("2026-01-01 00:00");
  for (unsigned day = 0; day < 7; ++day) {
    const Rule rule = calendar::weekly(std::chrono::weekday(day), 8h);
    const WallTime first = thursday + std::chrono::days((day + 3) % 7) + 8h;
    for (int week = 0; week < 60; ++week) {
      EXPECT_EQ(rule(first + week * std::chrono::weeks(1) - 1s), first + week * std::chrono::weeks(1));
    }
  }
}

TEST(CalendarWeekly, SeveralWeekdaysOfAZone) {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace): for the weekdays
  const std::vector<weekday> working_days{Monday, Tuesday, Wednesday, Thursday, Friday};
  const Rule rule = calendar::weekly(working_days, 9h, {"Pacific/Auckland"});
  // 9:00 of a Friday and of a Monday in Auckland are 21:00 in UTC of a Thursday and of a Sunday (UTC+12 then).
  EXPECT_EQ(next(rule, "2026-07-01 00:00", 5), Texts({"2026-07-01 21:00", "2026-07-02 21:00", "2026-07-05 21:00",
                                                      "2026-07-06 21:00", "2026-07-07 21:00"}));
  EXPECT_EQ(next(calendar::weekly({Saturday, Sunday, Saturday}, 12h), "2026-07-01 00:00", 3),
            Texts({"2026-07-04 12:00", "2026-07-05 12:00", "2026-07-11 12:00"}));
  const std::vector<weekday> all{Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday};
  EXPECT_EQ(next(calendar::weekly(all, 2h + 30min, {"Europe/Berlin"}), "2026-01-01 00:00", 365),
            next(calendar::daily(2h + 30min, {"Europe/Berlin"}), "2026-01-01 00:00", 365));
}

constexpr Gap kGaps[] = {Gap::ShiftForward, Gap::Skip};
constexpr Fold kFolds[] = {Fold::First, Fold::Second, Fold::Both};
/// Changes of half an hour, an hour and a day, a midnight that does not exist, and zones without changes.
constexpr struct {
  const char* zone;
  const char* begin;
} kChanges[] = {{"Europe/Berlin", "2026-03-27 00:00"},       {"Europe/Berlin", "2026-10-23 00:00"},
                {"Australia/Lord_Howe", "2026-04-02 00:00"}, {"Australia/Lord_Howe", "2026-10-01 00:00"},
                {"Pacific/Apia", "2011-12-28 00:00"},        {"America/Sao_Paulo", "2018-11-02 00:00"},
                {"America/Sao_Paulo", "2018-02-15 00:00"},   {"UTC", "2026-01-01 00:00"},
                {"Asia/Kolkata", "2026-01-01 00:00"}};

/// Calls f for each change and each way to treat it.
template <class F>
void for_each_change(F f) {
  for (const auto& [zone, begin] : kChanges) {
    SCOPED_TRACE(std::string(zone) + ' ' + begin);
    for (const Gap gap : kGaps)
      for (const Fold fold : kFolds) f(zone, begin, gap, fold);
  }
}

using std::chrono::local_seconds;

/// A local rule with an occurrence every `period` of the day.
calendar::LocalRule every(seconds period) {
  return [period](local_seconds after) -> std::optional<local_seconds> {
    return local_seconds((after.time_since_epoch() / period + 1) * period);
  };
}

TEST(CalendarInZone, ARuleOfOnesOwnIsOneOfTheZone) {
  for (const seconds time : std::initializer_list<seconds>{0h, 30min, 1h + 45min, 2h + 15min, 2h + 30min, 9h}) {
    const auto daily = [time](local_seconds after) -> std::optional<local_seconds> {
      const local_seconds today = std::chrono::floor<std::chrono::days>(after) + time;
      return today > after ? today : today + 24h;
    };
    for_each_change([&](const char* zone, const char* begin, Gap gap, Fold fold) {
      EXPECT_EQ(next(calendar::in_zone(daily, {zone}, gap, fold), begin, 9),
                next(calendar::daily(time, {zone}, gap, fold), begin, 9));
    });
  }
}

#if !defined(_WIN32)

TEST(CalendarInZone, FindsEachMomentOfAFrequentRuleInOrder) {
  std::map<std::string, LocaltimeZone> zones;
  for_each_change([&](const char* name, const char* first_day, Gap gap, Fold fold) {
    const LocaltimeZone& zone = zones.try_emplace(name, name).first->second;
    const WallTime begin = utc(first_day);
    const WallTime end = begin + 24h * 5;
    std::set<WallTime> expected;
    // A day more, because a gap may move a moment by a day.
    for (WallTime local = begin - 48h; local < end + 48h; local += 10min) {
      for (const WallTime moment : zone.moments_of(local, gap, fold)) expected.insert(moment);
    }
    expected.erase(expected.begin(), expected.upper_bound(begin));
    expected.erase(expected.upper_bound(end), expected.end());
    const Rule rule = calendar::in_zone(every(10min), {name}, gap, fold);
    std::set<WallTime> found;
    for (auto time = rule(begin); time && *time <= end; time = rule(*time)) EXPECT_TRUE(found.insert(*time).second);
    EXPECT_EQ(found, expected);
    // From any moment on, not only from an occurrence.
    for (WallTime after = begin; after < end; after += 7min) EXPECT_EQ(rule(after), *expected.upper_bound(after));
  });
}

#endif

TEST(CalendarInZone, CallsTheRuleOnceUnlessAChangeIsNear) {
  int calls = 0;
  const Rule rule = calendar::in_zone(
      [&](local_seconds after) -> std::optional<local_seconds> {
        ++calls;
        return after + 1s;
      },
      {"Europe/Berlin"});
  EXPECT_EQ(rule(utc("2026-07-01 00:00")), utc("2026-07-01 00:00") + 1s);
  EXPECT_EQ(calls, 1);
}

TEST(CalendarInZone, EndsWithItsRule) {
  const Rule rule = calendar::in_zone(
      [](local_seconds after) -> std::optional<local_seconds> {
        const local_seconds last(utc("2026-10-25 02:30").time_since_epoch());  // comes twice
        return after < last ? std::optional(last) : std::nullopt;
      },
      {"Europe/Berlin"}, Gap::ShiftForward, Fold::Both);
  EXPECT_EQ(next(rule, "2026-01-01 00:00", 5), Texts({"2026-10-25 00:30", "2026-10-25 01:30"}));
  EXPECT_EQ(calendar::in_zone(every(1h), {"UTC"})(utc("9999-12-31 23:30")), std::nullopt);
}

TEST(CalendarInZone, RefusesARuleThatDoesNotAdvance) {
  const Rule rule = calendar::in_zone([](local_seconds after) { return std::optional(after); }, {"UTC"});
  EXPECT_EQ(message_of<std::invalid_argument>([&] { rule(utc("1970-01-01 00:01")); }),
            "calendar: local: returned 60 s since 1970 (expected: more than 60 s)");
}

TEST(CalendarMonthly, ClampTakesTheLastDay) {
  EXPECT_EQ(
      next(calendar::monthly(31, 0h), "2026-01-01 00:00", 5),
      Texts({"2026-01-31 00:00", "2026-02-28 00:00", "2026-03-31 00:00", "2026-04-30 00:00", "2026-05-31 00:00"}));
  EXPECT_EQ(next(calendar::monthly(30, 0h), "2028-02-01 00:00", 2), Texts({"2028-02-29 00:00", "2028-03-30 00:00"}));
}

TEST(CalendarMonthly, SkipOmitsShortMonths) {
  EXPECT_EQ(next(calendar::monthly(31, 0h, {}, MonthEnd::Skip), "2026-01-31 00:00", 4),
            Texts({"2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00", "2026-08-31 00:00"}));
  EXPECT_EQ(next(calendar::monthly(29, 0h, {}, MonthEnd::Skip), "2027-01-29 00:00", 1), Texts({"2027-03-29 00:00"}));
}

TEST(CalendarYearly, The29thOfFebruary) {
  using std::chrono::February;
  const Rule skipping = calendar::yearly(February / 29, 12h, {}, MonthEnd::Skip);
  EXPECT_EQ(next(calendar::yearly(February / 29, 12h), "2026-01-01 00:00", 3),
            Texts({"2026-02-28 12:00", "2027-02-28 12:00", "2028-02-29 12:00"}));
  EXPECT_EQ(next(skipping, "2026-01-01 00:00", 2), Texts({"2028-02-29 12:00", "2032-02-29 12:00"}));
  EXPECT_EQ(next(skipping, "2096-02-29 12:00", 1), Texts({"2104-02-29 12:00"})) << "2100 is no leap year";
}

TEST(CalendarZones, LocalTimeDecidesAboutTheEndOfAMonthOrYear) {
  EXPECT_EQ(next(calendar::monthly(1, 0h, {"Asia/Kolkata"}), "2026-11-15 00:00", 3),
            Texts({"2026-11-30 18:30", "2026-12-31 18:30", "2027-01-31 18:30"}));
  EXPECT_EQ(next(calendar::yearly(std::chrono::January / 1, 0h, {"Asia/Kolkata"}), "2026-06-01 00:00", 2),
            Texts({"2026-12-31 18:30", "2027-12-31 18:30"}));
  EXPECT_EQ(next(calendar::yearly(std::chrono::December / 31, 23h, {"America/New_York"}), "2026-06-01 00:00", 1),
            Texts({"2027-01-01 04:00"}));
}

TEST(CalendarLimits, RulesEndAfterTheYear9999) {
  EXPECT_EQ(next(calendar::daily(9h), "9999-12-29 12:00", 5), Texts({"9999-12-30 09:00", "9999-12-31 09:00"}));
  EXPECT_EQ(next(calendar::daily(9h), "9999-12-31 08:59", 5), Texts({"9999-12-31 09:00"}));
  for (const Rule& rule : {calendar::daily(0s), calendar::weekly(std::chrono::Monday, 0s), calendar::monthly(31, 0s),
                           calendar::yearly(std::chrono::February / 29, 0s, {"Europe/Berlin"}, MonthEnd::Skip)}) {
    EXPECT_EQ(rule((WallTime::max)()), std::nullopt);
    EXPECT_EQ(rule(utc("9999-12-31 23:00")), std::nullopt);
    EXPECT_TRUE(rule((WallTime::min)()));
    EXPECT_TRUE(rule(WallTime(-24h * 365 * 100)));
  }
}

TEST(CalendarErrors, BadArgumentsAreNamedWithTheirRange) {
  using std::chrono::day;
  using std::chrono::month;
  const auto expect = [](const std::string& part, const std::function<void()>& f) {
    const std::string message = message_of<std::invalid_argument>(f);
    EXPECT_TRUE(contains(message, part)) << message;
  };
  expect("calendar: time_of_day: 86400 s (expected: 0 .. 86399 s)", [] { calendar::daily(24h); });
  expect("calendar: time_of_day: -1 s (expected: 0 .. 86399 s)", [] { calendar::weekly(std::chrono::Monday, -1s); });
  expect("weekday: 8", [] { calendar::weekly(std::chrono::weekday(8), 0s); });
  expect("calendar: weekdays: none (expected: at least one)",
         [] { calendar::weekly(std::vector<std::chrono::weekday>(), 0s); });
  expect("calendar: local: null (expected: a function)", [] { calendar::in_zone(nullptr, {"UTC"}); });
  expect("calendar: day: 0 (expected: 1 .. 31)", [] { calendar::monthly(0, 0s); });
  expect("calendar: day: 32 (expected: 1 .. 31)", [] { calendar::monthly(32, 0s); });
  expect("month 2 day 30", [] { calendar::yearly(month(2) / day(30), 0s); });
  expect("month 13 day 1", [] { calendar::yearly(month(13) / day(1), 0s); });
  for (const std::string name : {"Europe/Atlantis", "", "../etc/passwd"}) {
    expect("zone: \"" + name + '"', [&] { calendar::daily(0s, {name}); });
  }
  // A message is one line.
  expect("zone: \"Mars?ERROR ?[31m?\"", [] { calendar::daily(0s, {"Mars\nERROR \x1b[31m\x7f"}); });
}

TEST(CalendarThreads, ManyThreadsMayCallOneRule) {
  const Rule rule = calendar::daily(9h, {"Europe/Lisbon"});
  run_together(4, [&](int) {
    EXPECT_EQ(rule(utc("2026-07-01 00:00")), utc("2026-07-01 08:00"));
    EXPECT_EQ(calendar::daily(9h, {"Europe/Madrid"})(utc("2026-07-01 00:00")), utc("2026-07-01 07:00"));
  });
}

}  // namespace
}  // namespace hwt::test
