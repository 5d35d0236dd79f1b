// Repeated jobs: every kind of schedule on one timer, printed as timetables.
//
// kinds.h: gaps and missed runs; calendars.h: calendar rules; real_time.h: real clocks.

#include <cstdio>

#include "calendars.h"
#include "common/common.h"
#include "kinds.h"
#include "real_time.h"

namespace schedules {
namespace {

std::chrono::sys_days date_of(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  char rest = 0;
  const bool complete = std::sscanf(text.c_str(), "%4d-%2u-%2u%c", &year, &month, &day, &rest) == 3;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)};
  if (!complete || !date.ok() || year < 1970 || year > 2200) {
    common::Options::refuse("--from", text, "a date 1970-01-01 .. 2200-12-31");
  }
  return date;
}

bool run(common::Options& options) {
  std::string zone = "Europe/Berlin";
  std::chrono::sys_days from = std::chrono::year(2028) / 3 / 23;  // some days before daylight saving time in Europe
  bool simulated = false;
  std::uint64_t runs = 5;
  options.text("--zone", "NAME", zone, "Time zone of the calendar rules, such as America/New_York",
               [&](const std::string& name) {
                 try {
                   hwt::calendar::daily(0s, {name});
                 } catch (const std::invalid_argument& error) {
                   throw common::BadArgument(std::string("--zone: ") + error.what());
                 }
                 zone = name;
               });
  options.text("--from", "DATE", "2028-03-23", "First day of the calendar rules (1970-01-01 .. 2200-12-31)",
               [&](const std::string& text) { from = date_of(text); });
  options.flag("--simulated", simulated, "Only simulated time: without the real clocks, which take three seconds");
  options.number("--runs", runs, {1, 1e6}, "Runs at a fixed rate of 250 ms on the real clocks");
  options.parse();
  show_kinds();
  show_calendars(zone, from);
  return simulated || common::interrupted() || show_real_time(runs);
}

}  // namespace
}  // namespace schedules

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv,
      {"schedules",
       "Timetables of every kind of schedule: in simulated time, with a timer that stalls for a while; calendar rules\n"
       "over changes of the clocks; and the real clocks.",
       "a run was early or missing"},
      schedules::run);
}
