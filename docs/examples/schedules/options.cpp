#include "options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <stdexcept>

#include "hashed_wheel_timer/calendar.h"

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
    throw CLI::ValidationError("--from", "\"" + text + "\" (expected: a date 1970-01-01 .. 2200-12-31)");
  }
  return date;
}

}  // namespace

ParsedOptions parse_options(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Every kind of schedule of hashed_wheel_timer, as timetables: first in simulated time, with a timer that is\n"
      "held up; then calendar rules over changes of the clocks, and a year of them; then on the real clocks.\n\n"
      "Exit status: 0; 1 if something ran too early or did not run; 2 for an argument that is not valid.\n",
      "schedules");
  app.add_option("--zone", options.zone, "Time zone of the calendar rules, a name such as America/New_York")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--from", [&options](const std::string& text) { options.from = date_of(text); },
         "First day of the calendar rules")
      ->type_name("DATE")
      ->default_str("2028-03-23");
  bool simulated = false;
  app.add_flag("--simulated", simulated, "Without the part on the real clocks, which takes some three seconds");
  try {
    app.parse(argc, argv);
    options.real_time = !simulated;
    hwt::calendar::daily(std::chrono::seconds(0), {options.zone});
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return {std::nullopt, app.exit(error)};
    std::cerr << "schedules: " << error.what() << "; see --help\n";
    return {std::nullopt, 2};
  } catch (const std::invalid_argument& error) {
    std::cerr << "schedules: --zone: " << error.what() << "; see --help\n";
    return {std::nullopt, 2};
  }
  return {options, 0};
}

}  // namespace schedules
