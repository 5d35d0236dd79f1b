#include "hashed_wheel_timer/hashed_wheel_timer.h"

#include <bit>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "hashed_wheel_timer/internal/diagnostics.h"
#include "hashed_wheel_timer/internal/hashed_wheel.h"
#include "hashed_wheel_timer/internal/worker.h"

namespace hwt {

namespace {

constexpr std::int64_t kMaxTicksPerWheel = std::int64_t{1} << 30;
constexpr std::chrono::nanoseconds kMinTickDuration = std::chrono::milliseconds(1);

[[noreturn]] void refuse(const char* option, std::int64_t value, const std::string& expected) {
  throw std::invalid_argument(std::string(option) + ": " + std::to_string(value) + " (expected: " + expected + ")");
}

std::int64_t wheel_size(const Options& options) {
  if (options.ticks_per_wheel < 1 || options.ticks_per_wheel > kMaxTicksPerWheel) {
    refuse("ticks_per_wheel", options.ticks_per_wheel, "1 .. " + std::to_string(kMaxTicksPerWheel));
  }
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(options.ticks_per_wheel)));
}

std::chrono::nanoseconds checked_tick_duration(const Options& options, std::int64_t wheel_size) {
  const std::int64_t tick = options.tick_duration.count();
  const std::int64_t limit = std::numeric_limits<std::int64_t>::max() / wheel_size;
  if (tick < 1 || tick >= limit) {
    refuse("tick_duration", tick,
           "0 < tick_duration < " + std::to_string(limit) + " nanoseconds for a wheel of " +
               std::to_string(wheel_size) + " ticks");
  }
  if (options.tick_duration >= kMinTickDuration) return options.tick_duration;
  internal::warn("tick_duration: " + std::to_string(tick) + " ns is below 1 ms; using 1 ms");
  return kMinTickDuration;
}

}  // namespace

HashedWheelTimer::HashedWheelTimer() : HashedWheelTimer(Options{}) {}

HashedWheelTimer::HashedWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel)
    : HashedWheelTimer(Options{.tick_duration = tick_duration, .ticks_per_wheel = ticks_per_wheel}) {}

HashedWheelTimer::HashedWheelTimer(Options options) {
  const std::int64_t size = wheel_size(options);
  options.tick_duration = checked_tick_duration(options, size);
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
