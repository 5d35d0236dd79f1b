// Jobs that run again and again: every kind of schedule on one timer, printed as timetables.
//
// kinds.cpp: gaps and what becomes of missed runs; calendars.cpp: calendar rules; real_time.cpp: the real clocks.

#include <exception>
#include <iostream>
#include <stdexcept>

#include "options.h"
#include "parts.h"

int main(int argc, char** argv) {
  try {
    const schedules::ParsedOptions parsed = schedules::parse_options(argc, argv);
    if (!parsed.options) return parsed.exit_status;
    schedules::show_kinds(std::cout);
    schedules::show_calendars(std::cout, parsed.options->zone, parsed.options->from);
    const bool good = !parsed.options->real_time || schedules::show_real_time(std::cout);
    std::cout.flush();
    if (!std::cout) throw std::runtime_error("cannot write the timetables");
    return good ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "schedules: " << error.what() << '\n';
    return 1;
  }
}
