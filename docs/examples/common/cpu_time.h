#pragma once

#include <chrono>
#include <ctime>

namespace common {

/// Reads one of the POSIX clocks of CPU time.
inline std::chrono::nanoseconds read_cpu_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Returns the CPU time of the calling thread.
inline std::chrono::nanoseconds cpu_time_of_thread() { return read_cpu_clock(CLOCK_THREAD_CPUTIME_ID); }

/// Returns the CPU time of all threads of the process, those that have ended included.
inline std::chrono::nanoseconds cpu_time_of_process() { return read_cpu_clock(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace common
