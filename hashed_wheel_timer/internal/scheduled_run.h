#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "hashed_wheel_timer/internal/timetable.h"
#include "hashed_wheel_timer/schedule.h"

namespace hwt::internal {

class Core;

/// What the timeouts of a schedule share: the job, its timetable, and how far it is.
///
/// Who owns whom:   Timer -> pending Timeout -> its callable -> ScheduledRun
///                  user -> ScheduledTask -> ScheduledRun
///                          ScheduledTask -> Timeout    ScheduledRun ~> ScheduledTask (weak)
/// A ScheduledRun holds no Timeout itself: one that stop() has returned keeps its callable, and so would keep the run,
/// for ever. One timeout is pending at a time; it is armed at the end of a run, so runs never overlap, and the work
/// goes from thread to thread by way of the mutex.
class ScheduledRun : public std::enable_shared_from_this<ScheduledRun> {
 public:
  ScheduledRun(std::unique_ptr<Timetable> timetable, std::uint64_t limit, std::function<void()> job);

  /// Once, by the thread that has made it. Throws what Timer::new_timeout() and the timetable throw.
  void start(Timer& timer, const std::shared_ptr<ScheduledTask>& task);

  // ScheduledTask's. `timeout` is its member of this name.

  bool cancel(Timeout& timeout);
  bool done(const Timeout& timeout) const noexcept;
  std::uint64_t runs() const noexcept;
  std::optional<std::chrono::steady_clock::time_point> next(const Timeout& timeout) const;

 private:
  enum class Phase : std::uint8_t {
    Waiting,  // for a timeout
    Busy,     // a thread is in on_timeout(): the job and the timetable are its own
    Running,  // the same, and it is in the job
  };

  void on_timeout(Timeout& self);
  bool enter();
  bool begin_run();
  void end_run();
  bool go_on(Core& core, const std::optional<Timetable::Wait>& wait, std::exception_ptr& errors);
  void finish();
  void arm(Timer& timer, const Timetable::Wait& wait, const std::shared_ptr<ScheduledTask>& task);

  const std::uint64_t limit_;

  // Of the thread in on_timeout(); while Waiting, of whoever holds the mutex.
  std::function<void()> job_;
  std::unique_ptr<Timetable> timetable_;

  // The mutex is not held while the job, the timetable or a destructor of the user's runs, so all of these may call the
  // handle. It is held across new_timeout(), which never calls back: the timeout must not fire before it is stored.
  mutable std::mutex mutex_;
  Phase phase_ = Phase::Waiting;
  bool ended_ = false;  // for good; set by cancel() or at the end of the last run
  std::uint64_t runs_ = 0;
  std::thread::id runner_;  // while Running
  std::optional<std::chrono::steady_clock::time_point> next_;
  std::weak_ptr<ScheduledTask> task_;
};

}  // namespace hwt::internal
