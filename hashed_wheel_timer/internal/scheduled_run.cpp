#include "hashed_wheel_timer/internal/scheduled_run.h"

#include <utility>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core.h"
#include "hashed_wheel_timer/internal/node.h"

namespace hwt::internal {

using Wait = Timetable::Wait;

ScheduledRun::ScheduledRun(std::unique_ptr<Timetable> timetable, std::uint64_t limit, std::function<void()> job)
    : limit_(limit), job_(std::move(job)), timetable_(std::move(timetable)) {}

void ScheduledRun::start(Timer& timer, const std::shared_ptr<ScheduledTask>& task) {
  task_ = task;
  const std::optional<Wait> wait = timetable_->first(timer.now());
  if (!wait) return finish();
  const std::lock_guard lock(mutex_);
  arm(timer, *wait, task);
}

// A timeout that stop() has returned may be run by hand, twice even, and when the timer is gone: that is one run.
void ScheduledRun::on_timeout(Timeout& self) {
  if (!enter()) return;
  Core& core = Node::of(self)->core();  // the timer may be going, in the job or on another thread
  const auto now = [&core] { return Timetable::time_point(std::chrono::nanoseconds(core.now())); };
  std::exception_ptr errors;
  std::optional<Wait> wait;
  if (!self.is_cancelled() && !timetable_->is_due(errors)) {
    wait = timetable_->wait_on(now(), errors);
  } else if (begin_run()) {
    const Timetable::time_point started = now();
    try {
      job_();
    } catch (...) {
      add_current_exception(errors);
    }
    end_run();
    if (core.timer() != nullptr && runs() < limit_) wait = timetable_->after_run(started, now(), errors);
  }
  if (!go_on(core, wait, errors)) finish();
  if (errors) std::rethrow_exception(errors);
}

bool ScheduledRun::enter() {
  const std::lock_guard lock(mutex_);
  if (ended_ || phase_ != Phase::Waiting) return false;
  phase_ = Phase::Busy;
  return true;
}

/// The start of a run. cancel() decides under the same mutex: before this it wins and there is no run; after this it
/// says that there is one.
bool ScheduledRun::begin_run() {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  phase_ = Phase::Running;
  runner_ = std::this_thread::get_id();
  ++runs_;
  next_.reset();
  return true;
}

void ScheduledRun::end_run() {
  const std::lock_guard lock(mutex_);
  phase_ = Phase::Busy;
}

/// Arms the next timeout. True: from then on another thread may be in on_timeout().
bool ScheduledRun::go_on(Core& core, const std::optional<Wait>& wait, std::exception_ptr& errors) {
  if (!wait) return false;
  const std::shared_ptr<ScheduledTask> task = task_.lock();  // if it is the last owner, it goes after the locks
  const Core::TimerInUse timer(core);                        // in an executor, for which no destructor of a timer waits
  const std::lock_guard lock(mutex_);
  if (timer.get() == nullptr || ended_) return false;
  try {
    arm(*timer.get(), *wait, task);
  } catch (const IllegalState&) {  // stopped by somebody else: that is no error of this schedule
    return false;
  } catch (...) {
    add_current_exception(errors);
    return false;
  }
  phase_ = Phase::Waiting;
  return true;
}

/// The job is destroyed before done() says so: who waits for that may then tear down what the job refers to.
void ScheduledRun::finish() {
  job_ = nullptr;
  timetable_.reset();
  const std::lock_guard lock(mutex_);
  ended_ = true;
  next_.reset();
}

void ScheduledRun::arm(Timer& timer, const Wait& wait, const std::shared_ptr<ScheduledTask>& task) {
  Timeout timeout = timer.new_timeout([run = shared_from_this()](Timeout& self) { run->on_timeout(self); }, wait.delay);
  if (task != nullptr) task->timeout_ = std::move(timeout);
  next_ = wait.due;
}

bool ScheduledRun::cancel(Timeout& timeout) {
  std::function<void()> job;
  std::unique_ptr<Timetable> timetable;
  Timeout pending;
  bool nothing_runs = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    ended_ = true;
    next_.reset();
    if (phase_ == Phase::Waiting) {  // otherwise the thread in on_timeout() destroys them at its end
      job.swap(job_);
      timetable.swap(timetable_);
    }
    pending.swap(timeout);
    nothing_runs = phase_ != Phase::Running || runner_ == std::this_thread::get_id();
  }
  pending.cancel();  // if it fires instead, enter() refuses
  return nothing_runs;
}

bool ScheduledRun::done(const Timeout& timeout) const noexcept {
  const std::lock_guard lock(mutex_);
  return ended_ || timeout.is_cancelled();  // by stop(): cancel() sets ended_
}

std::uint64_t ScheduledRun::runs() const noexcept {
  const std::lock_guard lock(mutex_);
  return runs_;
}

std::optional<std::chrono::steady_clock::time_point> ScheduledRun::next(const Timeout& timeout) const {
  const std::lock_guard lock(mutex_);
  if (timeout.is_cancelled()) return {};
  return next_;
}

}  // namespace hwt::internal
