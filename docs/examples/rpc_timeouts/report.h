#pragma once

#include <chrono>
#include <iosfwd>
#include <optional>

#include "client.h"
#include "hashed_wheel_timer/stats.h"
#include "options.h"

namespace rpc {

struct WorkerUse {
  std::optional<std::chrono::nanoseconds> cpu_time;
  std::chrono::nanoseconds wall_time;
};

void write_report(std::ostream& out, const Options& options, const Results& results, const WorkerUse& worker,
                  const hwt::TimerStats& timer);

}  // namespace rpc
