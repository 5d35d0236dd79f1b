#pragma once

// Counts the readings of steady_clock in the executable that includes this header, where it can: with libstdc++ on
// Linux. HWT_TEST_COUNTS_CLOCK_READINGS tells. Only one source file of an executable may include it.

#if defined(__linux__) && defined(__GLIBCXX__)
#define HWT_TEST_COUNTS_CLOCK_READINGS 1

#include <time.h>

#include <chrono>

namespace hwt::test {

inline thread_local int clock_readings = 0;  // of this thread

}  // namespace hwt::test

// Instead of the one of the C++ library, for the whole program.
std::chrono::steady_clock::time_point std::chrono::steady_clock::now() noexcept {
  ++hwt::test::clock_readings;
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}
#endif
