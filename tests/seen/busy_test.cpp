// TimerStats::busy and in_tasks: the time that a timer takes.

#include <chrono>
#include <memory>
#include <thread>

#include "tests/support/any_timer.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

template <class T>
class Busy : public ::testing::Test {};
TYPED_TEST_SUITE(Busy, AllTimers, TimerNames);

TYPED_TEST(Busy, HasTheTimeOfTasksButNotOfTheSleep) {
  const auto begin = steady_clock::now();
  const auto timer = make_timer<TypeParam>();
  bool ran = false;
  timer->new_timeout(
      [&] {
        std::this_thread::sleep_for(20ms);
        ran = true;
      },
      200ms);
  EXPECT_TRUE(
      passes_until(*timer, [&] { return timer->stats().max_lag > 0ns || std::is_same_v<TypeParam, ManualTimer>; }));
  ASSERT_TRUE(passes_until(*timer, [&] { return timer->stats().ticks > 0; }));
  const TimerStats stats = timer->stats();
  const auto end = steady_clock::now();
  if (std::is_same_v<TypeParam, ManualTimer>) {
    EXPECT_EQ(stats.busy, 0ns) << "its clock stands still";
    EXPECT_EQ(stats.in_tasks, 0ns);
    return;
  }
  EXPECT_TRUE(ran);
  EXPECT_GE(stats.in_tasks, 20ms);
  EXPECT_GE(stats.busy, stats.in_tasks);
  EXPECT_LE(stats.busy, end - begin - 20ms) << "it has slept for most of the 200 ms before the task";
}

TYPED_TEST(Busy, StandsStillWhileNothingIsDue) {
  const auto timer = make_timer<TypeParam>();
  timer->new_timeout(must_not_run, kFar);
  turn(*timer);
  come_to_rest(*timer);
  EXPECT_TRUE(eventually([&] {
    const std::chrono::nanoseconds before = timer->stats().busy;
    std::this_thread::sleep_for(20ms);
    turn(*timer);
    return timer->stats().busy == before;
  }));
  EXPECT_EQ(timer->stats().in_tasks, 0ns);
}

/// A worker that never sleeps must not hide it.
TYPED_TEST(Busy, GrowsWhileTheWorkerNeverSleeps) {
  if (kDriven<TypeParam>) GTEST_SKIP() << "it has no worker";
  const auto timer = make_timer<TypeParam>();
  std::atomic<bool> ended = false;
  std::function<void()> again = [&] {
    if (!ended) timer->new_timeout([&] { again(); }, 0ns);
    std::this_thread::sleep_for(2ms);  // longer than a tick
  };
  again();
  std::chrono::nanoseconds last{0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(eventually([&] { return timer->stats().busy >= last + 2ms; }));
    last = timer->stats().busy;
  }
  ended = true;
  timer->stop();
}

}  // namespace
}  // namespace hwt
