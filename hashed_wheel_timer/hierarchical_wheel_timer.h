// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/threaded_timer.h"

namespace hwt {

/// A Timer like HashedWheelTimer, on a hierarchy of wheels. It is made for many far timeouts, and for ticks down to a
/// microsecond. A far timeout costs nothing until it comes near, where a hashed wheel walks over it in each revolution.
///
///   hwt::HierarchicalWheelTimer timer{{.tick_duration = 10ms, .ticks_per_wheel = 1024}};
///   hwt::Timeout expiry = timer.new_timeout([session] { close(session); }, 8h);
///   hwt::HierarchicalWheelTimer pacer{10us};   // late by some 10 us on an idle machine
///
/// Guarantees: those of HashedWheelTimer, and the same costs of new_timeout() and cancel(). Levels cover every delay,
/// and every timeout has its exact tick. The worker wakes up to move a timeout to a lower level, a few times at most.
/// With a tick below 1 ms the worker's sleeps are made exact (Linux: timer slack), past ticks are processed together,
/// and a TimerTask's cancelled() is called within 1 ms.
/// Threads: any thread may call any member. Tasks run on the worker, or in Options::executor.
/// Not for: programs whose few timeouts all lie within a revolution of a HashedWheelTimer, which needs fewer wake-ups.
/// Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 7; Kafka's SystemTimer and
/// TimingWheel, which are early by up to a tick where this timer is late.
class HWT_API HierarchicalWheelTimer final : public ThreadedTimer {
 public:
  /// Makes a timer with a tick of 100 ms and 64 slots a level. Throws std::bad_alloc; std::system_error if no pthread
  /// key is left.
  HierarchicalWheelTimer();
  /// Makes a timer with these options. `ticks_per_wheel` is the number of slots of each level: 2 .. 4096, rounded up to
  /// a power of two. 512, the default of Options, means 64 here; for 512 slots use the other constructor. A
  /// `tick_duration` below 1 us is raised to that with a warning. Throws std::invalid_argument that names the option,
  /// its value and the valid range; std::bad_alloc; std::system_error if no pthread key is left.
  explicit HierarchicalWheelTimer(Options options);
  /// Makes a timer with this tick and number of slots, and the other options at their defaults. Throws
  /// std::invalid_argument that names the option, its value and the valid range; std::bad_alloc; std::system_error if
  /// no pthread key is left.
  explicit HierarchicalWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel = 64);
  /// Stops the timer; see ThreadedTimer.
  ~HierarchicalWheelTimer() override;
};

}  // namespace hwt
