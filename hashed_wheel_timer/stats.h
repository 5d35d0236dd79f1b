// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace hwt {

/// A snapshot of a timer's counters, cheap enough to poll.
///
///   const hwt::TimerStats stats = timer.stats();
///   if (stats.max_lag > 100ms) alert("a task is slow");
///
/// Guarantees: once the timer is quiet, scheduled = expired + cancelled + unprocessed + pending. pending is never
/// negative. All numbers only grow, except pending, backlog, last_lag and running_for. But a new_timeout() that is
/// refused for lack of memory, or because it races stop(), may be counted as scheduled for a moment.
/// Threads: any thread may call stats(). It reads the members one after the other. A call that another thread makes
/// meanwhile may be counted in one member and not in another.
/// Not for: every request. Each call adds up the counters of all threads.
struct TimerStats {
  std::int64_t scheduled = 0;    ///< timeouts accepted by new_timeout()
  std::int64_t expired = 0;      ///< claimed for execution; counted before the task runs
  std::int64_t cancelled = 0;    ///< cancel() returned true; counted at cancel()
  std::int64_t rejected = 0;     ///< refused by max_pending_timeouts, so not in scheduled; not counted after stop()
  std::int64_t unprocessed = 0;  ///< still pending when the timer stopped
  std::int64_t pending = 0;      ///< neither expired, cancelled nor unprocessed
  /// Processed ticks. Ticks with nothing due are skipped and not counted. Ticks in which timeouts of a
  /// HierarchicalWheelTimer only moved down a level are counted.
  std::int64_t ticks = 0;
  /// Returns of the worker from its sleep; in a timer without a thread, calls of run_due(), advance() or advance_to().
  std::int64_t wakeups = 0;
  /// Timeouts that wait for the worker and are not in the wheel yet, cancelled ones included. It need not be 0 while
  /// the worker sleeps, because the worker leaves timeouts that are due later where they are.
  std::int64_t backlog = 0;
  std::int64_t task_errors = 0;  ///< exceptions from tasks, from cancelled(), the executor and on_slow_task
  /// The time from the end of the latest tick with a task in it until all its tasks had run or been handed to the
  /// executor. It includes stalls of the process, tasks of earlier ticks, and a late end of the worker's sleep. It is
  /// set when the tick is finished, or left because of `max_tasks`, so a task that never returns does not show here.
  /// Past ticks below 1 ms are processed together, up to 1 ms of them; then the lag counts from the end of the first of
  /// these ticks. A call that schedules an earlier timeout than all others wakes the worker. If the worker wakes up
  /// only after the tick of this timeout, it runs the timeout in the present tick. The lag then counts from the end of
  /// the present tick. So the lag leaves the late wake-up out; lateness() shows it.
  std::chrono::nanoseconds last_lag{0};
  /// The largest last_lag so far.
  std::chrono::nanoseconds max_lag{0};
  /// The time for which the worker has been running the tasks of the present tick, or handing them to the executor.
  /// With Options::slow_task on, only the time of the present task. Zero when none runs. A task that hangs shows here.
  std::chrono::nanoseconds running_for{};
  /// Tasks that ran longer than Options::slow_task on the worker; 0 while that is off.
  std::int64_t slow_tasks = 0;
  /// The time for which the worker was awake, its tasks included, until its latest sleep or tick. In a LoopTimer and a
  /// net::LoopTimer, the time of the calls that ran a task. In a ManualTimer 0, because its clock stands still.
  std::chrono::nanoseconds busy{0};
  /// The part of `busy` in which the worker ran the tasks of its ticks, or handed them to the executor.
  std::chrono::nanoseconds in_tasks{0};
  // Last, because promises_test takes all members before it as numbers.
  /// Whether delays are measured by the cycle counter of the processor now; see Options::exact_clock.
  bool counts_cycles = false;
};

}  // namespace hwt
