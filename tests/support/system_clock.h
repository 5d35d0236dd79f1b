#pragma once

#include <chrono>

namespace hwt::test {

/// A time of the wall clock, which counts in microseconds with libc++.
inline std::chrono::system_clock::time_point system_clock_at(std::chrono::nanoseconds since_epoch) {
  return std::chrono::system_clock::time_point(std::chrono::floor<std::chrono::system_clock::duration>(since_epoch));
}

}  // namespace hwt::test
