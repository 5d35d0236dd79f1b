#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "format.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "parts.h"
#include "table.h"

namespace schedules {
namespace {

using namespace std::chrono_literals;
namespace calendar = hwt::calendar;

std::vector<std::pair<std::string, calendar::Rule>> rules_in(const std::string& name) {
  const calendar::Zone zone{name};
  return {
      {"daily 02:30", calendar::daily(2h + 30min, zone)},
      {"daily 02:30, gap skipped, fold both",
       calendar::daily(2h + 30min, zone, calendar::Gap::Skip, calendar::Fold::Both)},
      {"weekly Sunday 09:00", calendar::weekly(std::chrono::Sunday, 9h, zone)},
      {"monthly 31st 18:00", calendar::monthly(31, 18h, zone)},
      {"monthly 31st 18:00, short months skipped", calendar::monthly(31, 18h, zone, calendar::MonthEnd::Skip)},
      {"yearly 29 February 12:00", calendar::yearly(std::chrono::February / 29, 12h, zone)},
  };
}

void show_next(std::ostream& out, const std::string& name, const calendar::Rule& rule, hwt::WallTime from) {
  Table table({name, "occurrence", "since the previous"});
  std::optional<hwt::WallTime> previous;
  std::optional<hwt::WallTime> time = rule(from);
  for (int count = 1; count <= 5 && time; ++count, previous = time, time = rule(*time)) {
    const auto gap = previous ? std::chrono::duration_cast<std::chrono::minutes>(*time - *previous) : 0min;
    table.add({std::to_string(count), in_utc(*time),
               previous ? std::to_string(gap / 1h) + " h " + std::to_string(gap % 1h / 1min) + " min" : ""});
  }
  table.print(out);
}

/// Schedules that wait for the wall clock, and a wall clock that goes with the timer: a year takes no time.
void run_a_year(std::ostream& out, const std::vector<std::pair<std::string, calendar::Rule>>& rules,
                hwt::WallTime from) {
  const auto began = std::chrono::steady_clock::now();
  hwt::ManualTimer timer(1min);
  const auto wall_clock = [&] { return std::chrono::system_clock::time_point(from) + timer.now().time_since_epoch(); };

  struct Seen {
    int runs = 0;
    std::chrono::nanoseconds latest{};
    std::optional<hwt::WallTime> expected;
  };
  std::vector<Seen> seen(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    seen[i].expected = rules[i].second(from);
    schedule(timer, hwt::Schedule::calendar(rules[i].second, wall_clock), [&, i] {
      ++seen[i].runs;
      seen[i].latest = std::max<std::chrono::nanoseconds>(seen[i].latest, wall_clock() - *seen[i].expected);
      seen[i].expected = rules[i].second(*seen[i].expected);
    });
  }
  timer.advance(24h * 365);

  const auto took = std::chrono::steady_clock::now() - began;
  out << "365 days of them on one timer, in " << in_seconds(took) << ":\n\n";
  Table table({"rule", "runs", "latest"});
  for (std::size_t i = 0; i < rules.size(); ++i) {
    table.add({rules[i].first, std::to_string(seen[i].runs), in_seconds(seen[i].latest)});
  }
  table.print(out);
}

}  // namespace

void show_calendars(std::ostream& out, const std::string& zone, std::chrono::sys_days from) {
  const auto rules = rules_in(zone);
  out << "Calendar rules in " << zone << ", from " << in_utc(from) << ", all times in UTC:\n\n";
  for (const auto& [name, rule] : rules) show_next(out, name, rule, from);
  run_a_year(out, rules, from);
}

}  // namespace schedules
