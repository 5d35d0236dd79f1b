// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/hashed_wheel_timer.h"

#include "hashed_wheel_timer/internal/engine/checked_options.h"
#include "hashed_wheel_timer/internal/engine/worker_thread.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"

namespace hwt {

namespace {

// Netty has the same limits. A shorter tick would shorten the revolution, and in each revolution the worker walks over
// all timeouts of later ones.
constexpr internal::Limits kHashedLimits = {
    .shortest_tick = std::chrono::milliseconds(1),
    .min_ticks = 1,
    .max_ticks = std::int64_t{1} << 30,
    .limits_revolution = true,
};

}  // namespace

HashedWheelTimer::HashedWheelTimer() : HashedWheelTimer(Options{}) {}

HashedWheelTimer::HashedWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel)
    : HashedWheelTimer(Options{.tick_duration = tick_duration, .ticks_per_wheel = ticks_per_wheel}) {}

HashedWheelTimer::HashedWheelTimer(Options options) {
  options = internal::checked_options("HashedWheelTimer", std::move(options), kHashedLimits);
  set_engine(new internal::WorkerThread<internal::HashedWheel>(*this, options, options.ticks_per_wheel));
}

HashedWheelTimer::~HashedWheelTimer() { end(); }

}  // namespace hwt
