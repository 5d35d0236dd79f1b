// Promise 1 of README.md, never early, with a cycle counter that breaks while a timer uses it. The whole library is
// compiled with the counter in broken/.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/internal/platform/cycle_counter.h"

namespace {

using namespace std::chrono_literals;
using hwt::internal::cycle_counter::Fault;
using std::chrono::steady_clock;

/// Uses the timer until it uses the counter.
template <class T>
void await_counter(T& timer) {
  while (!timer.stats().counts_cycles) {
    timer.cancel(timer.add([] {}, 1h));
    std::this_thread::sleep_for(1ms);
  }
}

/// Two threads schedule, one of them few timeouts and one many. Returns how late the earliest task was: a negative time
/// if it was early, and 0 otherwise.
template <class T>
std::chrono::nanoseconds earliest(T& timer) {
  std::atomic<std::int64_t> least{0};
  std::atomic<int> left{0};
  const auto schedule = [&](std::chrono::microseconds delay) {
    ++left;
    const auto due = steady_clock::now() + delay;
    timer.add(
        [&, due] {
          const std::int64_t late = (steady_clock::now() - due) / 1ns;
          std::int64_t seen = least.load();
          while (late < seen && !least.compare_exchange_weak(seen, late)) {
          }
          --left;
        },
        delay);
  };
  std::thread much([&] {
    for (int i = 0; i < 20'000; ++i) schedule(std::chrono::microseconds(i % 3000));
  });
  for (int i = 0; i < 60; ++i) {
    schedule(std::chrono::microseconds(100 * (i % 30)));
    std::this_thread::sleep_for(500us);
  }
  much.join();
  while (left.load() != 0) std::this_thread::sleep_for(1ms);
  return std::chrono::nanoseconds(least.load());
}

class BrokenCounter : public testing::TestWithParam<Fault> {
 protected:
  void SetUp() override { break_it(Fault::None); }
  void TearDown() override { break_it(Fault::None); }
};

TEST_P(BrokenCounter, NothingIsEarlyInAHashedWheelTimer) {
  hwt::HashedWheelTimer timer{{.tick_duration = 1ms}};
  await_counter(timer);
  EXPECT_GE(earliest(timer), 0ns);
  break_it(GetParam());
  EXPECT_GE(earliest(timer), 0ns);
  EXPECT_EQ(timer.stats().counts_cycles, GetParam() == Fault::None);
}

TEST_P(BrokenCounter, NothingIsEarlyInAHierarchicalWheelTimer) {
  hwt::HierarchicalWheelTimer timer{{.tick_duration = 100us}};
  await_counter(timer);
  break_it(GetParam());
  EXPECT_GE(earliest(timer), 0ns);
  EXPECT_EQ(timer.stats().counts_cycles, GetParam() == Fault::None);
}

TEST_P(BrokenCounter, ATimeoutIsNotEarlyIfItsThreadNeverComesBack) {
  for (int round = 0; round < 10; ++round) {
    break_it(Fault::None);
    hwt::HashedWheelTimer timer{{.tick_duration = 1ms}};
    await_counter(timer);
    break_it(GetParam());
    std::this_thread::sleep_for(7ms);
    const auto called = steady_clock::now();
    std::atomic<std::int64_t> late{0};
    std::atomic<bool> ran{false};
    timer.add(
        [&] {
          late = (steady_clock::now() - called - 5ms) / 1ns;
          ran = true;
        },
        5ms);
    while (!ran) std::this_thread::sleep_for(1ms);
    EXPECT_GE(late.load(), 0);
  }
}

TEST_P(BrokenCounter, NoMovedTimeoutIsEarly) {
  hwt::HashedWheelTimer timer{{.tick_duration = 1ms}};
  await_counter(timer);
  std::atomic<std::int64_t> ran_at{0};
  hwt::Timeout timeout = timer.new_timeout([&] { ran_at = steady_clock::now().time_since_epoch() / 1ns; }, 1h);
  break_it(GetParam());
  std::this_thread::sleep_for(3ms);
  const auto called = steady_clock::now();
  ASSERT_TRUE(timeout.reschedule(10ms));
  while (ran_at == 0) std::this_thread::sleep_for(1ms);
  EXPECT_GE(ran_at.load(), (called + 10ms).time_since_epoch() / 1ns);
}

INSTANTIATE_TEST_SUITE_P(Faults, BrokenCounter,
                         testing::Values(Fault::None, Fault::Fast, Fault::Slow, Fault::Still, Fault::Back,
                                         Fault::FarBack));

TEST(CycleCounter, IsNotUsedWhenTheUserWantsTheExactClock) {
  hwt::HashedWheelTimer timer{{.tick_duration = 1ms, .exact_clock = true}};
  for (int i = 0; i < 20; ++i) {
    timer.cancel(timer.add([] {}, 1h));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(timer.stats().counts_cycles);
}

TEST(CycleCounter, IsNotUsedBelowATickOf100Microseconds) {
  hwt::HierarchicalWheelTimer timer{{.tick_duration = 99us}};
  for (int i = 0; i < 20; ++i) {
    timer.cancel(timer.add([] {}, 1h));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(timer.stats().counts_cycles);
}

TEST(CycleCounter, AFaultIsTold) {
  testing::internal::CaptureStderr();
  {
    hwt::HashedWheelTimer timer{{.tick_duration = 1ms}};
    await_counter(timer);
    break_it(Fault::FarBack);
    earliest(timer);
  }
  break_it(Fault::None);
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_NE(line.find("the cycle counter and steady_clock disagree"), std::string::npos) << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  double behind = 0;  // ms
  ASSERT_EQ(std::sscanf(line.c_str(), "%*[^,], and runs all tasks %lf ms later", &behind), 1) << line;
  EXPECT_GT(behind, 0);
  EXPECT_LT(behind, 1000);
}

}  // namespace
