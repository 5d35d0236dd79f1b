#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "hashed_wheel_timer/export.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/stats.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class HashedWheel;
template <class Wheel>
class Worker;
}  // namespace internal

/// A Timer with one worker thread that turns a wheel of power-of-two buckets: scheduling and cancelling cost O(1) and
/// take no lock. Share one instance per process or framework; more than 64 live ones give one warning on stderr.
/// Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 6; Netty: HashedWheelTimer.
class HWT_API HashedWheelTimer final : public Timer {
 public:
  HashedWheelTimer();
  /// Throws std::invalid_argument that names the option, its value and the valid range; std::bad_alloc.
  explicit HashedWheelTimer(Options options);
  explicit HashedWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel = 512);

  /// Stops. Plain callables that are still pending are destroyed at once, TimerTasks are cancelled. Like any destructor
  /// it must not race other calls on the timer, calls on its Timeouts excepted. May run inside a task: then the worker
  /// ends by itself after that task.
  ~HashedWheelTimer() override;

  /// Starts the worker, which the first new_timeout() does as well. Throws IllegalState after stop(), and what the
  /// thread factory throws; the timer is then as before and can be started again.
  void start();

  std::vector<Timeout> stop() override;
  std::int64_t pending_timeouts() const noexcept override;
  std::chrono::steady_clock::time_point now() const noexcept override;
  TimerStats stats() const noexcept;

 protected:
  Timeout schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay, OnRefusal on_refusal) override;

 private:
  internal::Worker<internal::HashedWheel>* worker_;  // deletes itself when the timer goes inside one of its tasks
};

}  // namespace hwt
