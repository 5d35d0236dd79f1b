#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>

#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// How a timer is set up; made for designated initialisers: `HashedWheelTimer t{{.tick_duration = 10ms}};`
struct Options {
  /// The grid on which tasks start: a task is late by at most one tick plus the worker's own lag. Below 1 ms: raised to
  /// 1 ms with a warning, as in Netty. tick_duration * ticks_per_wheel must fit into int64 nanoseconds.
  std::chrono::nanoseconds tick_duration = std::chrono::milliseconds(100);
  /// Number of buckets, 1 .. 2^30, rounded up to a power of two. More than 64 revolutions ahead costs a little extra.
  /// HierarchicalWheelTimer: the number of slots of each level, see there.
  std::int64_t ticks_per_wheel = 512;
  /// new_timeout() throws RejectedExecution beyond this number of pending timeouts; <= 0: no limit.
  std::int64_t max_pending_timeouts = -1;
  /// Receives each expired task, to run it elsewhere; empty: tasks run on the worker. If it throws, the task runs on
  /// the worker after all. The timer does not wait for tasks that were handed over. Netty: taskExecutor.
  std::function<void(std::function<void()>)> executor = {};
  /// Makes the worker's thread, which the timer joins when it stops; empty: std::thread, named "hwt-worker". Netty:
  /// threadFactory.
  std::function<std::thread(std::function<void()>)> thread_factory = {};
  /// Told of each exception from a task, from TimerTask::cancelled() (with its Timeout) and from the executor; called
  /// on the thread where it was thrown. Empty: one line on stderr, at most one per second.
  std::function<void(std::exception_ptr, const Timeout&)> on_task_error = {};
};

}  // namespace hwt
