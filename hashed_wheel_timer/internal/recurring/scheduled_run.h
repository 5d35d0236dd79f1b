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

#include "hashed_wheel_timer/internal/platform/forked_child.h"
#include "hashed_wheel_timer/internal/recurring/conductor.h"
#include "hashed_wheel_timer/internal/recurring/timetable.h"
#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

class Core;

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
  ScheduledRun(std::unique_ptr<Timetable> timetable, std::uint64_t limit, std::function<void()> job);

  /// Arms the first timeout. Called once, by the thread that made this object. Throws what Timer::new_timeout() and the
  /// timetable throw.
  void start(Timer& timer, const std::shared_ptr<ScheduledTask>& task);

  bool in_forked_child() const noexcept { return process_.in_forked_child(); }

  // The members of ScheduledTask. Any thread may call them. They wait for no thread.

  /// Ends the schedule: no run starts afterwards. The call that ends it returns true if no run is under way, or if it
  /// is made inside the job. Destroys the job, unless there is a conductor: then that thread destroys it. Must not be
  /// called in a forked child, because a conductor of the parent may have been changing `task`.
  bool cancel(ScheduledTask& task);
  /// Returns whether the schedule has ended, or the timer's end has cancelled its timeout.
  bool done() const noexcept { return (conductor_.word() & (Conductor::kDestroyed | Conductor::kTimerEnded)) != 0; }
  /// Returns the number of runs that have started. A later next() does not return the time of one of them.
  std::uint64_t runs() const noexcept { return runs_.load(std::memory_order_acquire); }
  /// Returns when the next run is due. Returns nothing if the schedule is done, during a run, and while the rule or the
  /// clock of a calendar fails.
  std::optional<std::chrono::steady_clock::time_point> next() const noexcept;

 private:
  friend class ArmedTask<ScheduledRun>;

  /// The next step after a run.
  enum class After : std::uint8_t { Wait, RunAgain, Finish, Refused };

  void conduct_expired(const Timeout& self);
  std::optional<Timetable::Wait> turn(Core& core, const Timeout& expired, std::exception_ptr& errors);
  std::optional<Timetable::Wait> run_once(Core& core, std::exception_ptr& errors);
  After go_on(Core& core, const std::optional<Timetable::Wait>& wait, Timeout& armed, std::exception_ptr& errors);
  void finish() noexcept;
  Timeout arm(Timer& timer, const Timetable::Wait& wait);

  static constexpr Timetable::time_point::rep kUnknown = (std::numeric_limits<Timetable::time_point::rep>::min)();

  const MadeInProcess process_;
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
