#pragma once

// Helpers for tests that run with every kind of Timer.

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "tests/support/test_support.h"

namespace hwt::test {

/// The timers with a worker, and others.
template <class... Others>
using ThreadedTimersAnd = ::testing::Types<HashedWheelTimer, HierarchicalWheelTimer, Others...>;
using ThreadedTimers = ThreadedTimersAnd<>;
using AllTimers = ThreadedTimersAnd<ManualTimer, LoopTimer>;

/// Names the timers in the names of tests.
struct TimerNames {
  template <class T>
  static std::string GetName(int number) {
    if (std::is_same_v<T, HashedWheelTimer>) return "Hashed";
    if (std::is_same_v<T, HierarchicalWheelTimer>) return "Hierarchical";
    if (std::is_same_v<T, ManualTimer>) return "Manual";
    if (std::is_same_v<T, LoopTimer>) return "Loop";
    return "Timer" + std::to_string(number);
  }
};

/// True for timers without a worker, which the test thread drives.
template <class T>
inline constexpr bool kDriven = std::is_same_v<T, ManualTimer> || std::is_same_v<T, LoopTimer>;

/// Lets a millisecond pass for a timer without a worker, and runs the due tasks. Does nothing for other timers.
template <class T>
void turn(T& timer) {
  if constexpr (std::is_same_v<T, ManualTimer>) {
    timer.advance(1ms);
  } else if constexpr (kDriven<T>) {
    std::this_thread::sleep_for(1ms);
    timer.run_due();
  }
}

/// Makes a timer with a tick of 1 ms.
template <class T>
std::unique_ptr<T> make_timer(Options options = {}) {
  options.tick_duration = 1ms;
  if constexpr (std::is_same_v<T, ManualTimer>) {
    return std::make_unique<T>(options, steady_clock::time_point(5s));
  } else {
    return std::make_unique<T>(options);
  }
}

/// Keeps the worker inside a task until the result is reset. Returns null for a timer without a worker.
template <class T>
std::unique_ptr<Gate> hold_worker([[maybe_unused]] T& timer) {
  if constexpr (kDriven<T>) {
    return nullptr;
  } else {
    return std::make_unique<Gate>(timer);
  }
}

/// Drives the timer until `condition` holds. Returns false if it does not hold within kGenerous.
template <class T, class Condition>
[[nodiscard]] bool passes_until(T& timer, Condition condition) {
  return eventually([&] {
    turn(timer);
    return condition();
  });
}

/// Waits until earlier timeouts and cancels of this thread have reached the wheel, and due tasks have run.
template <class T>
void settle(T& timer) {
  std::atomic<bool> ran = false;
  timer.new_timeout([&] { ran = true; }, 0ms);
  EXPECT_TRUE(passes_until(timer, [&] { return ran.load(); }));
}

}  // namespace hwt::test
