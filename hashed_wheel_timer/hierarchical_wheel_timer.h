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
class HierarchicalWheel;
template <class Wheel>
class Worker;
}  // namespace internal

/// A Timer like HashedWheelTimer, with the same threads, guarantees and costs of new_timeout() and cancel(), over a
/// hierarchy of wheels: for many timeouts that are far away. They cost nothing until they come near, whatever their
/// number, where a hashed wheel walks over them in each revolution; each is moved to a lower level a few times at most,
/// for which the worker wakes up. Levels cover every delay, and every timeout has its exact tick.
/// Timeouts in the same slot of a level come down together, for which a million of them takes the worker some 25 ms;
/// more slots per level spread them: with 64 at a tick of 1 ms, those due in the same 262 s, with 4096 in the same 4 s.
/// Varghese & Lauck, "Hashed and Hierarchical Timing Wheels" (1987), scheme 7; Kafka: SystemTimer, TimingWheel, which
/// is early by up to a tick where this is late.
class HWT_API HierarchicalWheelTimer final : public Timer {
 public:
  HierarchicalWheelTimer();
  /// `ticks_per_wheel` is the number of slots of each level: 2 .. 4096, rounded up to a power of two. 512, the default
  /// of Options, stands for this timer's own, 64; the other constructor takes it as it is. `tick_duration` may be any
  /// from 1 ms on; a shorter one is raised to that with a warning. TimerStats::ticks counts those in which timeouts
  /// come down as well. Throws std::invalid_argument that names the option, its value and the valid range;
  /// std::bad_alloc.
  explicit HierarchicalWheelTimer(Options options);
  explicit HierarchicalWheelTimer(std::chrono::nanoseconds tick_duration, std::int64_t ticks_per_wheel = 64);

  /// Stops. Plain callables that are still pending are destroyed at once, TimerTasks are cancelled. Like any destructor
  /// it must not race other calls on the timer, calls on its Timeouts excepted. May run inside a task: then the worker
  /// ends by itself after that task.
  ~HierarchicalWheelTimer() override;

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
  internal::Worker<internal::HierarchicalWheel>* worker_;  // deletes itself when the timer goes inside one of its tasks
};

}  // namespace hwt
