#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

namespace idle {

struct Options {
  std::size_t connections = 10'000;
  std::size_t active = 1'000;  // of them: those that are never silent for long
  std::chrono::milliseconds limit{2000};
  std::chrono::milliseconds tick{10};
  std::chrono::milliseconds duration{6000};  // from the last connection on
};

struct ParsedOptions {
  std::optional<Options> options;  // nothing: end with exit_status, all has been said
  int exit_status = 0;
};

ParsedOptions parse_options(int argc, char** argv);

}  // namespace idle
