#pragma once

// One test for every kind of Timer.

#include <memory>
#include <type_traits>

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/options.h"
#include "tests/support/test_support.h"

namespace hwt::test {

using AllTimers = ::testing::Types<HashedWheelTimer, HierarchicalWheelTimer, ManualTimer>;
using ThreadedTimers = ::testing::Types<HashedWheelTimer, HierarchicalWheelTimer>;

/// With a tick of 1 ms.
template <class T>
std::unique_ptr<T> make_timer(Options options = {}) {
  options.tick_duration = 1ms;
  if constexpr (std::is_same_v<T, ManualTimer>) {
    return std::make_unique<T>(1ms, steady_clock::time_point(5s), options.on_task_error);
  } else {
    return std::make_unique<T>(options);
  }
}

/// Lets time pass until `condition` holds.
template <class T, class Condition>
[[nodiscard]] bool passes_until(T& timer, Condition condition) {
  return eventually([&] {
    if constexpr (std::is_same_v<T, ManualTimer>) timer.advance(1ms);
    return condition();
  });
}

}  // namespace hwt::test
