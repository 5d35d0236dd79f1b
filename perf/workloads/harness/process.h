#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace perf {

/// User and system time of all threads, those that have ended included.
std::chrono::nanoseconds process_cpu_time();

/// Memory of the process that is in RAM. What the allocator holds but has not given out is returned first.
std::int64_t resident_bytes();

/// Voluntary context switches so far, of all threads but the calling one; nothing where the system does not tell.
std::optional<std::int64_t> wakeups_of_other_threads();

}  // namespace perf
