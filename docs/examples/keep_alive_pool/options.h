#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace pool {

struct Options {
  std::int64_t connections = 1'000'000;
  int threads = 2;
  double minutes = 2;  // of simulated time
  std::chrono::milliseconds tick{100};
  double silent = 0.01;  // share of the connections
  double live_seconds = 4;
  std::uint64_t seed = 1;
};

struct ParsedOptions {
  std::optional<Options> options;  // nothing: end with exit_status, all has been said
  int exit_status = 0;
};

ParsedOptions parse_options(int argc, char** argv);

}  // namespace pool
