#include "hashed_wheel_timer/hashed_wheel_timer.h"

#include <string>

#include "hashed_wheel_timer/internal/engine/checked_options.h"
#include "hashed_wheel_timer/internal/engine/worker_loop.h"
#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"

namespace hwt {

namespace {

constexpr std::int64_t kMaxTicksPerWheel = std::int64_t{1} << 30;

/// What is due in later revolutions is looked at in each, so a revolution should not be shorter than delays.
constexpr std::chrono::nanoseconds kNettysShortestTick = std::chrono::milliseconds(1);

}  // namespace

HashedWheelTimer::HashedWheelTimer() : HashedWheelTimer(Options{}) {}

HashedWheelTimer::HashedWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel)
    : HashedWheelTimer(Options{.tick_duration = tick_duration, .ticks_per_wheel = ticks_per_wheel}) {}

HashedWheelTimer::HashedWheelTimer(Options options) {
  const std::int64_t buckets =
      internal::checked_ticks_per_wheel("HashedWheelTimer", options.ticks_per_wheel, 1, kMaxTicksPerWheel);
  options.tick_duration =
      internal::checked_tick_duration("HashedWheelTimer", options.tick_duration, kNettysShortestTick);
  // A revolution fits into nanoseconds.
  const std::chrono::nanoseconds longest((std::chrono::nanoseconds::max)().count() / buckets - 1);
  if (options.tick_duration > longest) {
    internal::refuse("HashedWheelTimer: tick_duration", options.tick_duration,
                     "1 ms .. " + internal::text_of(std::chrono::floor<std::chrono::milliseconds>(longest)) +
                         " for a wheel of " + std::to_string(buckets) + " ticks");
  }
  internal::check_slow_task("HashedWheelTimer", options.slow_task);
  set_engine(new internal::WorkerLoop<internal::HashedWheel>(*this, options, buckets));
}

HashedWheelTimer::~HashedWheelTimer() { end(); }

}  // namespace hwt
