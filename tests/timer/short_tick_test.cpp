// HierarchicalWheelTimer with ticks of microseconds keeps the promises, and its worker does nothing for ticks in which
// nothing is due.

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/clock_readings.h"
#include "tests/support/test_support.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using std::chrono::nanoseconds;

constexpr int kScale = kSanitized ? 10 : 1;

class ShortTick : public ::testing::TestWithParam<nanoseconds> {
 protected:
  static Options options() { return {.tick_duration = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Ticks, ShortTick, ::testing::Values(1us, 10us, 333us),
                         [](const auto& info) { return std::to_string(info.param / 1us) + "us"; });

TEST_P(ShortTick, IsNeverEarlyAndRunsEachOnce) {
  constexpr std::uint64_t kTimeouts = 100'000 / kScale;  // they find a fault that makes one of ten thousand early
  constexpr int kThreads = 2;
  constexpr std::uint64_t kAtOnce = 5000;  // pending, so that memory does not grow with the number
  std::uint64_t early = 0;                 // only the worker writes this and the next one
  std::uint64_t seconds_late = 0;
  std::atomic<std::uint64_t> runs = 0;
  HierarchicalWheelTimer timer(options());
  std::atomic<std::uint64_t> scheduled = 0;
  run_together(kThreads, [&](int thread) {
    std::mt19937_64 random(static_cast<std::uint64_t>(thread) + 1);
    while (scheduled.fetch_add(1) < kTimeouts) {
      const nanoseconds delay(static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 2'000'000 : 50'000)));
      const auto before = steady_clock::now();
      after(timer, delay, [&, before, delay](Timeout& timeout) {
        const auto now = steady_clock::now();
        if (now < timeout.deadline() || now < before + delay) ++early;
        if (now > timeout.deadline() + 5s) ++seconds_late;
        ++runs;
      });
      if (random() % 3 == 0) timer.new_timeout([&] { ++early; }, kFar).cancel();
      while (scheduled - runs > kAtOnce) std::this_thread::yield();
    }
  });
  EXPECT_TRUE(eventually([&] { return runs == kTimeouts; })) << runs;
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_EQ(runs, kTimeouts);
  EXPECT_EQ(early, 0u);
  EXPECT_EQ(seconds_late, 0u);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// Timeouts that are cancelled before they are due cost the worker one wake-up for each delay, and not one for each
/// tick. The worker wakes up when the earliest timeout that it knows of would be due. Then it learns of a later one,
/// and sleeps until that.
TEST_P(ShortTick, DoesNotWakeForCancelledTimeouts) {
  constexpr auto kDelay = 20ms;
  constexpr auto kTime = 200ms;
  HierarchicalWheelTimer timer(options());
  timer.start();
  const auto begin = steady_clock::now();
  while (steady_clock::now() < begin + kTime) {
    timer.new_timeout([] {}, kDelay).cancel();
    std::this_thread::sleep_for(50us);  // not so many that they are sifted, which may hold a pass up
  }
  const auto delays = (steady_clock::now() - begin) / kDelay + 1;
  EXPECT_LE(timer.stats().wakeups, 4 * delays + 10);
}

TEST_P(ShortTick, ManyCancelledAreCalledTogetherAndThenAnIdleTimerNeverWakes) {
  constexpr int kTasks = 20'000 / kScale;
  const auto task = std::make_shared<RecordingTask>();
  HierarchicalWheelTimer timer(options());
  std::vector<Timeout> timeouts;
  for (int i = 0; i < kTasks; ++i) timeouts.push_back(timer.new_timeout(task, kFar));
  const std::int64_t before = timer.stats().wakeups;
  const auto begin = steady_clock::now();
  for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
  ASSERT_TRUE(eventually([&] { return task->cancellations == kTasks; }));
  const auto milliseconds = (steady_clock::now() - begin) / 1ms + 1;
  EXPECT_LE(timer.stats().wakeups - before, 4 * milliseconds + 10);
  for (int i = 0; i < 100; ++i) timer.new_timeout([] {}, i % 20 * 70us);
  EXPECT_TRUE(none_pending(timer));
  come_to_rest(timer, 300ms);  // the worker may still be removing the cancelled timeouts
}

#if defined(HWT_TEST_COUNTS_CLOCK_READINGS) && !HWT_TEST_SANITIZED
/// After a stall the worker does not process past ticks one by one. Of 20,000 ticks with one task each, it processes
/// many between two looks at the clock and the inbox.
TEST(ShortTicks, AreCaughtUpTogether) {
  constexpr int kTicks = 20'000;
  int readings_at_first = 0;  // the worker's
  int readings_at_last = 0;
  std::atomic<int> runs = 0;
  HierarchicalWheelTimer timer(1us);
  for (auto head_start = 50ms;; head_start *= 2) {
    const Gate stall(timer);
    const auto first = steady_clock::now() + head_start;
    std::vector<Timeout> timeouts;
    for (int i = 0; i < kTicks; ++i) {
      timeouts.push_back(after(timer, first + i * 1us, [&] {
        readings_at_last = clock_readings;
        if (runs == 0) readings_at_first = clock_readings;
        ++runs;
      }));
    }
    // Each in a tick of its own, unless this thread was too slow.
    if (steady_clock::now() < first) {
      std::this_thread::sleep_until(first + kTicks * 1us);
      break;
    }
    for (Timeout& timeout : timeouts) timeout.cancel();
    ASSERT_LT(head_start, 10s);
  }
  ASSERT_TRUE(eventually([&] { return runs == kTicks; }));
  timer.stop();
  EXPECT_GE(timer.stats().ticks, kTicks);
  EXPECT_LT(readings_at_last - readings_at_first, kTicks / 10);
}
#endif

TEST(ShortTicks, CatchingUpEndsWithTheTimer) {
  for (const bool destroy : {false, true}) {
    std::atomic<int> runs = 0;
    Hold hold;
    auto timer = std::make_unique<HierarchicalWheelTimer>(1us);
    Timeout first;
    {
      std::jthread stopper;
      {
        const Gate stall(*timer);
        first = timer->new_timeout([&] { hold(); }, 1us);
        for (int i = 0; i < 1000; ++i) timer->new_timeout([&] { ++runs; }, 10us + i * 3us);
        std::this_thread::sleep_for(5ms);
      }
      ASSERT_TRUE(hold.wait_until_entered());
      stopper = std::jthread([&] { destroy ? timer.reset() : static_cast<void>(timer->stop()); });
      // Asks the core, because the timer may be in its destructor.
      EXPECT_TRUE(eventually([&] { return !internal::Node::of(first)->core().running(); }));
      hold.let_go();
    }
    EXPECT_EQ(runs, 0) << "a task of a past tick started after stop()";
  }
}

TEST(ShortTicks, LagCountsFromTheFirstTickOfThoseProcessedTogether) {
  Latch ran(10);
  HierarchicalWheelTimer timer(1us);
  {
    const Gate stall(timer);
    for (int i = 0; i < 10; ++i) timer.new_timeout([&] { ran.count_down(); }, i * 10us);
    std::this_thread::sleep_for(30ms);
  }
  ASSERT_TRUE(ran.wait());
  timer.stop();
  EXPECT_GE(timer.stats().max_lag, 29ms);
  EXPECT_LT(timer.stats().max_lag, 30s);
}

#if defined(__linux__)

int slack_of_this_thread() { return prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0); }

/// Returns the slack of a worker's thread in a task, and after the timer has ended: a thread of the user may live on.
std::pair<int, int> slack_of_worker(nanoseconds tick) {
  std::pair<int, int> slack{-1, -1};
  Latch over;
  {
    HierarchicalWheelTimer timer({.tick_duration = tick, .thread_factory = [&](std::function<void()> body) {
                                    return std::thread([&, body = std::move(body)] {
                                      body();
                                      slack.second = slack_of_this_thread();
                                      over.count_down();
                                    });
                                  }});
    EXPECT_TRUE(ran_in_task(timer, [&] { slack.first = slack_of_this_thread(); }));
  }
  EXPECT_TRUE(over.wait());
  return slack;
}

TEST(TimerSlack, OnlyAWorkerWithAShortTickHasNoneAndItComesBackToItsThread) {
  const int usual = slack_of_this_thread();
  if (usual <= 1) GTEST_SKIP() << "this thread has none";
  EXPECT_EQ(slack_of_worker(1us), std::pair(1, usual));
  EXPECT_EQ(slack_of_worker(999us), std::pair(1, usual));
  EXPECT_EQ(slack_of_worker(1ms), std::pair(usual, usual));
  EXPECT_EQ(slack_of_this_thread(), usual);
}

#endif

}  // namespace
}  // namespace hwt
