#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace perf {

/// Of churn, expire and touch.
struct OperationFigures {
  std::int64_t operations = 0;
  std::chrono::nanoseconds cpu{0};
  std::chrono::nanoseconds wall{0};
  std::int64_t scheduled = 0;
  std::int64_t fired = 0;
  std::uint64_t fired_sum = 0;
  std::int64_t cancelled = 0;
  std::uint64_t cancelled_sum = 0;
};

struct MemoryFigures {
  double bytes_per_timeout = 0;
};

/// Of idle and far.
struct RestFigures {
  double cpu_ms_per_s = 0;
  std::optional<double> wakeups_per_s;
};

struct LateFigures {
  std::vector<double> late_us;  // quantiles, from 0 to 1000 permille
  std::int64_t early = 0;
};

using Figures = std::variant<OperationFigures, MemoryFigures, RestFigures, LateFigures>;

}  // namespace perf
