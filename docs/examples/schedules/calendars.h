#pragma once

#include <array>
#include <cstdio>

#include "common/common.h"
#include "hashed_wheel_timer/calendar.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/schedule.h"

namespace schedules {

using namespace std::chrono_literals;

/// "Sun 2026-03-29 01:00:00" in UTC. The year has at least four digits.
inline std::string in_utc(std::chrono::sys_seconds time) {
  static constexpr std::array kNames{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s %04d-%02u-%02u %02d:%02d:%02d",
                kNames.at(std::chrono::weekday(day).c_encoding()), static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

using Rules = std::vector<std::pair<std::string, hwt::calendar::Rule>>;

inline void show_next(const std::string& name, const hwt::calendar::Rule& rule, hwt::WallTime from) {
  std::vector<std::vector<std::string>> table{{name, "occurrence", "since the previous"}};
  std::optional<hwt::WallTime> previous;
  for (auto time = rule(from); table.size() <= 5 && time; previous = time, time = rule(*time)) {
    const auto gap = previous ? *time - *previous : 0s;
    table.push_back({common::text_of(table.size()), in_utc(*time),
                     previous ? common::text_of(gap / 1h) + " h " + common::text_of(gap % 1h / 1min) + " min" : ""});
  }
  common::print(common::columns(table) + '\n');
}

/// Schedules on a wall clock that follows a ManualTimer, so a year takes no time.
inline void run_a_year(const Rules& rules, hwt::WallTime from) {
  const auto began = std::chrono::steady_clock::now();
  hwt::ManualTimer timer(1min, {}, common::give_up);
  const auto wall_clock = [&] { return std::chrono::system_clock::time_point(from) + timer.now().time_since_epoch(); };

  struct Seen {
    int runs = 0;
    std::chrono::nanoseconds latest{};
    std::optional<hwt::WallTime> expected;
  };
  std::vector<Seen> seen(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    seen[i].expected = rules[i].second(from);
    schedule(timer, hwt::Schedule::calendar(rules[i].second, hwt::CatchUp::Skip, wall_clock), [&, i] {
      ++seen[i].runs;
      seen[i].latest = std::max<std::chrono::nanoseconds>(seen[i].latest, wall_clock() - *seen[i].expected);
      seen[i].expected = rules[i].second(*seen[i].expected);
    });
  }
  std::chrono::days passed(0);
  for (; passed < std::chrono::days(365) && !common::interrupted(); ++passed) {
    timer.advance(24h);
    common::show_progress([&] { return common::counted(passed.count(), "day") + " of 365"; });
  }

  std::vector<std::vector<std::string>> table{{"rule", "runs", "latest"}};
  for (std::size_t i = 0; i < rules.size(); ++i) {
    table.push_back({rules[i].first, common::text_of(seen[i].runs), common::text_of(seen[i].latest)});
  }
  common::print(common::counted(passed.count(), "day") + " of them on one timer, in " +
                common::text_of(std::chrono::steady_clock::now() - began) + ":\n\n" + common::columns(table) + '\n');
}

/// Prints the next occurrences of calendar rules in a zone, then runs a year of them on one ManualTimer.
inline void show_calendars(const std::string& zone_name, std::chrono::sys_days from) {
  namespace calendar = hwt::calendar;
  const calendar::Zone zone{zone_name};
  const Rules rules{
      {"daily 02:30", calendar::daily(2h + 30min, zone)},
      {"daily 02:30, gap skipped, fold both",
       calendar::daily(2h + 30min, zone, calendar::Gap::Skip, calendar::Fold::Both)},
      {"weekly Sunday 09:00", calendar::weekly(std::chrono::Sunday, 9h, zone)},
      {"monthly 31st 18:00", calendar::monthly(31, 18h, zone)},
      {"monthly 31st 18:00, short months skipped", calendar::monthly(31, 18h, zone, calendar::MonthEnd::Skip)},
      {"yearly 29 February 12:00", calendar::yearly(std::chrono::February / 29, 12h, zone)},
  };
  common::print("Calendar rules in " + zone_name + ", from " + in_utc(from) + ", all times in UTC:\n\n");
  for (const auto& [name, rule] : rules) show_next(name, rule, from);
  run_a_year(rules, from);
}

}  // namespace schedules
