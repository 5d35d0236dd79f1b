#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>

#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// Sets up a Timer of any kind; made for designated initialisers.
///
///   hwt::HashedWheelTimer timer{{.tick_duration = 10ms, .max_pending_timeouts = 100'000}};
///
/// Guarantees: the constructor of the timer checks all of them, and names the option, its value and the valid range.
/// Threads: the functions are called on the threads that their comments name; the timer keeps copies.
/// Not for: a timer that exists, and PassiveWheel, which has parameters of its own. In LoopTimer, net::LoopTimer and
/// ManualTimer the worker is the thread that runs what is due; they refuse a thread_factory and ignore ticks_per_wheel.
/// Source: the parameters of Netty's HashedWheelTimer.
struct Options {
  /// The grid on which tasks start: a task is late by at most one tick plus the worker's own lag. Below 1 ms: raised to
  /// 1 ms with a warning, as in Netty; HierarchicalWheelTimer takes any from 1 us on, timers without a thread any.
  /// HashedWheelTimer: tick_duration * ticks_per_wheel must fit into int64 nanoseconds.
  std::chrono::nanoseconds tick_duration = std::chrono::milliseconds(100);
  /// Number of buckets, 1 .. 2^30, rounded up to a power of two. A timeout more than 64 revolutions ahead costs a
  /// little extra. A bucket takes 33 bytes of address space, of which the system commits only the pages of those that
  /// are used: 17 kB for 512 buckets, 33 MiB for 2^20, 33 GiB for 2^30. Where it does not give that much, as under
  /// `ulimit -v`, or Linux when it is more than all memory and swap, the constructor throws std::bad_alloc.
  /// HierarchicalWheelTimer: the number of slots of each level, see there.
  std::int64_t ticks_per_wheel = 512;
  /// new_timeout() throws RejectedExecution beyond this number of pending timeouts; <= 0: no limit.
  std::int64_t max_pending_timeouts = -1;
  /// Receives each expired task, to run it elsewhere; empty: tasks run on the worker. Called on the worker. If it
  /// throws, the task runs on the worker after all. The timer does not wait for tasks that were handed over. Netty:
  /// taskExecutor.
  std::function<void(std::function<void()>)> executor = {};
  /// Makes the worker's thread, which the timer joins when it stops. Called by whoever starts the timer. Empty: a
  /// std::thread named "hwt-worker", which on Linux has the default policy and the processors that the process had when
  /// it began, whatever the thread that starts the timer has been given. Netty: threadFactory.
  std::function<std::thread(std::function<void()>)> thread_factory = {};
  /// Told of each exception from a task, from TimerTask::cancelled() (with its Timeout), from the executor and from
  /// on_slow_task; called on the thread where it was thrown. Empty: one line on stderr, at most one per second.
  std::function<void(std::exception_ptr, const Timeout&)> on_task_error = {};
  /// Longer than 0: tasks that ran strictly longer on the worker, their callable's destruction included, are counted in
  /// TimerStats::slow_tasks and reported; that takes two readings of the clock a task. Not those in the executor. 0:
  /// off, at no cost. Negative: refused.
  std::chrono::nanoseconds slow_task{0};
  /// Told of each of them and how long it ran; called on the worker, after it. What it throws goes to on_task_error.
  /// Not called for a task that has destroyed its timer. Empty: one line on stderr, at most one per second.
  std::function<void(const Timeout&, std::chrono::nanoseconds ran)> on_slow_task = {};
};

}  // namespace hwt
