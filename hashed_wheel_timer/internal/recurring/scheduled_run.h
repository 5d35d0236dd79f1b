// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "hashed_wheel_timer/detail/pending_timeout.h"
#include "hashed_wheel_timer/internal/platform/forked_child.h"
#include "hashed_wheel_timer/internal/recurring/timetable.h"
#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

class Core;

/// The state that the timeouts of a schedule share: the job, its timetable and its progress. A run is one call of the
/// job. When a timeout expires, on_timeout() claims the job by enter(). turn() makes the due runs, each by run_once().
/// Then go_on() arms the next timeout, or finish() ends the schedule.
///
/// Ownership:       Timer -> pending Timeout -> its callable -> ScheduledRun
///                  user -> ScheduledTask -> ScheduledRun
///                          ScheduledTask -> Timeout    ScheduledRun ~> ScheduledTask (weak)
/// A ScheduledRun holds no Timeout itself, because that would be a cycle: a timeout that stop() returned keeps its
/// callable, and the callable keeps the ScheduledRun. One timeout is pending at a time. It is armed after a run, so
/// runs never overlap.
///
/// Threads: on_timeout() is called by the worker or in its executor, and waits for no user. After stop(), a user may
/// call it by running the task of the returned timeout by hand, which runs the job once. One word holds the state,
/// whether the schedule has ended, and the number of runs. So cancel() and the start of a run are one exchange each,
/// and one of them comes first. The word also hands over the job and the timetable: each exchange by the thread in
/// on_timeout() is a release, and those of enter() and cancel() are acquires.
class ScheduledRun : public std::enable_shared_from_this<ScheduledRun> {
 public:
  ScheduledRun(std::unique_ptr<Timetable> timetable, std::uint64_t limit, std::function<void()> job);

  /// Arms the first timeout. Called once, by the thread that made this object. Throws what Timer::new_timeout() and the
  /// timetable throw.
  void start(Timer& timer, const std::shared_ptr<ScheduledTask>& task);

  bool in_forked_child() const noexcept { return process_.in_forked_child(); }

  // The members of ScheduledTask. `pending` is its pending_. Any thread may call them. Those that use `pending` wait
  // for its other users.

  /// Ends the schedule: no run starts afterwards. The call that ends it returns true if no run is under way, or if it
  /// is made inside the job. Destroys the job, unless a thread is in on_timeout(): then that thread destroys it. Must
  /// not be called in a forked child, because a thread that was not copied may have been using `pending`.
  bool cancel(detail::PendingTimeout& pending);
  /// Returns whether the schedule has ended, or Timer::stop() has cancelled its timeout. In a forked child it does not
  /// look at the timeout.
  bool done(detail::PendingTimeout& pending) const;
  /// Returns the number of runs that have started.
  std::uint64_t runs() const noexcept { return word_.load(std::memory_order_acquire) / kRun; }
  /// Returns when the next run is due. Returns nothing if the schedule is done, during a run, and while the rule or the
  /// clock of a calendar fails.
  std::optional<std::chrono::steady_clock::time_point> next(detail::PendingTimeout& pending) const;

 private:
  /// Each line is one exchange of the word. An expiry makes the exchanges from Waiting and to Missed. The thread in
  /// on_timeout() makes all others.
  ///
  ///   from     to       when
  ///   Waiting  Busy     the timeout expires; its thread enters on_timeout()
  ///   Busy     Running  a run starts, unless the schedule has ended
  ///   Running  Busy     the run ends
  ///   Busy     Arming   new_timeout() is about to be called
  ///   Arming   Waiting  the timeout was stored, unless the schedule has ended
  ///   Arming   Missed   the timeout expires before it was stored; the thread that stores it makes the run
  ///   Missed   Busy     that thread makes the run, unless the schedule has ended
  /// The first timeout is armed in the state Waiting. The worker may run it before start() has stored it. That is
  /// harmless, because no user has the handle yet.
  enum class RunState : std::uint64_t {
    Waiting,  // for a timeout
    Busy,     // a thread is in on_timeout(), and owns the job and the timetable
    Running,  // that thread runs the job
    Arming,   // that thread arms and stores the next timeout
    Missed,   // Arming, and the next timeout has already expired
  };

  // The parts of the word.
  static constexpr std::uint64_t kState = 7;  // RunState
  static constexpr std::uint64_t kEnded = 8;  // set by cancel() or after the last run, and never cleared
  static constexpr std::uint64_t kNext = 16;  // next_ is valid
  static constexpr std::uint64_t kRun = 32;   // the number of runs, from this bit on

  static RunState state_of(std::uint64_t word) noexcept { return static_cast<RunState>(word & kState); }
  static std::uint64_t with_state(std::uint64_t word, RunState state) noexcept {
    return (word & ~kState) | static_cast<std::uint64_t>(state);
  }

  /// The next step after a run.
  enum class After : std::uint8_t { Wait, RunAgain, Finish, Refused };

  void on_timeout(Timeout& self);
  std::optional<Timetable::Wait> turn(Core& core, const Timeout& expired, std::exception_ptr& errors);
  std::optional<Timetable::Wait> run_once(Core& core, std::exception_ptr& errors);
  bool enter() noexcept;
  bool leave_for(RunState state) noexcept;
  bool begin_run() noexcept;
  After go_on(Core& core, const std::optional<Timetable::Wait>& wait, Timeout& armed, std::exception_ptr& errors);
  After finish_arming(bool next) noexcept;
  void finish() noexcept;
  Timeout arm(Timer& timer, const Timetable::Wait& wait);

  const MadeInProcess process_;
  const std::uint64_t limit_;
  std::weak_ptr<ScheduledTask> task_;  // set by start()

  // Owned by the thread in on_timeout(), or by cancel() if there is none.
  std::function<void()> job_;
  std::unique_ptr<Timetable> timetable_;

  std::atomic<std::uint64_t> word_{0};
  // relaxed: they are stored before a release of the word, and read after an acquire of it.
  std::atomic<std::thread::id> runner_{};  // while Running
  std::atomic<Timetable::time_point::rep> next_{0};
};

}  // namespace hwt::internal
