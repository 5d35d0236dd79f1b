// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/threaded_timer.h"

namespace hwt {

/// A Timer with one worker thread that turns a wheel of power-of-two buckets. It is made for request timeouts, which
/// many threads schedule, which lie within a revolution or so, and which are nearly all cancelled.
///
///   hwt::HashedWheelTimer timer{{.tick_duration = 10ms}};
///   hwt::Timeout timeout = timer.new_timeout([id] { fail_request(id); }, 250ms);
///
/// Guarantees: those of Timer. Tasks are late by at most a tick plus the worker's own lag. Scheduling and cancelling
/// cost O(1) and take no lock. With nothing pending the worker sleeps.
/// Threads: any thread may call any member. Tasks run on the worker, or in Options::executor.
/// Not for: one timer per object. Share one in a process; more than 64 live timers give a warning on stderr. Not for
/// many far timeouts either: see HierarchicalWheelTimer.
/// Source: Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 6; Netty's HashedWheelTimer.
class HWT_API HashedWheelTimer final : public ThreadedTimer {
 public:
  /// Makes a timer with the defaults of Options: a tick of 100 ms and 512 buckets. Throws std::bad_alloc;
  /// std::system_error if no pthread key is left.
  HashedWheelTimer();
  /// Makes a timer with these options. Does not start it. Throws std::invalid_argument that names the option, its value
  /// and the valid range; std::bad_alloc; std::system_error if no pthread key is left.
  explicit HashedWheelTimer(Options options);
  /// Makes a timer with this tick and number of buckets, and the other options at their defaults. Throws
  /// std::invalid_argument that names the option, its value and the valid range; std::bad_alloc; std::system_error if
  /// no pthread key is left.
  explicit HashedWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel = 512);
  /// Stops the timer; see ThreadedTimer.
  ~HashedWheelTimer() override;
};

}  // namespace hwt
