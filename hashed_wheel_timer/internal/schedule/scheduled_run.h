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
#include "hashed_wheel_timer/internal/schedule/timetable.h"
#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

class Core;

/// The state that the timeouts of a schedule share: the job, its timetable and its progress.
///
/// Ownership:       Timer -> pending Timeout -> its callable -> ScheduledRun
///                  user -> ScheduledTask -> ScheduledRun
///                          ScheduledTask -> Timeout    ScheduledRun ~> ScheduledTask (weak)
/// A ScheduledRun holds no Timeout itself: a timeout that stop() has returned keeps its callable, which keeps the run,
/// so neither would ever go. One timeout is pending at a time; it is armed at the end of a run, so runs never overlap.
///
/// Threads: on_timeout() is called by the worker, or in its executor, and waits for no user. One word holds the state,
/// whether it has ended, and the number of runs. So cancel() and the start of a run are one exchange each, and one of
/// them comes first. The word also hands the job and the timetable from a thread in on_timeout() to the next one, or to
/// cancel(). Each exchange by the former is a release; entering and cancelling acquire.
class ScheduledRun : public std::enable_shared_from_this<ScheduledRun> {
 public:
  ScheduledRun(std::unique_ptr<Timetable> timetable, std::uint64_t limit, std::function<void()> job);

  /// Once, by the thread that has made it. Throws what Timer::new_timeout() and the timetable throw.
  void start(Timer& timer, const std::shared_ptr<ScheduledTask>& task);

  bool in_forked_child() const noexcept { return process_.in_forked_child(); }

  // ScheduledTask's. `pending` is its member of this name.

  bool cancel(detail::PendingTimeout& pending);
  bool done(detail::PendingTimeout& pending) const;
  std::uint64_t runs() const noexcept { return word_.load(std::memory_order_acquire) / kRun; }
  std::optional<std::chrono::steady_clock::time_point> next(detail::PendingTimeout& pending) const;

 private:
  /// Each arrow is one exchange of the word; but for those by an expiry, and cancel(), by the thread in on_timeout().
  ///
  ///   from     to       by
  ///   Waiting  Busy     an expiry, whose thread is in on_timeout() from then on
  ///   Busy     Running  the start of a run, unless it has ended
  ///   Running  Busy     the end of a run
  ///   Busy     Arming   before new_timeout(), unless it has ended
  ///   Arming   Waiting  when the timeout has been stored, unless it has ended
  ///   Arming   Missed   an expiry of that timeout, before it was stored; it leaves the run to the thread that stores
  ///   Missed   Busy     that thread, which makes the run
  /// The first timeout is armed while it is Waiting: no user has the handle yet, so it may be stored late.
  enum class RunState : std::uint64_t {
    Waiting,  // for a timeout
    Busy,     // a thread is in on_timeout(): the job and the timetable are its own
    Running,  // that thread is in the job
    Arming,   // that thread is in new_timeout()
    Missed,   // that thread is in new_timeout(), and the new timeout has expired
  };

  // The word: RunState; it has ended, for good, which cancel() sets or the end of the last run; next_ holds; the number
  // of runs.
  static constexpr std::uint64_t kState = 7;
  static constexpr std::uint64_t kEnded = 8;
  static constexpr std::uint64_t kNext = 16;
  static constexpr std::uint64_t kRun = 32;

  static RunState state_of(std::uint64_t word) noexcept { return static_cast<RunState>(word & kState); }
  static std::uint64_t with_state(std::uint64_t word, RunState state) noexcept {
    return (word & ~kState) | static_cast<std::uint64_t>(state);
  }

  /// The next step after a run.
  enum class After : std::uint8_t { Wait, RunAgain, Finish };

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
