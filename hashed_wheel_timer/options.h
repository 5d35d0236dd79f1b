// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "hashed_wheel_timer/timeout.h"

namespace hwt {

/// Options of a Timer of any kind, for designated initialisers.
///
///   hwt::HashedWheelTimer timer{{.tick_duration = 10ms, .max_pending_timeouts = 100'000}};
///
/// Guarantees: the constructor of the timer refuses a duration or a ticks_per_wheel out of range, but raises a tick
/// that is too short. The error names the option, its value and the valid range. The limit and the functions are not
/// checked, except that a timer without a thread refuses a thread_factory.
/// Threads: each function is called on the thread that its comment names. The timer keeps copies.
/// Not for: PassiveWheel, which has parameters of its own. In LoopTimer, net::LoopTimer and ManualTimer, "the worker"
/// is the thread that runs the due tasks. They ignore ticks_per_wheel.
/// Source: the parameters of Netty's HashedWheelTimer.
struct Options {
  /// The length of a tick. A task is late by at most one tick plus the worker's own lag. HashedWheelTimer raises ticks
  /// below 1 ms to 1 ms with a warning, as Netty does. HierarchicalWheelTimer takes ticks from 1 us on, timers without
  /// a thread any tick. HashedWheelTimer: tick_duration * ticks_per_wheel must fit into int64 nanoseconds. Not set:
  /// 100 ms, as in Netty; LoopTimer, net::LoopTimer and ManualTimer 1 ms.
  std::optional<std::chrono::nanoseconds> tick_duration = {};
  /// The number of buckets, 1 .. 2^30, rounded up to a power of two. A timeout more than 64 revolutions ahead costs a
  /// little extra. HierarchicalWheelTimer: the number of slots of each level; see there.
  /// A bucket takes 42 bytes of address space, of which the system commits only the pages in use. That is 22 kB for 512
  /// buckets, 42 MiB for 2^20, and 42 GiB for 2^30. If the system refuses that much, the constructor throws
  /// std::bad_alloc.
  std::int64_t ticks_per_wheel = 512;
  /// The number of pending timeouts beyond which new_timeout() throws RejectedExecution. Zero or less: no limit.
  std::int64_t max_pending_timeouts = -1;
  /// Receives each expired task, to run it elsewhere. Empty: tasks run on the worker. Called on the worker. If it
  /// throws, or if there is no memory for the job, the task runs on the worker. The timer does not wait for tasks that
  /// it handed over. Netty: taskExecutor.
  std::function<void(std::function<void()>)> executor = {};
  /// Makes the worker's thread. Receives a function that the new thread must call once. Called by the thread that
  /// starts the timer. Must not use the timer, because such a call may wait for itself. The timer joins the thread when
  /// it stops, or detaches it if a task destroys the timer. Empty: a std::thread named "hwt-worker". On Linux that
  /// thread has the default scheduling policy and the processors that the process had at its start. It does not inherit
  /// these two from the thread that starts the timer. Netty: threadFactory.
  std::function<std::thread(std::function<void()>)> thread_factory = {};
  /// Receives each exception from a task, from TimerTask::cancelled(), from the executor and from on_slow_task, with
  /// the Timeout. Called on the thread on which it was thrown. Its own exceptions go to stderr. Empty: a line on
  /// stderr, at most one a second. A task that calls pthread_exit(), or whose thread is cancelled by pthread_cancel(),
  /// ends the program with a line on stderr. So does any other function of the user that the timer calls.
  std::function<void(std::exception_ptr, const Timeout&)> on_task_error = {};
  /// If longer than 0: tasks that ran strictly longer on the worker are counted in TimerStats::slow_tasks and reported.
  /// The time includes the destruction of the callable, and costs two clock readings a task. Tasks in the executor are
  /// not timed. Not set: if the worker runs tasks for more than a second between two readings of its clock, a line on
  /// stderr says so, at most one a second. It reads the clock after the tasks of a tick, and at ticks below 1 ms after
  /// some 64 tasks. That costs nothing, but cannot name the task. A stall of the process counts too. A ManualTimer
  /// writes no such line. 0: off. Negative: refused.
  std::optional<std::chrono::nanoseconds> slow_task = {};
  /// Receives each slow task and the time that it ran. Called on the worker, after the task. An exception goes to
  /// on_task_error. Not called for a task that has destroyed its timer. Empty: a line on stderr, at most one a second.
  std::function<void(const Timeout&, std::chrono::nanoseconds ran)> on_slow_task = {};
  /// True: a thread that schedules by a delay reads steady_clock. False: it reads the cycle counter of the processor,
  /// in less than half the time, if Linux derives steady_clock from that counter and a tick is at least 100 us. A task
  /// then starts up to 4 us later, and never earlier. Threads compare the two clocks about once in a millisecond. If
  /// they disagree, the timer returns to steady_clock for good. Deadlines computed before that may be too early. So
  /// it runs all tasks later from then on, by a time that a line on stderr names. lateness() and last_lag include that
  /// time. It is at most 1.05 ms, also after a long slew of the clock, or after a suspend that resets the counter. It
  /// is longer only if the counter then runs at less than half its rate. SECURITY.md names two faults of a counter that
  /// can still make a task early. TimerStats::counts_cycles is true while the counter is in use. ManualTimer never uses
  /// it.
  bool exact_clock = false;
  /// True: each timeout remembers where it was scheduled, for Timer::pending_by_origin() and Timer::for_each_pending().
  /// That takes 8 bytes and some ten nanoseconds for each timeout. Scheduling by a deadline then reads the clock. If
  /// the library was built with sys/sdt.h, the timer also has the USDT probes hwt:add, hwt:run and hwt:cancel. False:
  /// off, at no cost.
  bool trace_origins = false;
};

}  // namespace hwt
