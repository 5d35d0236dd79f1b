#pragma once

#include <chrono>
#include <thread>

namespace hwt::test {

/// The time limit for an expected event. If it passes, the test fails.
inline constexpr std::chrono::milliseconds kGenerous = std::chrono::seconds(60);

/// Polls until `condition` holds. For conditions without an event. Returns false after `limit`.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds limit = kGenerous) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

}  // namespace hwt::test
