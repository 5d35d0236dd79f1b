#pragma once

#include <chrono>
#include <cstdint>

namespace hwt {

/// One snapshot of a timer's counters, cheap enough to poll.
///
///   const hwt::TimerStats stats = timer.stats();
///   if (stats.max_lag > 100ms) alert("a task is slow");
///
/// Guarantees: once the timer is quiet, scheduled = expired + cancelled + unprocessed + pending. All but pending,
/// backlog, last_lag and running_for only grow, except that a new_timeout() which races stop() and is refused is
/// counted as scheduled for a moment. pending is never negative.
/// Threads: any may call stats(). While others are at work, the members are read one after the other, and what ends on
/// another thread may be counted a moment after its handle tells so.
/// Not for: every request; each call adds up the counters of all threads.
struct TimerStats {
  std::int64_t scheduled = 0;    ///< timeouts accepted by new_timeout()
  std::int64_t expired = 0;      ///< claimed for execution; counted before the task runs
  std::int64_t cancelled = 0;    ///< cancel() returned true; counted at cancel()
  std::int64_t rejected = 0;     ///< refused by max_pending_timeouts; not in scheduled. After stop(): counted nowhere
  std::int64_t unprocessed = 0;  ///< still pending when the timer stopped
  std::int64_t pending = 0;      ///< neither expired, cancelled nor unprocessed
  /// Ticks worked off; those with nothing due are jumped over and do not count. Those in which timeouts of a
  /// HierarchicalWheelTimer only came down a level do.
  std::int64_t ticks = 0;
  /// Returns of the worker from its sleep; in a timer without a thread, calls of run_due(), advance() or advance_to().
  std::int64_t wakeups = 0;
  /// In the pending queue or in the worker's hand, not yet in the wheel; cancelled ones included. It need not be 0
  /// while the worker sleeps until something earlier is due.
  std::int64_t backlog = 0;
  std::int64_t task_errors = 0;  ///< exceptions from tasks, from cancelled(), the executor and on_slow_task
  /// The time from the end of the latest tick with a task in it until all its tasks had run or been handed to the
  /// executor. It includes stalls of the process, tasks of earlier ticks that were still running, and how late the
  /// system ended the worker's sleep. Set when that tick is finished: a task that never returns does not show here.
  /// Ticks below 1 ms that are over are worked off together, up to 1 ms of them: then from the end of the first of
  /// those.
  /// One delay is not in it. A timeout that is due before the worker meant to wake up makes its caller wake the worker.
  /// If the worker then gets no processor until the deadline's tick is over, it runs the timeout at the end of the
  /// present tick, and the lag counts from there. The worker cannot tell this deadline from one that had passed when it
  /// was scheduled, because no clock is read then. lateness() shows that delay, and how far in the past a deadline was.
  std::chrono::nanoseconds last_lag{0};
  /// The largest last_lag so far.
  std::chrono::nanoseconds max_lag{0};
  /// How long the worker has been at the tasks of the present tick, or at handing them to the executor; with
  /// Options::slow_task on, how long at the present task. Zero when none runs. A task that hangs shows here.
  std::chrono::nanoseconds running_for{};
  /// Tasks that ran longer than Options::slow_task on the worker; 0 while that is off.
  std::int64_t slow_tasks = 0;
};

}  // namespace hwt
