// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/engine/worker_role.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/options.h"

namespace hwt::internal {

/// The life of a timer with a worker thread: starts it once and stops it once, however many threads ask at a time. A
/// compare-and-swap of the phase decides which thread does that, so a forked child finds no lock taken. The derived
/// class has the loop of the worker, turn_wheel().
class ThreadedEngine {
 public:
  ThreadedEngine(Timer& timer, const Options& options);
  ThreadedEngine(const ThreadedEngine&) = delete;
  ThreadedEngine& operator=(const ThreadedEngine&) = delete;

  /// Starts the timer, if it has not started. When it returns, the timer has started. Waits for another thread's
  /// start(), so a thread_factory that calls it waits for ever. `caller` is the function that the user has called, for
  /// messages.
  ///
  /// Throws exceptions of thread_factory, std::bad_alloc, and IllegalState if the factory returns no running thread.
  /// Then a later call tries again. Also throws IllegalState after stop(), and in a forked child if another thread was
  /// starting the timer at the fork.
  void start(const char* caller);

  /// See ThreadedTimer::run().
  void run();

  /// See Timer::stop().
  std::vector<Timeout> stop();

  /// Ends the timer: stops, drops the unprocessed timeouts and deletes this. If a task calls it on the
  /// worker, the worker does that after the task. In a forked child it frees nothing, because threads that were not
  /// copied may have been using the data.
  void destroy() noexcept;

  Core& core() noexcept { return *core_; }

 protected:
  virtual ~ThreadedEngine() = default;

  /// The worker's loop, in Started. Ends when goes_on() is false, or soon after.
  virtual void turn_wheel() noexcept = 0;
  /// See Worker::cancel_all().
  virtual Node* cancel_all() noexcept = 0;

  /// Returns whether the thread that turns the wheel is to make another round.
  bool goes_on() const noexcept { return core_->running() && !role_.is_wanted(); }

 private:
  struct Launch;

  bool on_worker() const noexcept;
  Phase begin_start(const char* caller);
  bool work() noexcept;
  /// Ends the worker if there is one. Returns when it has finished, and run() too, also if another thread ended it.
  void finish() noexcept;

  const std::unique_ptr<Core, CloseCore> core_;
  const std::function<std::thread(std::function<void()>)> thread_factory_;
  LiveInstance instance_;

  WorkerRole role_;

  // Used by the worker until it has finished. The join orders later uses.
  Unprocessed unprocessed_;
};

}  // namespace hwt::internal
