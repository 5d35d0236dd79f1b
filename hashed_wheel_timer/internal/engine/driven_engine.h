// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/worker.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "hashed_wheel_timer/internal/platform/threads.h"
#include "hashed_wheel_timer/internal/time/request_clock.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "hashed_wheel_timer/options.h"

namespace hwt::internal {

/// A timer without a thread: the caller of drive() or advance() does the worker's part. Times are nanoseconds since the
/// epoch of steady_clock. The clock is steady_clock, or the caller gives the time. The wheel turns by clock_. Functions
/// take and return times of steady_clock.
///
/// Each call that uses the wheel holds the mutex for one turn (class Turn). In a turn it makes passes, runs tasks, or
/// stops the timer. Tasks run inside a turn, so a call from a task must not begin another one. There advance(),
/// drive(), on_earlier() and stop() throw, and next_wakeup() returns the present time. destroy() leaves the rest to the
/// end of the turn.
///
/// Shared, because an event loop may still call drive() after the timer was destroyed. It then finds the engine
/// stopped.
class DrivenEngine final : public std::enable_shared_from_this<DrivenEngine>, private Sleeper::Outside {
 public:
  /// Makes an engine that is started, and whose time begins at `start`.
  DrivenEngine(Timer& timer, const Options& options, std::int64_t start, Core::Clock clock);
  DrivenEngine(const DrivenEngine&) = delete;
  DrivenEngine& operator=(const DrivenEngine&) = delete;

  Core& core() noexcept { return *core_; }

  /// See ManualTimer.
  std::size_t advance(std::int64_t by);
  std::size_t advance_to(std::int64_t now, std::size_t max_tasks);
  std::optional<std::int64_t> next_wakeup();
  /// See LoopTimer::run_due(). Leaves timeouts in the inbox until one of them may be due or a thread asks for a pass,
  /// since most of them are cancelled before.
  std::optional<std::int64_t> drive(std::size_t max_tasks, std::size_t* ran = nullptr);
  /// See LoopTimer.
  void on_earlier(std::function<void()> call);
  std::vector<Timeout> stop();

  /// Called when the timer is destroyed. Inside a task, the advance() that runs the task does the rest.
  void destroy() noexcept;

 private:
  class Turn;
  /// How turn() moves the time forward: at once, or tick by tick, so that each task sees the end of its own tick.
  enum class Advance { Jump, Step };
  using Pass = Worker<HierarchicalWheel>::Pass;

  /// Returns the time by which the wheel turns. It goes back when the cycle counter proves wrong.
  std::int64_t clock_now() noexcept { return core_->reads_steady_clock() ? clock_.now() : core_->now(); }
  bool turning_here() const noexcept;
  void refuse_inside_task(const char* what) const;
  std::size_t turn(std::int64_t now, std::size_t max_tasks, Advance advance);
  Tick next_due() noexcept { return std::min(worker_.next_due(), worker_.next_waiting()); }
  bool has_ended() noexcept;
  /// Returns whether a thread has asked for a pass.
  bool is_asked() const noexcept;
  /// Returns when the wheel must be turned next, by steady_clock; kForever if never. If the caller can be woken,
  /// threads that schedule an earlier timeout wake it.
  std::int64_t next_call() noexcept;
  /// Takes timeouts that were in the inbox when the call began into the wheel. If `until` is not kForever, takes those
  /// of places with a deadline up to `until`, and of the others as many as some passes may take. May call cancelled().
  /// If timeouts have come meanwhile, for example from a cancelled(), begins again, up to `begins` times in all. Waits
  /// for producers that sift their place, in at most `naps` naps. Returns whether everything was taken, and the timer
  /// is running.
  bool transfer(std::int64_t until, int begins, int naps) noexcept;
  bool transfer_all() noexcept;
  void set_present(std::int64_t now) noexcept;
  /// Returns the time since `time`, which is not later than now.
  std::chrono::nanoseconds since(std::int64_t time) const noexcept;
  void give_memory_back() noexcept;
  void call() noexcept override;
  template <class F>
  void between_calls(F f);
  /// Stops the timer. Returns false if it was stopped before.
  bool finish() noexcept;

  const std::unique_ptr<Core, CloseCore> core_;
  const TickGrid grid_;

  // Held by the thread that turns the wheel. Guards the members below, unless their comments say otherwise.
  std::mutex mutex_;
  WorkerClock clock_;
  std::int64_t present_;  // the time that the wheel has been turned to
  // Hierarchical, because a tick of a nanosecond and a delay of years must cost no more than others.
  Worker<HierarchicalWheel> worker_;
  Unprocessed unprocessed_;
  std::uint64_t forks_ = fork_count();  // at the latest turn
  bool destroyed_ = false;
  std::function<void()> earlier_;  // called by any thread, without the mutex; changes while no call is under way
  // Call earlier_ at the end of the turn, without the mutex. After a stop() without a function, the call waits for the
  // first turn that has one.
  bool owes_call_ = false;
  // The latest answer of next_call(): the caller comes by then without a call. Before its first question it does not
  // sleep. Calls are lost while there is no function, or while on_earlier() changes it. So on_earlier() asks again, and
  // calls if the answer is earlier. It takes no timeouts into the wheel, so an earlier one is still in the inbox.
  std::int64_t told_ = std::numeric_limits<std::int64_t>::min();

  // Never reset. Set without the mutex: a thread that was not copied may hold it.
  std::shared_ptr<DrivenEngine> kept_in_forked_child_;

  // The thread that holds the mutex. relaxed: a thread only looks for its own id, and no other thread stores that.
  std::atomic<std::thread::id> turning_{};
};

}  // namespace hwt::internal
