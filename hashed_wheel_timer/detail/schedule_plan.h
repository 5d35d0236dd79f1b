// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "hashed_wheel_timer/detail/calendar_rule.h"

namespace hwt {

enum class CatchUp : std::uint8_t;  // schedule.h

namespace detail {

/// The contents of a Schedule.
struct SchedulePlan {
  std::chrono::nanoseconds initial{};            // until the first occurrence
  std::vector<std::chrono::nanoseconds> gaps{};  // between two occurrences
  std::size_t first_gap = 0;                     // index of the gap after the first occurrence
  bool repeat = false;                           // the first gap follows the last
  bool from_end = false;                         // gaps count from the end of a run
  CatchUp catch_up{};                            // CatchUp::Skip by default
  calendar::Rule rule{};                         // if set, replaces the members above but `catch_up`
  std::function<std::chrono::system_clock::time_point()> wall_clock{};  // for `rule`; empty: system_clock::now()
  std::uint64_t limit = (std::numeric_limits<std::uint64_t>::max)();    // of runs; 0: the plan was moved from
  std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)> jitter{};
};

}  // namespace detail
}  // namespace hwt
