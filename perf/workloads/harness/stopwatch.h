#pragma once

#include <chrono>
#include <thread>

#include "harness/process.h"

namespace perf {

/// CPU time of the process and wall time since it was made.
class Stopwatch {
 public:
  std::chrono::nanoseconds cpu() const { return process_cpu_time() - cpu_; }
  std::chrono::nanoseconds wall() const { return std::chrono::steady_clock::now() - wall_; }

 private:
  std::chrono::nanoseconds cpu_ = process_cpu_time();
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
};

/// The time in which a worker catches up after the last operation.
inline void let_catch_up(std::chrono::milliseconds tick) {
  std::this_thread::sleep_for(2 * tick + std::chrono::milliseconds(50));
}

}  // namespace perf
