#pragma once

#include <chrono>
#include <cstdint>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/threaded_timer.h"

namespace hwt {

/// A Timer with one worker thread that turns a wheel of power-of-two buckets: for request timeouts, which are scheduled
/// by many threads, lie within a revolution or so, and are nearly all cancelled.
///
///   hwt::HashedWheelTimer timer{{.tick_duration = 10ms}};
///   hwt::Timeout timeout = timer.new_timeout([id] { fail_request(id); }, 250ms);
///
/// Guarantees: those of Timer; late by at most a tick plus the worker's own lag. Scheduling and cancelling cost O(1)
/// and take no lock. With nothing pending, the worker sleeps.
/// Threads: any may call any member; tasks run on the worker, or in Options::executor.
/// Not for: one timer per object; share one instance per process or framework: more than 64 live ones give one warning
/// on stderr. Many timeouts that are far away: HierarchicalWheelTimer.
/// Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 6; Netty's HashedWheelTimer.
class HWT_API HashedWheelTimer final : public ThreadedTimer {
 public:
  /// With the defaults of Options: a tick of 100 ms, 512 buckets. Throws std::bad_alloc.
  HashedWheelTimer();
  /// Throws std::invalid_argument that names the option, its value and the valid range; std::bad_alloc.
  explicit HashedWheelTimer(Options options);
  /// The same, with the other options at their defaults.
  explicit HashedWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel = 512);
  /// Stops, as ThreadedTimer says.
  ~HashedWheelTimer() override;
};

}  // namespace hwt
