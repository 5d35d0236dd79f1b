#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <thread>

#include "perf/workloads/options.h"

namespace hwt::perf {

using Json = nlohmann::ordered_json;

/// Returns the user and system time of all threads, including ended ones.
std::chrono::nanoseconds process_cpu_time();

/// Returns the resident memory of the process. First makes the allocator return its free memory.
std::int64_t resident_bytes();

/// Measures `work`, which has `options.count` operations. The CPU time includes a rest, in which the worker catches up.
template <class Work>
Json measured(const Options& options, Work&& work) {
  using std::chrono::nanoseconds;
  const nanoseconds cpu_before = process_cpu_time();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const nanoseconds wall = std::chrono::steady_clock::now() - begin;
  std::this_thread::sleep_for(2 * options.tick() + std::chrono::milliseconds(50));
  const nanoseconds cpu = process_cpu_time() - cpu_before;
  const auto each = [&](nanoseconds time) {
    return static_cast<double>(time.count()) / static_cast<double>(options.count);
  };
  return {{"operations", options.count},
          {"cpu_ns_per_op", each(cpu)},
          {"wall_ns_per_op", each(wall)},
          {"wall_ms", std::chrono::duration<double, std::milli>(wall).count()}};
}

/// Measures the process while no timeout is due.
Json at_rest(const Options& options);

}  // namespace hwt::perf
