// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "hashed_wheel_timer/internal/platform/sleeper.h"

namespace hwt::internal {

/// The right to turn the wheel of a ThreadedEngine, and the engine's own thread.
///
/// Invariant: at most one thread has the role, and each but the last hands it to the next. A thread in
/// ThreadedTimer::run() wants it. It gets it at once if it has started the timer, otherwise when the own thread has
/// ended its round. The thread that gives the role up while none wants it is the last: it ends the timer.
///
/// A forked child calls none of the functions that lock once the timer has left Phase::Init, because a thread that was
/// not copied may hold the mutex. Before that, no thread locks it.
class WorkerRole {
 public:
  /// Gives the role to the engine's own thread. Called in Phase::Starting; finish_start() publishes it.
  void give_to(std::thread own) noexcept {
    own_ = std::move(own);
    is_taken_ = true;
  }

  // The thread that has the role.

  /// Returns whether a thread in run() wants the role. Asked once a round.
  bool is_wanted() const noexcept { return is_wanted_.load(std::memory_order_relaxed); }
  /// Gives the role up. Returns true if this thread was the last to have it. If not, another thread may destroy this
  /// as soon as the call has returned.
  bool give_up() noexcept {
    const std::lock_guard lock(mutex_);
    is_taken_ = false;
    is_over_ = !is_wanted();
    changed_.notify_all();
    return is_over_;
  }

  // A thread in run().

  /// Begins run(), and wants the role from then on. Returns false if another thread is in run().
  bool enter_run() noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(in_run_, true)) return false;
    is_wanted_.store(true, std::memory_order_relaxed);
    return true;
  }
  /// Takes the role. Waits until the own thread, if it has the role, has ended its round, and joins that thread.
  /// `sleeper` is the worker's. Returns false if the last thread has given the role up. Bounded by the tasks of the
  /// round: nothing else keeps the own thread.
  bool take_over(Sleeper& sleeper) noexcept {
    std::unique_lock lock(mutex_);
    if (is_over_) return false;
    if (is_taken_) sleeper.wake();
    changed_.wait(lock, [this] { return !is_taken_; });
    is_wanted_.store(false, std::memory_order_relaxed);
    is_taken_ = true;
    std::thread own = std::move(own_);
    lock.unlock();
    if (own.joinable()) own.join();
    return true;
  }
  /// Ends run(). A thread in await_end() may destroy this as soon as the call has returned.
  void leave_run() noexcept {
    const std::lock_guard lock(mutex_);
    in_run_ = false;
    changed_.notify_all();
  }

  // The thread that has begun to stop the timer.

  /// Waits for the own thread, if run() has not joined it, and for the end of run().
  void await_end() noexcept {
    if (std::thread own = own_thread(); own.joinable()) own.join();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !in_run_; });
  }
  /// For a task that has destroyed the timer.
  void detach() noexcept {
    if (std::thread own = own_thread(); own.joinable()) own.detach();
  }

 private:
  std::thread own_thread() noexcept {
    const std::lock_guard lock(mutex_);
    return std::move(own_);
  }

  std::mutex mutex_;  // guards all members, unless a comment says otherwise
  std::condition_variable changed_;
  std::thread own_;
  bool is_taken_ = false;
  bool is_over_ = false;
  bool in_run_ = false;
  // Written under the mutex. relaxed: the own thread may see it a round late. take_over() wakes it.
  std::atomic<bool> is_wanted_{false};
};

}  // namespace hwt::internal
