#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hwt::perf {

/// What to run. A workload takes no notice of what it has no use for.
struct Options {
  std::string workload;
  std::string timer;  // in a program that has several
  int threads = 1;
  std::int64_t tick_ms = 1;
  std::int64_t tick_us = 0;  // instead of it, if it is not 0
  std::int64_t pending = 1'000;
  std::int64_t count = 1'000'000;
  std::chrono::seconds seconds{2};
  std::string load = "crowd";  // which one
  int warmup = 0;
  std::uint64_t seed = 1;
  bool in_turn = false;  // delays in expire
  bool describe = false;

  std::chrono::microseconds tick() const {
    return tick_us == 0 ? std::chrono::milliseconds(tick_ms) : std::chrono::microseconds(tick_us);
  }

  /// What of `total` is thread t's: the first ones take one more if it does not divide.
  std::int64_t share(std::int64_t total, int t) const { return total / threads + (t < total % threads ? 1 : 0); }
};

/// Ends the program if the command line is wrong, or asks for help. The first of the `timers` is the default.
Options parse_options(int argc, char** argv, const std::vector<std::string>& timers);

}  // namespace hwt::perf
