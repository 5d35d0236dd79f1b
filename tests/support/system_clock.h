#pragma once

#include <chrono>

namespace hwt::test {

/// Returns a time of the wall clock. Rounds down, because system_clock counts microseconds with libc++.
inline std::chrono::system_clock::time_point system_clock_at(std::chrono::nanoseconds since_epoch) {
  return std::chrono::system_clock::time_point(std::chrono::floor<std::chrono::system_clock::duration>(since_epoch));
}

}  // namespace hwt::test
