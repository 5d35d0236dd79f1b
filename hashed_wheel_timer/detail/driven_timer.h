#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/histogram.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/stats.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class ManualEngine;
}

namespace detail {

/// Runs the tasks of a timer. An event loop may keep a LoopDriver longer than the timer, and then nothing is due.
class HWT_API LoopDriver {
 public:
  explicit LoopDriver(std::shared_ptr<internal::ManualEngine> engine) noexcept;

  /// See LoopTimer::run_due(). Stores the number of tasks that ran in `*ran`. A task may destroy the timer, but not
  /// this object.
  std::optional<std::chrono::steady_clock::time_point> run_due(
      std::size_t max_tasks = std::numeric_limits<std::size_t>::max(), std::size_t* ran = nullptr);

 private:
  const std::shared_ptr<internal::ManualEngine> engine_;
};

/// The base of the timers without a thread: the caller does the worker's part. Not for users.
class HWT_API DrivenTimer : public Timer {
 public:
  /// Waits for a task that another thread runs. After it nothing runs.
  std::vector<Timeout> stop() override;
  std::int64_t pending_timeouts() const noexcept override;
  std::chrono::steady_clock::time_point now() const noexcept override;
  TimerStats stats() const noexcept override;
  LatencyHistogram lateness() const noexcept override;

 protected:
  /// Times are those of steady_clock. `name` is that of the class, for messages. Throws std::invalid_argument that
  /// names the option, its value and the valid range; std::bad_alloc.
  DrivenTimer(const char* name, const Options& options);
  /// The caller gives the time, which begins at `start`. Without `start` it begins at zero, and the first jump must not
  /// pass a pending deadline. Throws std::invalid_argument and std::bad_alloc like the other constructor.
  DrivenTimer(const char* name, const Options& options, std::optional<std::chrono::steady_clock::time_point> start);
  ~DrivenTimer() override;

  LoopDriver driver() const noexcept { return LoopDriver(engine_); }
  internal::ManualEngine& engine() const noexcept { return *engine_; }

  /// See LoopTimer::on_earlier().
  void on_earlier(std::function<void()> call);

  /// The destructor of each derived class calls it, and nothing else does: a task that still runs on another thread
  /// then finds the timer's virtual functions as they were.
  void end() noexcept;

 private:
  const std::shared_ptr<internal::ManualEngine> engine_;  // a task that destroys the timer leaves it to its caller
};

}  // namespace detail
}  // namespace hwt
