#pragma once

#include <chrono>
#include <cstdint>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/threaded_timer.h"

namespace hwt {

/// A Timer like HashedWheelTimer over a hierarchy of wheels: for many timeouts that are far away, and for ticks down to
/// a microsecond. What is far away costs nothing until it comes near, whatever its number and the tick, where a hashed
/// wheel walks over it in each revolution.
///
///   hwt::HierarchicalWheelTimer timer{{.tick_duration = 10ms, .ticks_per_wheel = 1024}};
///   hwt::Timeout expiry = timer.new_timeout([session] { close(session); }, 8h);
///   hwt::HierarchicalWheelTimer pacer{10us};   // late by some 10 us on an idle machine
///
/// Guarantees: those of HashedWheelTimer, and the same costs of new_timeout() and cancel(). Levels cover every delay,
/// and every timeout has its exact tick; it moves to a lower level a few times at most, for which the worker wakes up.
/// With a tick below 1 ms the worker's sleeps are made exact (Linux: timer slack), ticks that are over are worked off
/// together, and a TimerTask's cancelled() is called within 1 ms.
/// Threads: as HashedWheelTimer.
/// Not for: few timeouts within a revolution, which HashedWheelTimer serves with fewer wake-ups.
/// Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 7; Kafka's SystemTimer and
/// TimingWheel, which are early by up to a tick where this is late.
class HWT_API HierarchicalWheelTimer final : public ThreadedTimer {
 public:
  /// A tick of 100 ms, 64 slots a level. Throws std::bad_alloc.
  HierarchicalWheelTimer();
  /// `ticks_per_wheel` is the number of slots of each level: 2 .. 4096, rounded up to a power of two. 512, the default
  /// of Options, stands for this timer's own, 64; the other constructor takes it as it is. `tick_duration` may be any
  /// from 1 us on; a shorter one is raised to that with a warning. Throws std::invalid_argument that names the option,
  /// its value and the valid range; std::bad_alloc.
  explicit HierarchicalWheelTimer(Options options);
  /// The same, with the other options at their defaults.
  explicit HierarchicalWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel = 64);
  /// Stops, as ThreadedTimer says.
  ~HierarchicalWheelTimer() override;
};

}  // namespace hwt
