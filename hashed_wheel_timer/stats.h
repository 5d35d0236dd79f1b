#pragma once

#include <chrono>
#include <cstdint>

namespace hwt {

/// One snapshot of a timer's counters, cheap enough to poll. Once the timer is quiet: scheduled = expired + cancelled +
/// unprocessed + pending. All but pending, backlog and last_lag only grow, except that a new_timeout() which races
/// stop() and is refused is counted as scheduled for a moment.
struct TimerStats {
  std::int64_t scheduled = 0;    ///< timeouts accepted by new_timeout()
  std::int64_t expired = 0;      ///< claimed for execution; counted before the task runs
  std::int64_t cancelled = 0;    ///< cancel() returned true; counted at cancel()
  std::int64_t rejected = 0;     ///< refused by max_pending_timeouts; not part of scheduled
  std::int64_t unprocessed = 0;  ///< still pending when the timer stopped
  std::int64_t pending = 0;      ///< neither expired, cancelled nor unprocessed
  std::int64_t ticks = 0;        ///< ticks worked off; ticks with nothing due are jumped over and do not count
  std::int64_t wakeups = 0;      ///< returns of the worker from its sleep
  std::int64_t backlog = 0;      ///< in the pending queue, cancelled ones included
  std::int64_t task_errors = 0;  ///< exceptions from tasks, from cancelled() and from the executor
  std::chrono::nanoseconds last_lag{
      0};  ///< from the end of the latest tick until all its tasks had run or been handed over
  std::chrono::nanoseconds max_lag{0};  ///< the largest last_lag so far
};

}  // namespace hwt
