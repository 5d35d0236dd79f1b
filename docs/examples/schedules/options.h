#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace schedules {

struct Options {
  std::string zone = "Europe/Berlin";
  std::chrono::sys_days from = std::chrono::year(2028) / 3 / 23;  // before clocks are put forward in Europe
  bool real_time = true;
};

struct ParsedOptions {
  std::optional<Options> options;  // nothing: end with exit_status, all has been said
  int exit_status = 0;
};

ParsedOptions parse_options(int argc, char** argv);

}  // namespace schedules
