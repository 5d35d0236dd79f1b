#pragma once

#include <chrono>
#include <ctime>

namespace pool {

/// Time that has passed, and processor time of the whole program.
class Stopwatch {
 public:
  struct Elapsed {
    std::chrono::nanoseconds wall;
    std::chrono::nanoseconds cpu;
  };
  Elapsed elapsed() const {
    const std::chrono::duration<double> cpu(static_cast<double>(std::clock() - cpu_start_) / CLOCKS_PER_SEC);
    return {std::chrono::steady_clock::now() - wall_start_, std::chrono::duration_cast<std::chrono::nanoseconds>(cpu)};
  }

 private:
  const std::chrono::steady_clock::time_point wall_start_ = std::chrono::steady_clock::now();
  const std::clock_t cpu_start_ = std::clock();
};

}  // namespace pool
