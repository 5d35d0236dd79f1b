#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class ThreadedEngine;
}

/// What HashedWheelTimer and HierarchicalWheelTimer have in common: a Timer with one worker thread, which the first
/// timeout starts. They differ in the wheel that it turns.
///
///   void warm_up(hwt::ThreadedTimer& timer) { timer.start(); }   // so that the first request makes no thread
///
/// Guarantees: those of Timer. The destructor stops; plain callables that are still pending are destroyed at once,
/// TimerTasks are cancelled. It may run inside a task: then the worker ends by itself after that task.
/// Threads: any may call any member, tasks included, but for what stop() says. Like any destructor, this one must not
/// race other calls on the timer; calls on its Timeouts, and those of a task that is running, may.
/// Not for: interfaces. A framework takes a Timer.
/// Source: Netty's HashedWheelTimer.
class HWT_API ThreadedTimer : public Timer {
 public:
  /// Starts the worker, which the first new_timeout() does as well. Throws IllegalState after stop(), and what the
  /// thread factory throws; the timer is then as before and can be started again.
  void start();

  std::vector<Timeout> stop() override;
  std::int64_t pending_timeouts() const noexcept override;
  /// steady_clock's.
  std::chrono::steady_clock::time_point now() const noexcept override;
  TimerStats stats() const noexcept override;
  LatencyHistogram lateness() const noexcept override;

 protected:
  /// Without an engine yet: see set_engine().
  ThreadedTimer() = default;
  /// After end().
  ~ThreadedTimer() override;

  /// Once, by the constructor of the derived class.
  void set_engine(internal::ThreadedEngine* engine) noexcept { engine_ = engine; }

  /// The destructor of each derived class calls it, and nothing else does: a task that is still running then finds the
  /// timer's virtual functions as they were.
  void end() noexcept;

  detail::Scheduled schedule(const detail::TaskSource& task, detail::When when) override;
  void begin() override;

 private:
  internal::ThreadedEngine* engine_ = nullptr;  // deletes itself: the timer may go inside one of its tasks
};

}  // namespace hwt
