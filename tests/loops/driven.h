#pragma once

// What the timers of the guide's loops promise.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/test_support.h"

namespace hwt::test {

/// Threads schedule on a timer that a loop drives on another thread, and each waits for its own to run. The loop sleeps
/// for an hour, or without end, unless it is told of them.
inline void expect_driven(ManualTimer& timer) {
  for (const bool far : {false, true}) {
    Timeout keeps_asleep;
    if (far) keeps_asleep = timer.new_timeout([] {}, kFar);
    run_together(3, [&](int thread) {
      std::mt19937 random(static_cast<std::uint32_t>(thread));
      for (int i = 0; i < 100; ++i) {
        Latch ran;
        const auto deadline = steady_clock::now() + std::chrono::milliseconds(random() % 5);
        timer.new_timeout_at(
            [&] {
              EXPECT_GE(steady_clock::now(), deadline);
              ran.count_down();
            },
            deadline);
        ASSERT_TRUE(ran.wait());
      }
    });
    keeps_asleep.cancel();
    EXPECT_EQ(timer.pending_timeouts(), 0);
  }
}

}  // namespace hwt::test
