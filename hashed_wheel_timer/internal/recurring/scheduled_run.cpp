// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/recurring/scheduled_run.h"

#include <utility>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/named_timeout.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt::internal {

using Wait = Timetable::Wait;

namespace {

// After so many nanoseconds by the timer's clock, or so many overdue runs, the thread turns to other timeouts. The
// clock of a ManualTimer stands still meanwhile, so there the number alone decides, however long the runs take.
constexpr std::int64_t kBurst = 5'000'000;
constexpr int kRunsOfBurst = 100'000;  // in 5 ms, even an empty job runs less often

Timetable::time_point now(const Core& core) noexcept {
  return Timetable::time_point(std::chrono::nanoseconds(core.now()));
}

void report(Core& core, const Timeout& timeout, std::exception_ptr error, const char* origin = "a task") noexcept {
  try {
    std::rethrow_exception(std::move(error));
  } catch (...) {
    core.report_error(timeout, origin);
  }
}

}  // namespace

ScheduledRun::ScheduledRun(std::unique_ptr<Timetable> timetable, std::uint64_t limit, std::function<void()> job)
    : limit_(limit), job_(std::move(job)), timetable_(std::move(timetable)) {}

void ScheduledRun::start(Timer& timer, const std::shared_ptr<ScheduledTask>& task) {
  task_ = task;
  const std::optional<Wait> wait = timetable_->first(timer.now());
  if (!wait) return finish();
  if (wait->due) word_.fetch_or(kNext, std::memory_order_relaxed);
  // arm() publishes the timeout. The worker may run it, and arm the next one, before set_first() stores it.
  task->pending_.set_first(arm(timer, *wait));
}

// A user may run the task of a timeout that stop() returned, even twice and after the timer was destroyed. Only the
// first of these calls runs the job.
void ScheduledRun::on_timeout(Timeout& self) {
  if (!enter()) return;
  Core& core = Node::of(self)->core();  // not the timer: the job or another thread may destroy it
  std::exception_ptr errors;
  Timeout expired = self;
  Timeout armed;
  After after = go_on(core, turn(core, expired, errors), armed, errors);
  while (after == After::RunAgain) {
    if (errors) report(core, expired, std::exchange(errors, nullptr));  // the errors of the last run are thrown below
    expired = armed;
    after = go_on(core, turn(core, expired, errors), armed, errors);
  }
  if (after != After::Wait) finish();
  if (after == After::Refused) return report(core, expired, errors, "a schedule, which has ended");
  if (errors) std::rethrow_exception(errors);
}

/// Runs the job if it is due or stop() returned `expired`, and then once for each overdue occurrence, for a burst at
/// most. Returns the wait for the next run, or nothing if there is no further run.
std::optional<Wait> ScheduledRun::turn(Core& core, const Timeout& expired, std::exception_ptr& errors) {
  if (!expired.is_cancelled() && !timetable_->is_due(errors)) return timetable_->wait_on(now(core), errors);
  const std::int64_t give_way_at = deadline_after(core.now(), kBurst);
  for (int left = kRunsOfBurst;;) {
    const std::optional<Wait> wait = run_once(core, errors);
    if (!wait || !wait->at_once || --left == 0 || core.now() >= give_way_at) return wait;
    // The errors of the last run are not reported here: on_timeout() throws them.
    if (errors) report(core, expired, std::exchange(errors, nullptr));
    if (!core.running()) return wait;
  }
}

/// Runs the job once. Returns the wait for the next run, or nothing if there is no further run.
std::optional<Wait> ScheduledRun::run_once(Core& core, std::exception_ptr& errors) {
  if (!begin_run()) return {};
  const Timetable::time_point started = now(core);
  try {
    job_();
  } catch (...) {
    add_current_exception(errors);
  }
  leave_for(RunState::Busy);
  if (core.timer() == nullptr || runs() >= limit_) return {};
  return timetable_->after_run(started, now(core), errors);
}

/// Claims the job for an expiry. Returns false if the schedule has ended or another thread has the job. If that thread
/// is Arming, because the timeout has expired before it was stored, enter() sets Missed and that thread makes the run.
bool ScheduledRun::enter() noexcept {
  std::uint64_t seen = word_.load(std::memory_order_acquire);
  for (;;) {
    const RunState state = state_of(seen);
    if ((seen & kEnded) != 0 || (state != RunState::Waiting && state != RunState::Arming)) return false;
    const bool waiting = state == RunState::Waiting;
    if (word_.compare_exchange_weak(seen, with_state(seen, waiting ? RunState::Busy : RunState::Missed),
                                    std::memory_order_acq_rel, std::memory_order_acquire)) {
      return waiting;
    }
  }
}

/// Changes the state, for the thread in on_timeout(). Returns whether the schedule goes on.
bool ScheduledRun::leave_for(RunState state) noexcept {
  std::uint64_t seen = word_.load(std::memory_order_relaxed);
  while (!word_.compare_exchange_weak(seen, with_state(seen, state), std::memory_order_acq_rel,
                                      std::memory_order_relaxed)) {
  }
  return (seen & kEnded) == 0;
}

/// Starts a run. Returns false if the schedule has ended. cancel() changes the same word, so one of the two comes
/// first. If cancel() does, no run starts. Otherwise it finds the state Running, and returns false on another thread.
bool ScheduledRun::begin_run() noexcept {
  runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  std::uint64_t seen = word_.load(std::memory_order_relaxed);
  while ((seen & kEnded) == 0) {
    if (word_.compare_exchange_weak(seen, (with_state(seen, RunState::Running) & ~kNext) + kRun,
                                    std::memory_order_acq_rel, std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

/// Arms the next timeout and stores it in `armed`. Returns
/// - Wait if it is pending. Another thread may be in on_timeout() by then.
/// - RunAgain if it has expired already. This thread must make its run.
/// - Finish if `wait` is empty, the schedule was cancelled, or the timer is gone or was stopped.
/// - Refused if the timer refuses the timeout, which is the last of `errors`.
ScheduledRun::After ScheduledRun::go_on(Core& core, const std::optional<Wait>& wait, Timeout& armed,
                                        std::exception_ptr& errors) {
  if (!wait) return After::Finish;
  // Declared first, so that it is destroyed last: destroying the task may call user code, which may destroy the timer.
  const std::shared_ptr<ScheduledTask> task = task_.lock();
  // Needed in an executor, for which the destructor of the timer does not wait.
  const Core::TimerInUse timer(core);
  if (timer.get() == nullptr || !leave_for(RunState::Arming)) return After::Finish;
  try {
    armed = arm(*timer.get(), *wait);
  } catch (const IllegalState&) {  // the timer was stopped: no error of this schedule
    return After::Finish;
  } catch (...) {
    add_current_exception(errors);
    return After::Refused;
  }
  if (task != nullptr) task->pending_.set(armed);
  const After after = finish_arming(wait->due.has_value());
  if (after == After::Finish) armed.cancel();  // ScheduledRun::cancel() may not have found it yet
  return after;
}

/// Leaves the state Arming, after the timeout was stored. `next` says whether next_ is valid. Never waits for an
/// expiry. If the timeout expired before it was stored, enter() has set Missed, and this thread makes the run.
ScheduledRun::After ScheduledRun::finish_arming(bool next) noexcept {
  std::uint64_t seen = word_.load(std::memory_order_acquire);
  for (;;) {
    if ((seen & kEnded) != 0) return After::Finish;
    const bool missed = state_of(seen) == RunState::Missed;
    const std::uint64_t known = next ? seen | kNext : seen & ~kNext;
    if (word_.compare_exchange_weak(seen, with_state(known, missed ? RunState::Busy : RunState::Waiting),
                                    std::memory_order_acq_rel, std::memory_order_acquire)) {
      return missed ? After::RunAgain : After::Wait;
    }
  }
}

/// Destroys the job before done() becomes true, because a thread that waits for done() may then destroy objects that
/// the job refers to.
void ScheduledRun::finish() noexcept {
  job_ = nullptr;
  timetable_.reset();
  word_.fetch_or(kEnded, std::memory_order_release);
}

Timeout ScheduledRun::arm(Timer& timer, const Wait& wait) {
  if (wait.due) next_.store(wait.due->time_since_epoch().count(), std::memory_order_relaxed);
  return named_timeout(
      timer, [run = shared_from_this()](Timeout& self) { run->on_timeout(self); }, Delay(wait.delay), "hwt::schedule",
      "schedule");
}

bool ScheduledRun::cancel(detail::PendingTimeout& pending) {
  std::uint64_t seen = word_.load(std::memory_order_acquire);
  do {
    if ((seen & kEnded) != 0) return false;
  } while (!word_.compare_exchange_weak(seen, seen | kEnded, std::memory_order_acq_rel, std::memory_order_acquire));
  std::function<void()> job;
  std::unique_ptr<Timetable> timetable;
  if (state_of(seen) == RunState::Waiting) {  // otherwise the thread in on_timeout() destroys them at its end
    job.swap(job_);
    timetable.swap(timetable_);
  }
  pending.take().cancel();  // if it expires instead, enter() returns false
  return state_of(seen) != RunState::Running || runner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

bool ScheduledRun::done(detail::PendingTimeout& pending) const {
  if ((word_.load(std::memory_order_acquire) & kEnded) != 0) return true;
  if (in_forked_child()) return false;                           // a thread that was not copied may be using `pending`
  return detail::PendingTimeout::Loan(pending)->is_cancelled();  // cancelled by Timer::stop()
}

std::optional<std::chrono::steady_clock::time_point> ScheduledRun::next(detail::PendingTimeout& pending) const {
  if (done(pending)) return {};
  if ((word_.load(std::memory_order_acquire) & (kEnded | kNext)) != kNext) return {};
  return Timetable::time_point(Timetable::time_point::duration(next_.load(std::memory_order_relaxed)));
}

}  // namespace hwt::internal
