#include "hashed_wheel_timer/hierarchical_wheel_timer.h"

#include <utility>

#include "hashed_wheel_timer/internal/checked_options.h"
#include "hashed_wheel_timer/internal/hierarchical_wheel.h"
#include "hashed_wheel_timer/internal/slot_levels.h"
#include "hashed_wheel_timer/internal/worker.h"

namespace hwt {

namespace {

/// A level that fits into one word of occupancy, and eleven of them cover all ticks.
constexpr std::int64_t kDefaultSlots = 64;

std::int64_t slots_of(const Options& options) {
  return options.ticks_per_wheel == Options{}.ticks_per_wheel ? kDefaultSlots : options.ticks_per_wheel;
}

std::chrono::nanoseconds checked_tick_duration(std::chrono::nanoseconds tick_duration) {
  if (tick_duration.count() < 1) {
    internal::refuse_option("tick_duration", tick_duration.count(), "1 nanosecond or more");
  }
  return internal::at_least_a_millisecond(tick_duration);
}

internal::Worker<internal::HierarchicalWheel>* make_worker(Timer& timer, Options options, std::int64_t slots) {
  slots = internal::checked_ticks_per_wheel(slots, internal::SlotLevels::kMinSlots, internal::SlotLevels::kMaxSlots);
  options.tick_duration = checked_tick_duration(options.tick_duration);
  return new internal::Worker<internal::HierarchicalWheel>(timer, options, slots);
}

}  // namespace

HierarchicalWheelTimer::HierarchicalWheelTimer() : HierarchicalWheelTimer(Options{}) {}

HierarchicalWheelTimer::HierarchicalWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel)
    : worker_(make_worker(*this, Options{.tick_duration = tick_duration}, ticks_per_wheel)) {}

HierarchicalWheelTimer::HierarchicalWheelTimer(Options options)
    : worker_(make_worker(*this, options, slots_of(options))) {}

HierarchicalWheelTimer::~HierarchicalWheelTimer() { worker_->destroy(); }

void HierarchicalWheelTimer::start() { worker_->start(); }

std::vector<Timeout> HierarchicalWheelTimer::stop() { return worker_->stop(); }

std::int64_t HierarchicalWheelTimer::pending_timeouts() const noexcept { return worker_->core().pending(); }

std::chrono::steady_clock::time_point HierarchicalWheelTimer::now() const noexcept {
  return std::chrono::steady_clock::now();
}

TimerStats HierarchicalWheelTimer::stats() const noexcept { return worker_->core().stats(); }

Timeout HierarchicalWheelTimer::schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay,
                                         OnRefusal on_refusal) {
  return worker_->schedule(task, delay, on_refusal == OnRefusal::Throw);
}

}  // namespace hwt
