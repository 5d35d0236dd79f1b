#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

enum class Workload { Churn, Expire, Memory, Idle, Far, Late, Touch };

std::string_view name_of(Workload workload);

/// What to run. What the workload does not use is 1 thread, and 0 for the others.
struct Options {
  Workload workload = Workload::Churn;
  std::size_t timer = 0;  // which of the timers that the program has
  int threads = 1;
  std::chrono::milliseconds tick{0};
  std::int64_t pending = 0;
  std::int64_t count = 0;
  std::chrono::seconds seconds{0};
  int rounds = 1;
  int warmup = 0;
  std::uint64_t seed = 1;
  bool json = false;
  bool describe = false;
};

struct ParsedOptions {
  std::optional<Options> options;  // nothing: end with exit_status, all has been said
  int exit_status = 0;
};

/// Where there are several `timers`, --timer takes the name of one.
ParsedOptions parse_options(int argc, char** argv, std::string_view runner, const std::vector<std::string>& timers);

}  // namespace perf
