#include "hashed_wheel_timer/hierarchical_wheel_timer.h"

#include "hashed_wheel_timer/internal/engine/checked_options.h"
#include "hashed_wheel_timer/internal/engine/worker_loop.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "hashed_wheel_timer/internal/wheel/slot_levels.h"

namespace hwt {

namespace {

using internal::SlotLevels;

/// The occupancy of a level fits into one word, and eleven levels cover all ticks.
constexpr std::int64_t kDefaultSlots = 64;

/// Shorter than what it takes to wake a thread, a tick makes nothing more exact.
constexpr std::chrono::nanoseconds kShortestTick = std::chrono::microseconds(1);

std::int64_t slots_of(const Options& options) {
  return options.ticks_per_wheel == Options{}.ticks_per_wheel ? kDefaultSlots : options.ticks_per_wheel;
}

internal::ThreadedEngine* make_engine(Timer& timer, Options options, std::int64_t slots) {
  slots =
      internal::checked_ticks_per_wheel("HierarchicalWheelTimer", slots, SlotLevels::kMinSlots, SlotLevels::kMaxSlots);
  options.tick_duration =
      internal::checked_tick_duration("HierarchicalWheelTimer", options.tick_duration, kShortestTick);
  internal::check_slow_task("HierarchicalWheelTimer", options.slow_task);
  return new internal::WorkerLoop<internal::HierarchicalWheel>(timer, options, slots);
}

}  // namespace

HierarchicalWheelTimer::HierarchicalWheelTimer() : HierarchicalWheelTimer(Options{}) {}

HierarchicalWheelTimer::HierarchicalWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel) {
  set_engine(make_engine(*this, Options{.tick_duration = tick_duration}, ticks_per_wheel));
}

HierarchicalWheelTimer::HierarchicalWheelTimer(Options options) {
  set_engine(make_engine(*this, options, slots_of(options)));
}

HierarchicalWheelTimer::~HierarchicalWheelTimer() { end(); }

}  // namespace hwt
