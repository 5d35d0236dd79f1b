// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/detail/calendar_rule.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// The treatment of occurrences whose time has passed, because a run took long or the timer was held up. An occurrence
/// that the timer waits for runs in any case, however late.
enum class CatchUp : std::uint8_t {
  Skip,   ///< those that have passed when a run ends do not run
  Once,   ///< a run stands for all that have passed when it starts; those that pass during it cause one more run
  Burst,  ///< each runs, one after the other; after 5 ms of the timer's clock, or 100,000 runs, the rest wait a tick
};

namespace internal {
class ScheduledRun;
}

namespace detail {

/// The contents of a Schedule.
struct SchedulePlan {
  std::chrono::nanoseconds initial{};            // until the first occurrence
  std::vector<std::chrono::nanoseconds> gaps{};  // between two occurrences
  std::size_t first_gap = 0;                     // index of the gap after the first occurrence
  bool repeat = false;                           // the first gap follows the last
  bool from_end = false;                         // gaps count from the end of a run
  CatchUp catch_up{};                            // CatchUp::Skip by default
  calendar::Rule rule{};                         // if set, replaces the members above but `catch_up`
  std::function<std::chrono::system_clock::time_point()> wall_clock{};  // for `rule`; empty: system_clock::now()
  std::uint64_t limit = (std::numeric_limits<std::uint64_t>::max)();    // of runs; 0: the plan was moved from
  std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)> jitter{};
};

}  // namespace detail

/// The times at which a job runs: a value for schedule().
///
///   hwt::Schedule::fixed_rate(0s, 10s)                            // now and every 10 s
///   hwt::Schedule::sequence({1s, 2s, 5s, 10s})                    // four retries
///   hwt::Schedule::calendar(hwt::calendar::daily(3h, {"Europe/Berlin"})).limit(7)
///
/// Guarantees: nothing drifts, because gaps count from the previous scheduled time; those of fixed_delay() count from
/// the end of the run. Each function throws std::invalid_argument that names the value and the valid range, also for a
/// NaN; std::bad_alloc.
/// Threads: a value; each thread needs a copy of its own.
/// Not for: a gap shorter than a tick of the timer. All times are by Timer::now(), those of calendar() by the wall
/// clock.
/// Source: Java's ScheduledExecutorService for fixed delay and rate.
class HWT_API Schedule {
 public:
  /// The unit of gaps and waits.
  using nanoseconds = std::chrono::nanoseconds;

  /// Returns one run after `delay`, 0 or more.
  static Schedule once(Delay delay);
  /// Returns a first run after `initial`, 0 or more. Each further run starts `delay`, more than 0, after the end of the
  /// previous run.
  static Schedule fixed_delay(Delay initial, Delay delay);
  /// Returns a first run after `initial`, 0 or more, and then one every `period`, more than 0.
  static Schedule fixed_rate(Delay initial, Delay period, CatchUp catch_up = CatchUp::Skip);
  /// Returns one run after each gap, and then the end: 1 s, 2 s, 5 s runs after 1, 3 and 8 seconds. At least one gap,
  /// each more than 0.
  static Schedule sequence(std::vector<nanoseconds> gaps, CatchUp catch_up = CatchUp::Burst);
  /// Returns one run after each gap, for ever: the first gap follows the last. At least one gap, each more than 0.
  static Schedule cycle(std::vector<nanoseconds> gaps, CatchUp catch_up = CatchUp::Skip);
  /// Returns the runs of a rule by the wall clock. The timer waits at most 60 s at a time, so that it notices a changed
  /// clock and a suspend. An occurrence that has passed unnoticed runs once, late; `catch_up` is for further ones.
  /// CatchUp::Burst makes up for all of them, also if the clock was set forward by years. After the clock was set back,
  /// nothing runs before it has passed the last occurrence that has run. But if the clock is more than an hour before
  /// that occurrence, it was wrong then, and the schedule follows it at once.
  /// A rule that throws, or returns a time that is not after its argument, is asked again after 60 s, and so is a wall
  /// clock that throws. Occurrences that pass meanwhile run late. For the first occurrence schedule() throws the
  /// exception. `wall_clock` is for tests; empty: system_clock::now().
  static Schedule calendar(hwt::calendar::Rule rule, CatchUp catch_up = CatchUp::Skip,
                           std::function<std::chrono::system_clock::time_point()> wall_clock = {});

  /// Makes another schedule of the same times.
  Schedule(const Schedule&) = default;
  /// Replaces the times by those of `other`.
  Schedule& operator=(const Schedule&) = default;
  /// Takes over the times. `other` has none then: schedule(), limit() and jitter() refuse it.
  Schedule(Schedule&& other) noexcept : plan_(std::move(other.plan_)) { other.plan_.limit = 0; }
  /// Takes over the times of `other`, which has none then: schedule(), limit() and jitter() refuse it.
  Schedule& operator=(Schedule&& other) noexcept {
    Schedule taken(std::move(other));
    std::swap(plan_, taken.plan_);
    return *this;
  }
  ~Schedule() = default;

  /// Returns a schedule that ends after `runs` runs, 1 or more. Skipped occurrences do not count.
  [[nodiscard]] Schedule limit(std::uint64_t runs) const&;
  /// Returns this schedule, ended after `runs` runs, 1 or more. This one has no times then.
  [[nodiscard]] Schedule limit(std::uint64_t runs) &&;

  /// Returns a schedule whose wait for each run is `adjust(wait)`; a negative one becomes 0. The scheduled times stay
  /// as they are, except those of fixed_delay(), so jitter does not add up. If `adjust` throws, that is reported and
  /// the wait is used as it is; for the first wait schedule() throws it. See jitter.h.
  [[nodiscard]] Schedule jitter(std::function<nanoseconds(nanoseconds)> adjust) const&;
  /// Returns this schedule with the waits that `adjust` returns. This one has no times then.
  [[nodiscard]] Schedule jitter(std::function<nanoseconds(nanoseconds)> adjust) &&;

  /// Returns the plan, for schedule().
  const detail::SchedulePlan& plan() const noexcept { return plan_; }

 private:
  explicit Schedule(detail::SchedulePlan plan) noexcept : plan_(std::move(plan)) {}

  detail::SchedulePlan plan_;
};

/// The handle of a scheduled job.
///
///   std::shared_ptr<hwt::ScheduledTask> task = hwt::schedule(timer, hwt::Schedule::fixed_rate(0s, 10s), report);
///   if (task->cancel()) release_resources_of_report();   // true: no run is under way, and none follows
///
/// Guarantees: it may outlive the timer.
/// Threads: any thread may call any member at any time.
/// Fork: in the child, until it has turned a timer without a thread, cancel() returns false at once; that and the
/// destructor release nothing.
/// Not for: ownership. Dropping the handle does not cancel.
/// Source: Java's ScheduledFuture.
class HWT_API ScheduledTask {
 public:
  /// Makes the handle, for schedule().
  explicit ScheduledTask(std::shared_ptr<internal::ScheduledRun> run) noexcept;
  /// Drops the handle; the schedule goes on.
  ~ScheduledTask();
  ScheduledTask(const ScheduledTask&) = delete;
  ScheduledTask& operator=(const ScheduledTask&) = delete;

  /// Ends the schedule: no run starts afterwards. Returns true, once, if none is under way, or if this is called inside
  /// the job; also after the timer was stopped. Returns false if the schedule had ended otherwise, or another thread is
  /// running the job. Destroys the job before it returns, unless a thread of the timer is at work on this schedule.
  /// That thread then destroys it soon.
  bool cancel();

  /// Returns whether the schedule has ended: its last run is over, it was cancelled, or the timer was stopped or
  /// refused the next wait. After cancel() a run may still be under way on another thread. After Timer::stop() it is
  /// false until a run is over that is under way or waits in an executor. It stays false if the executor drops that.
  bool done() const noexcept;

  /// Returns the number of runs that have started.
  std::uint64_t runs() const noexcept;

  /// Returns when the next run is due by Timer::now(), jitter included; in the past if it is late. For a calendar it
  /// is computed from the wall clock when a wait begins, at least every 60 s. Returns nothing when done, during a run,
  /// and while a calendar's rule or clock fails.
  std::optional<std::chrono::steady_clock::time_point> next() const;

 private:
  friend class internal::ScheduledRun;

  std::shared_ptr<internal::ScheduledRun> run_;  // always the same
  Timeout armed_;                                // of the wait under way; see internal::ScheduledRun
};

/// Runs `job` at the times of `schedule`, on any Timer.
///
///   auto task = hwt::schedule(timer, hwt::Schedule::fixed_rate(0s, 10s), [] { report(); });
///
/// Guarantees: the job never overlaps itself: the next wait begins when a run has ended. Its exceptions go to the
/// timer's on_task_error, and the schedule goes on. It ends when the timer refuses the next wait: silently after
/// stop(), otherwise with the exception in on_task_error. Messages of refusals name schedule().
/// Lifetime: the job is destroyed after the last run or when it is cancelled. If the timer ends, it is destroyed with
/// the timeouts that stop() returns or with the handle, whichever goes last. So a job that owns its own handle must end
/// by itself or be cancelled.
/// Threads: any thread may call it. The job runs where the timer runs its tasks.
/// Not for: an executor that drops tasks, which ends a schedule unnoticed.
/// Throws std::invalid_argument for a null job and for a moved-from Schedule, and the exceptions of
/// Timer::new_timeout(), a rule or a jitter. Then nothing is scheduled.
HWT_API std::shared_ptr<ScheduledTask> schedule(Timer& timer, Schedule schedule, std::function<void()> job);

}  // namespace hwt
