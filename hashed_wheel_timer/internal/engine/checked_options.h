// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "hashed_wheel_timer/options.h"

namespace hwt::internal {

/// The tick of HashedWheelTimer and HierarchicalWheelTimer, if the user sets none.
inline constexpr std::chrono::nanoseconds kTickOfThreaded = std::chrono::milliseconds(100);

/// The options that one kind of timer accepts.
struct Limits {
  /// A shorter tick is raised to this, with a warning. A tick of zero or less is refused.
  std::chrono::nanoseconds shortest_tick;
  /// ticks_per_wheel must be in [min_ticks, max_ticks], and is rounded up to a power of two. 0: it is ignored.
  std::int64_t min_ticks = 0;
  std::int64_t max_ticks = 0;
  /// The tick if the user sets none.
  std::chrono::nanoseconds default_tick = kTickOfThreaded;
  /// A revolution of the wheel must fit into nanoseconds.
  bool limits_revolution = false;
  /// The timer makes its thread by thread_factory.
  bool has_thread = true;
};

/// Returns the options as the timer uses them. Throws std::invalid_argument, which names `timer`, the option, its value
/// and the range. All checks of options are in options.cpp.
Options checked_options(const char* timer, Options options, const Limits& limits);

}  // namespace hwt::internal
