#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace hwt::perf {

/// The options of a run. A workload ignores options that it does not need.
struct Options {
  std::string workload;
  std::string timer;  // in a program with several timers
  int threads = 1;
  std::int64_t tick_ms = 1;
  std::int64_t tick_us = 0;  // replaces tick_ms unless it is 0
  std::int64_t pending = 1'000;
  std::int64_t count = 1'000'000;
  std::chrono::seconds seconds{2};
  int far_threads = 0;         // for the workload `late`
  std::int64_t due_ms = 0;     // for the workload `rate`
  std::string load = "crowd";  // the kind of the workload `load`
  int warmup = 0;
  std::uint64_t seed = 1;
  bool in_turn = false;  // for the workload `expire`: delays in order instead of random ones
  bool describe = false;

  std::chrono::microseconds tick() const {
    return tick_us == 0 ? std::chrono::milliseconds(tick_ms) : std::chrono::microseconds(tick_us);
  }

  /// Returns thread t's share of `total`. If it does not divide evenly, the first threads take one more.
  std::int64_t share(std::int64_t total, int t) const { return total / threads + (t < total % threads ? 1 : 0); }
};

/// Parses the command line. Exits if it is wrong or asks for help. The first of the `timers` is the default.
Options parse_options(int argc, char** argv, const std::vector<std::string>& timers);

}  // namespace hwt::perf
