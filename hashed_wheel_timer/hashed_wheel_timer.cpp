#include "hashed_wheel_timer/hashed_wheel_timer.h"

#include <limits>
#include <string>
#include <utility>

#include "hashed_wheel_timer/internal/checked_options.h"
#include "hashed_wheel_timer/internal/hashed_wheel.h"
#include "hashed_wheel_timer/internal/worker.h"

namespace hwt {

namespace {

constexpr std::int64_t kMaxTicksPerWheel = std::int64_t{1} << 30;

std::chrono::nanoseconds checked_tick_duration(std::chrono::nanoseconds tick_duration, std::int64_t wheel_size) {
  const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / wheel_size;
  if (tick_duration.count() < 1 || tick_duration.count() >= limit) {
    internal::refuse_option("tick_duration", tick_duration.count(),
                            "0 < tick_duration < " + std::to_string(limit) + " nanoseconds for a wheel of " +
                                std::to_string(wheel_size) + " ticks");
  }
  return internal::at_least_a_millisecond(tick_duration);
}

}  // namespace

HashedWheelTimer::HashedWheelTimer() : HashedWheelTimer(Options{}) {}

HashedWheelTimer::HashedWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel)
    : HashedWheelTimer(Options{.tick_duration = tick_duration, .ticks_per_wheel = ticks_per_wheel}) {}

HashedWheelTimer::HashedWheelTimer(Options options) {
  const std::int64_t size = internal::checked_ticks_per_wheel(options.ticks_per_wheel, 1, kMaxTicksPerWheel);
  options.tick_duration = checked_tick_duration(options.tick_duration, size);
  worker_ = new internal::Worker<internal::HashedWheel>(*this, options, size);
}

HashedWheelTimer::~HashedWheelTimer() { worker_->destroy(); }

void HashedWheelTimer::start() { worker_->start(); }

std::vector<Timeout> HashedWheelTimer::stop() { return worker_->stop(); }

std::int64_t HashedWheelTimer::pending_timeouts() const noexcept { return worker_->core().pending(); }

std::chrono::steady_clock::time_point HashedWheelTimer::now() const noexcept {
  return std::chrono::steady_clock::now();
}

TimerStats HashedWheelTimer::stats() const noexcept { return worker_->core().stats(); }

Timeout HashedWheelTimer::schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay,
                                   OnRefusal on_refusal) {
  return worker_->schedule(task, delay, on_refusal == OnRefusal::Throw);
}

}  // namespace hwt
