#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace raft {

struct Options {
  int nodes = 3;
  std::chrono::milliseconds election_timeout{150};
  std::chrono::milliseconds tick{5};
  std::chrono::milliseconds within{10'000};  // what each step may take
  std::uint64_t seed = 1;
};

struct ParsedOptions {
  std::optional<Options> options;  // nothing: end with exit_status, all has been said
  int exit_status = 0;
};

ParsedOptions parse_options(int argc, char** argv);

}  // namespace raft
