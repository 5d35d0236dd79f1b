// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class DrivenEngine;
}

namespace detail {

/// Runs the due tasks of a timer. An event loop may keep a LoopDriver longer than the timer; then nothing is due.
class HWT_API LoopDriver {
 public:
  explicit LoopDriver(std::shared_ptr<internal::DrivenEngine> engine) noexcept;

  /// See LoopTimer::run_due(). Stores the number of tasks that ran in `*ran`. A task may destroy the timer, but not
  /// this object.
  std::optional<std::chrono::steady_clock::time_point> run_due(
      std::size_t max_tasks = (std::numeric_limits<std::size_t>::max)(), std::size_t* ran = nullptr);

 private:
  const std::shared_ptr<internal::DrivenEngine> engine_;
};

/// The base of the timers without a thread: the caller does the worker's part. Not for users.
class HWT_API DrivenTimer : public Timer {
 public:
  /// Ends the timer for good; see Timer::stop(). Waits for a task that runs on another thread. No task starts
  /// afterwards, except those that an executor already has. Wakes the loop: see LoopTimer::on_earlier().
  std::vector<Timeout> stop() override;

 protected:
  /// Makes a timer on steady_clock. `name`: the class, for messages. Throws std::invalid_argument that names the
  /// option, its value and the valid range; std::bad_alloc; std::system_error if no pthread key is left.
  DrivenTimer(const char* name, const Options& options);
  /// Makes a timer to which the caller gives the time, beginning at `start`, or at the present time of steady_clock.
  /// Throws as the other constructor does.
  DrivenTimer(const char* name, const Options& options, std::optional<std::chrono::steady_clock::time_point> start);
  ~DrivenTimer() override;

  LoopDriver driver() const noexcept { return LoopDriver(engine_); }
  internal::DrivenEngine& engine() const noexcept { return *engine_; }

  /// See LoopTimer::on_earlier().
  void on_earlier(std::function<void()> call);

  /// Ends the engine, and waits for a task on another thread. Only the destructor of each derived class calls it, so
  /// that the task still finds the timer's virtual functions.
  void end() noexcept;

 private:
  const std::shared_ptr<internal::DrivenEngine> engine_;  // shared, because a task may destroy the timer
};

}  // namespace detail
}  // namespace hwt
