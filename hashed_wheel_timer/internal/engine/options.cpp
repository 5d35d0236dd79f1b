// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/options.h"

#include <bit>
#include <string>

#include "hashed_wheel_timer/internal/engine/checked_options.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::internal {

namespace {

using std::chrono::nanoseconds;

std::int64_t checked_ticks(const std::string& what, std::int64_t ticks, const Limits& limits) {
  if (ticks < limits.min_ticks || ticks > limits.max_ticks) {
    refuse(what, ticks, std::to_string(limits.min_ticks) + " .. " + std::to_string(limits.max_ticks));
  }
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(ticks)));
}

nanoseconds checked_tick_duration(const std::string& what, nanoseconds tick, nanoseconds shortest) {
  if (tick >= shortest) return tick;
  const std::string least = text_of(shortest);
  if (tick <= nanoseconds::zero()) refuse(what, tick, least + " or more");
  warn(what + ": " + text_of(tick) + " is below " + least + "; using " + least);
  return shortest;
}

}  // namespace

Options checked_options(const char* timer, Options options, const Limits& limits) {
  const auto what = [timer](const char* option) { return std::string(timer) + ": " + option; };
  if (limits.max_ticks != 0) {
    options.ticks_per_wheel = checked_ticks(what("ticks_per_wheel"), options.ticks_per_wheel, limits);
  }
  const nanoseconds tick = checked_tick_duration(
      what("tick_duration"), options.tick_duration.value_or(limits.default_tick), limits.shortest_tick);
  options.tick_duration = tick;
  if (limits.limits_revolution) {
    const nanoseconds longest((nanoseconds::max)().count() / options.ticks_per_wheel - 1);
    if (tick > longest) {
      refuse(what("tick_duration"), tick,
             text_of(limits.shortest_tick) + " .. " + text_of(std::chrono::floor<std::chrono::milliseconds>(longest)) +
                 " for a wheel of " + std::to_string(options.ticks_per_wheel) + " ticks");
    }
  }
  if (options.slow_task < nanoseconds::zero() && options.slow_task) {
    refuse(what("slow_task"), *options.slow_task, "1 ns or more, or 0 for off");
  }
  if (!limits.has_thread && options.thread_factory) {
    refuse(what("thread_factory"), "set", "none: the timer has no thread");
  }
  return options;
}

}  // namespace hwt::internal
