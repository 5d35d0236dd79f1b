// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/when.h"

#include <algorithm>
#include <ctime>
#include <string>

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt {

namespace {

/// Returns the time of steady_clock less that of the wall clock: exactly, or too much by the time between two readings.
std::int64_t steady_less_wall() noexcept {
#if defined(__linux__)
  timespec steady{}, wall{}, again{};
  // The system sets both coarse clocks in one update. If there was none between the two readings of steady_clock, the
  // reading of the wall clock belongs to them. No loop: if a system has exact clocks here, they always differ.
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &steady) == 0 && clock_gettime(CLOCK_REALTIME_COARSE, &wall) == 0 &&
      clock_gettime(CLOCK_MONOTONIC_COARSE, &again) == 0 && steady.tv_nsec == again.tv_nsec &&
      steady.tv_sec == again.tv_sec) [[likely]] {
    return (std::int64_t{steady.tv_sec} - wall.tv_sec) * std::nano::den + steady.tv_nsec - wall.tv_nsec;
  }
#endif
  // The wall clock first: a thread that is preempted between the two readings gets a later deadline, not an earlier
  // one.
  const std::chrono::nanoseconds exact_wall = std::chrono::system_clock::now().time_since_epoch();
  return internal::steady_now() - exact_wall.count();
}

}  // namespace

void detail::refuse_nan(const char* parameter) { internal::refuse(parameter, "NaN", "a number"); }

void detail::refuse_text(const char* what, const char* text, const char* expected) {
  internal::refuse(what, std::string("\"") + text + '"', expected);
}

std::int64_t detail::steady_time_of(std::int64_t wall) noexcept {
  using Limits = std::numeric_limits<std::int64_t>;
  if (wall == (Limits::max)()) return wall;
  const std::int64_t offset = steady_less_wall();
  return offset < 0 ? (std::max)(wall, (Limits::min)() - offset) + offset
                    : (std::min)(wall, (Limits::max)() - offset) + offset;
}

}  // namespace hwt
