// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "hashed_wheel_timer/detail/used_timer.h"
#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/named_timeout.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/recurring/conductor.h"
#include "hashed_wheel_timer/internal/recurring/timetable.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

/// The state that the timeouts of a schedule share: the job, its timetable and its progress. A run is one call of the
/// job. The thread in the task of a timeout is the conductor: see conduct_expired(). turn() makes the due runs, each by
/// run_once(). Then go_on() arms the next timeout, or finish() ends the schedule.
///
/// Ownership:       Timer -> pending Timeout -> its callable -> ScheduledRun
///                  user -> ScheduledTask -> ScheduledRun
///                          ScheduledTask -> Timeout    ScheduledRun ~> ScheduledTask (weak)
/// A ScheduledRun holds no Timeout itself, because that would be a cycle: a timeout that stop() returned keeps its
/// callable, and the callable keeps the ScheduledRun. One timeout is pending at a time. It is armed after a run, so
/// runs never overlap.
///
/// Threads: the worker or its executor waits for no user. After stop(), a user may run the task of the returned timeout
/// by hand, which runs the job once. The job is the conductor's hook, so either cancel() or the start of a run comes
/// first: see Conductor::begin_hook(). When the schedule has ended, its last conductor never leaves.
class ScheduledRun : public std::enable_shared_from_this<ScheduledRun> {
 public:
  ScheduledRun(const Timer& timer, std::unique_ptr<Timetable> timetable, std::uint64_t limit, std::function<void()> job)
      : used_(timer), limit_(limit), job_(std::move(job)), timetable_(std::move(timetable)) {}

  /// Arms the first timeout. Called once, by the thread that made this object. Throws what Timer::new_timeout() and the
  /// timetable throw.
  void start(Timer& timer, const std::shared_ptr<ScheduledTask>& task) {
    task_ = task;
    const std::optional<Wait> wait = timetable_->first(timer.now());
    if (!wait) return finish();
    Timeout first = arm(timer, *wait);
    // The worker does not wait for this thread, so it may have run `first` already, and may have armed the next
    // timeout.
    if (!conductor_.enter_first()) return;
    task->armed_ = std::move(first);
    while (!conductor_.leave()) {  // the timeout has expired meanwhile, but this thread must not run the job
      conductor_.set_disarmed();
      try {
        task->armed_ = arm(timer, {wait->due, std::chrono::nanoseconds::zero()});
      } catch (...) {
        finish();  // the task of the expired timeout may still exist, and own the job
        throw;
      }
    }
  }

  bool in_forked_child() const noexcept { return used_.in_forked_child(); }

  // The members of ScheduledTask. Any thread may call them. They wait for no thread.

  /// Ends the schedule: no run starts afterwards. The call that ends it returns true if no run is under way, or if it
  /// is made inside the job. Destroys the job, unless there is a conductor: then that thread destroys it. Must not be
  /// called in a forked child, because a conductor of the parent may have been changing `task`.
  bool cancel(ScheduledTask& task) {
    const Conductor::Word before = conductor_.destroy();
    if ((before & Conductor::kDestroyed) != 0) return false;
    if ((before & Conductor::kConducted) != 0) return (before & Conductor::kInHook) == 0 || conductor_.is_here();
    const std::function<void()> job = std::exchange(job_, nullptr);
    const std::unique_ptr<Timetable> timetable = std::move(timetable_);
    std::exchange(task.armed_, {}).cancel();  // if it expires instead, it finds a conductor
    return true;
  }
  /// Returns whether the schedule has ended, or the timer's end has cancelled its timeout.
  bool done() const noexcept { return (conductor_.word() & (Conductor::kDestroyed | Conductor::kTimerEnded)) != 0; }
  /// Returns the number of runs that have started. A later next() does not return the time of one of them.
  std::uint64_t runs() const noexcept { return runs_.load(std::memory_order_acquire); }
  /// Returns when the next run is due. Returns nothing if the schedule is done, during a run, and while the rule or the
  /// clock of a calendar fails.
  std::optional<std::chrono::steady_clock::time_point> next() const noexcept {
    const Timetable::time_point::rep next = next_.load(std::memory_order_relaxed);
    if (done() || next == kUnknown) return {};
    return Timetable::time_point(Timetable::time_point::duration(next));
  }

 private:
  friend class ArmedTask<ScheduledRun>;
  using Wait = Timetable::Wait;

  // After so many nanoseconds by the timer's clock, or so many overdue runs, the thread turns to other timeouts. The
  // clock of a ManualTimer stands still meanwhile, so there the number alone decides, however long the runs take.
  static constexpr std::int64_t kBurst = 5'000'000;
  static constexpr int kRunsOfBurst = 100'000;  // in 5 ms, even an empty job runs less often

  /// The next step after a run.
  enum class After : std::uint8_t { Wait, RunAgain, Finish, Refused };

  static Timetable::time_point now(const Core& core) noexcept {
    return Timetable::time_point(std::chrono::nanoseconds(core.now()));
  }

  static void report(Core& core, const Timeout& timeout, std::exception_ptr error,
                     const char* origin = "a task") noexcept {
    try {
      std::rethrow_exception(std::move(error));
    } catch (...) {
      core.report_error(timeout, origin);
    }
  }

  // A user may run the task of a timeout that stop() returned, even twice and after the timer was destroyed. Only the
  // first of these calls runs the job.
  void conduct_expired(const Timeout& self) {
    Core& core = Node::of(self)->core();  // not the timer: the job or another thread may destroy it
    std::exception_ptr errors;
    Timeout expired = self;
    Timeout armed;
    After after = go_on(core, turn(core, expired, errors), armed, errors);
    while (after == After::RunAgain) {
      if (errors) report(core, expired, std::exchange(errors, nullptr));  // those of the last run are thrown below
      expired = armed;
      after = go_on(core, turn(core, expired, errors), armed, errors);
    }
    if (after != After::Wait) finish();
    if (after == After::Refused) return report(core, expired, errors, "a schedule, which has ended");
    if (errors) std::rethrow_exception(errors);
  }

  /// Runs the job if it is due or stop() returned `expired`, and then once for each overdue occurrence, for a burst at
  /// most. Returns the wait for the next run, or nothing if there is no further run.
  std::optional<Wait> turn(Core& core, const Timeout& expired, std::exception_ptr& errors) {
    if (!expired.is_cancelled() && !timetable_->is_due(errors)) return timetable_->wait_on(now(core), errors);
    const std::int64_t give_way_at = deadline_after(core.now(), kBurst);
    for (int left = kRunsOfBurst;;) {
      const std::optional<Wait> wait = run_once(core, errors);
      if (!wait || !wait->at_once || --left == 0 || core.now() >= give_way_at) return wait;
      // The errors of the last run are not reported here: conduct_expired() throws them.
      if (errors) report(core, expired, std::exchange(errors, nullptr));
      if (!core.running()) return wait;
    }
  }

  /// Runs the job once. Returns the wait for the next run, or nothing if there is no further run.
  std::optional<Wait> run_once(Core& core, std::exception_ptr& errors) {
    next_.store(kUnknown, std::memory_order_relaxed);
    if (!conductor_.begin_hook(Conductor::kTriggering)) return {};
    runs_.store(runs() + 1, std::memory_order_release);
    const Timetable::time_point started = now(core);
    try {
      job_();
    } catch (...) {
      add_current_exception(errors);
    }
    conductor_.end_hook();
    if (core.timer() == nullptr || runs() >= limit_) return {};
    return timetable_->after_run(started, now(core), errors);
  }

  /// Arms the next timeout and stores it in `armed`. Returns
  /// - Wait if it is pending. Another thread may be the conductor by then.
  /// - RunAgain if it has expired already. This thread must make its run.
  /// - Finish if `wait` is empty, the schedule was cancelled, or the timer is gone or was stopped.
  /// - Refused if the timer refuses the timeout, which is the last of `errors`.
  After go_on(Core& core, const std::optional<Wait>& wait, Timeout& armed, std::exception_ptr& errors) {
    if (!wait) return After::Finish;
    // Declared first, so that it is destroyed last: destroying the task may call user code, which may destroy the
    // timer.
    const std::shared_ptr<ScheduledTask> task = task_.lock();
    // Keeps the timer alive for a thread of an executor, for which the destructor of the timer does not wait.
    const Core::TimerInUse timer(core);
    if (timer.get() == nullptr || conductor_.destroyed()) return After::Finish;
    try {
      armed = arm(*timer.get(), *wait);
    } catch (const IllegalState&) {  // the timer was stopped: no error of this schedule
      return After::Finish;
    } catch (...) {
      add_current_exception(errors);
      return After::Refused;
    }
    if (task != nullptr) task->armed_ = armed;
    if (conductor_.leave(Conductor::kExpired | Conductor::kDestroyed)) return After::Wait;
    if (!conductor_.destroyed()) {
      conductor_.set_disarmed();
      return After::RunAgain;
    }
    armed.cancel();
    return After::Finish;
  }

  /// Destroys the job before done() becomes true, because a thread that waits for done() may then destroy objects that
  /// the job refers to.
  void finish() noexcept {
    job_ = nullptr;
    timetable_.reset();
    conductor_.destroy();
  }

  Timeout arm(Timer& timer, const Wait& wait) {
    next_.store(wait.due ? wait.due->time_since_epoch().count() : kUnknown, std::memory_order_relaxed);
    return named_timeout(timer, ArmedTask<ScheduledRun>(shared_from_this(), conductor_), Delay(wait.delay),
                         "hwt::schedule", "schedule");
  }

  static constexpr Timetable::time_point::rep kUnknown = (std::numeric_limits<Timetable::time_point::rep>::min)();

  const detail::UsedTimer used_;
  const std::uint64_t limit_;
  std::weak_ptr<ScheduledTask> task_;  // set by start()

  Conductor conductor_{0};
  // Only the conductor uses these.
  std::function<void()> job_;
  std::unique_ptr<Timetable> timetable_;

  // Only start() and the conductor write these. A run stores kUnknown in next_, and then, with release, its number in
  // runs_.
  std::atomic<std::uint64_t> runs_{0};
  std::atomic<Timetable::time_point::rep> next_{kUnknown};
};

}  // namespace hwt::internal
