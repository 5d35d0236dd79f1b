#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/calendar.h"
#include "hashed_wheel_timer/export.h"
#include "hashed_wheel_timer/timer.h"

// Jobs that run again and again, on any Timer.
//
//   auto task = hwt::schedule(timer, hwt::Schedule::fixed_rate(0s, 10s), [] { report(); });
//   hwt::schedule(timer, hwt::Schedule::sequence({1s, 2s, 5s, 10s}), [] { retry(); });
//   hwt::schedule(timer, hwt::Schedule::calendar(hwt::calendar::daily(3h, {"Europe/Berlin"})), [] { tidy_up(); });
//   ...
//   task->cancel();

namespace hwt {

/// What becomes of occurrences whose time has passed, because a run took long or the timer was held up. An occurrence
/// that the timer waits for runs in any case, however late.
enum class CatchUp : std::uint8_t {
  Skip,   // those that have passed when a run ends do not run
  Once,   // a run stands for all that have passed when it starts; those that pass during it give one run after it
  Burst,  // each runs, one after the other
};

namespace internal {
class ScheduledRun;
}

namespace detail {

struct SchedulePlan {
  std::chrono::nanoseconds initial{};            // until the first occurrence
  std::vector<std::chrono::nanoseconds> gaps{};  // between the others
  std::size_t first_gap = 0;                     // the one that follows the first occurrence
  bool repeat = false;                           // the gaps begin again after the last
  bool from_end = false;                         // gaps count from the end of a run
  CatchUp catch_up = CatchUp::Skip;
  calendar::Rule rule{};                                                // instead of all of these, unless empty
  std::function<std::chrono::system_clock::time_point()> wall_clock{};  // the rule's; empty: system_clock
  std::uint64_t limit = (std::numeric_limits<std::uint64_t>::max)();
  std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)> jitter{};
};

}  // namespace detail

/// When a job runs. Gaps count from the previous scheduled time, so nothing drifts, but those of fixed_delay() from the
/// end of the run. All times are by Timer::now(), those of calendar() by the wall clock.
/// Each function throws std::invalid_argument that names the value and the valid range.
class HWT_API Schedule {
 public:
  using nanoseconds = std::chrono::nanoseconds;

  static Schedule once(detail::Span delay);
  static Schedule fixed_delay(detail::Span initial, detail::Span delay);
  static Schedule fixed_rate(detail::Span initial, detail::Span period, CatchUp catch_up = CatchUp::Skip);
  /// One run after each gap, then it is done: 1 s, 2 s, 5 s runs after 1, 3 and 8 seconds.
  static Schedule sequence(std::vector<nanoseconds> gaps, CatchUp catch_up = CatchUp::Burst);
  /// The same for ever, from the first gap again after the last.
  static Schedule cycle(std::vector<nanoseconds> gaps, CatchUp catch_up = CatchUp::Skip);
  /// When the rule says, waited for in pieces of at most 60 s, so that a wall clock that was set, and a suspend, are
  /// noticed. An occurrence that has passed unnoticed runs once, late; further ones are skipped. After the clock was
  /// set back, nothing runs before the clock has passed the last occurrence that has run. A rule that throws, or
  /// returns what is not after its argument, is asked again after 60 s, and so is a wall clock that throws; for the
  /// first occurrence schedule() throws it. `wall_clock` is for tests; empty: system_clock::now().
  static Schedule calendar(hwt::calendar::Rule rule,
                           std::function<std::chrono::system_clock::time_point()> wall_clock = {});

  /// Done after so many runs, 1 or more. Skipped occurrences do not count.
  Schedule limit(std::uint64_t runs) &&;

  /// Each wait is `adjust(wait)` instead, negative being 0: the scheduled times stay as they are, so it does not add
  /// up. An exception is reported and the wait is taken as it is; for the first wait schedule() throws it. See
  /// jitter.h.
  Schedule jitter(std::function<nanoseconds(nanoseconds)> adjust) &&;

  /// What schedule() goes by.
  const detail::SchedulePlan& plan() const noexcept { return plan_; }

 private:
  Schedule() = default;

  detail::SchedulePlan plan_;
};

/// Handle of a scheduled job. Any thread may call any member at any time. It outlives the timer safely.
class HWT_API ScheduledTask {
 public:
  explicit ScheduledTask(std::shared_ptr<internal::ScheduledRun> run) noexcept;  // schedule() does
  ~ScheduledTask();
  ScheduledTask(const ScheduledTask&) = delete;
  ScheduledTask& operator=(const ScheduledTask&) = delete;

  /// Ends the schedule, whatever it returns. True, once: no run starts after this and none is under way, unless this is
  /// called inside the job. False: it had ended before, or the last run is under way, or about to start, on another
  /// thread. The job is destroyed in here, unless a thread of the timer is at work on this schedule: then soon, by that
  /// thread.
  bool cancel();

  /// The last run is over, or it was cancelled, or the timer was stopped.
  bool done() const noexcept;

  /// How many runs have started.
  std::uint64_t runs() const noexcept;

  /// When the next run is due by Timer::now(), jitter included: in the past for a run that is made up for. For a
  /// calendar as far as the wall clock tells now. nullopt when done, during a run, and while a calendar's rule or clock
  /// fails.
  std::optional<std::chrono::steady_clock::time_point> next() const;

 private:
  friend class internal::ScheduledRun;

  const std::shared_ptr<internal::ScheduledRun> run_;
  Timeout timeout_;  // of the wait under way; guarded by the mutex of run_
};

/// Runs `job` when `schedule` says, where the tasks of the timer run: on its worker or in its executor. It never
/// overlaps itself: the next wait begins when a run has ended. Its exceptions go to the timer's on_task_error, and it
/// goes on.
///
/// Dropping the handle does not cancel. The job is destroyed after the last run or when it is cancelled; when the timer
/// ends, with the timeouts that stop() returns or with the handle, whichever goes last. So a job that owns its own
/// handle must end by itself or be cancelled.
///
/// If the timer refuses the next wait, the schedule is done: silently when the timer was stopped; at
/// max_pending_timeouts and without memory the exception goes to on_task_error. An executor that drops a task without a
/// word ends it unnoticed.
///
/// Throws std::invalid_argument for a null job, what Timer::new_timeout() throws, and what a rule or a jitter throws;
/// then nothing is scheduled.
HWT_API std::shared_ptr<ScheduledTask> schedule(Timer& timer, Schedule schedule, std::function<void()> job);

}  // namespace hwt
