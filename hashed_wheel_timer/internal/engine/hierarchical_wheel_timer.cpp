// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"

#include "hashed_wheel_timer/internal/engine/checked_options.h"
#include "hashed_wheel_timer/internal/engine/worker_thread.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "hashed_wheel_timer/internal/wheel/slot_levels.h"

namespace hwt {

namespace {

// One word then has a bit for each slot of a level, and eleven levels cover all ticks.
constexpr std::int64_t kDefaultSlots = 64;

constexpr internal::Limits kHierarchicalLimits = {
    .shortest_tick = std::chrono::microseconds(1),  // waking a thread takes longer, so a shorter tick is no more exact
    .min_ticks = internal::SlotLevels::kMinSlots,
    .max_ticks = internal::SlotLevels::kMaxSlots,
};

internal::ThreadedEngine* make_engine(Timer& timer, Options options) {
  options = internal::checked_options("HierarchicalWheelTimer", std::move(options), kHierarchicalLimits);
  return new internal::WorkerThread<internal::HierarchicalWheel>(timer, options, options.ticks_per_wheel);
}

}  // namespace

HierarchicalWheelTimer::HierarchicalWheelTimer() : HierarchicalWheelTimer(Options{}) {}

HierarchicalWheelTimer::HierarchicalWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel) {
  set_engine(make_engine(*this, Options{.tick_duration = tick_duration, .ticks_per_wheel = ticks_per_wheel}));
}

HierarchicalWheelTimer::HierarchicalWheelTimer(Options options) {
  // The default of Options suits a hashed wheel.
  if (options.ticks_per_wheel == Options{}.ticks_per_wheel) options.ticks_per_wheel = kDefaultSlots;
  set_engine(make_engine(*this, std::move(options)));
}

HierarchicalWheelTimer::~HierarchicalWheelTimer() { end(); }

}  // namespace hwt
