// HierarchicalWheelTimer: what its wheel adds to, or takes from, what every timer promises.

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"
#include "tests/support/worker_call.h"

namespace hwt::test {
namespace {

constexpr int kScale = kSanitized || kCounting ? 10 : 1;

// In Options the same number stands for the default.
TEST(HierarchicalOptions, FiveHundredAndTwelveSlotsCanBeHad) {
  Latch ran;
  HierarchicalWheelTimer timer(1ms, 512);
  timer.new_timeout([&] { ran.count_down(); }, 200ms);  // on the lowest level, of which 64 slots would not be enough
  ASSERT_TRUE(ran.wait());
  timer.stop();
  EXPECT_EQ(timer.stats().ticks, 1);
}

/// The knob is wired: a timeout comes down once for each level that it began on above the lowest.
TEST(HierarchicalOptions, TheNumberOfSlotsDecidesWhichTimeoutsComeDown) {
  struct Row {
    Options options;
    bool comes_down;
  };
  for (const auto& [options, comes_down] :
       {Row{{.tick_duration = 10ms}, true}, Row{{.tick_duration = 10ms, .ticks_per_wheel = 512}, true},
        Row{{.tick_duration = 10ms, .ticks_per_wheel = 4}, true},
        Row{{.tick_duration = 10ms, .ticks_per_wheel = 4096}, false}}) {
    Latch ran(3);
    HierarchicalWheelTimer timer(options);
    // In three adjacent ticks after the first 64. At least one begins no slot, so its timeout comes down at another.
    Timeout latest;
    for (int i = 0; i < 3; ++i) latest = timer.new_timeout([&] { ran.count_down(); }, 660ms + i * 10ms);
    call_worker(internal::Node::of(latest)->core());  // into the wheel, as long as the first 64 ticks are not over
    ASSERT_TRUE(ran.wait());
    timer.stop();
    if (comes_down) {
      EXPECT_GT(timer.stats().ticks, 3) << options.ticks_per_wheel;
    } else {
      EXPECT_LE(timer.stats().ticks, 3) << options.ticks_per_wheel;
    }
  }
}

TEST(HierarchicalTimer, FarTimeoutsCostNoTickAndNoWakeUp) {
  HierarchicalWheelTimer timer(1ms);
  for (int i = 0; i < 100'000 / kScale; ++i) timer.new_timeout([] {}, 10min + i * 6ms);
  await_transfer(timer);
  ASSERT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
  // At rest: the next slot that begins is one of 64^3 ms. Until then the timer must do no more than an empty one.
  come_to_rest(timer, 300ms);
  EXPECT_EQ(timer.pending_timeouts(), 100'000 / kScale);
}

TEST(HierarchicalTimer, ATimeoutCostsAtMostOneTickPerLevelAndMovingDownIsNoLag) {
  std::chrono::nanoseconds lag_before{1};
  Latch ran;
  HierarchicalWheelTimer timer(1ms, 4);
  after(timer, 400ms, [&] {
    lag_before = timer.stats().last_lag;
    ran.count_down();
  });
  ASSERT_TRUE(ran.wait());
  timer.stop();
  EXPECT_EQ(lag_before, 0ns);
  EXPECT_LE(timer.stats().ticks, 5) << "5 levels of 4 slots hold 1,024 ticks";
  EXPECT_LE(timer.stats().wakeups, 40);
}

/// After a long rest the wheel catches up with the clock; nothing was late for that.
TEST(HierarchicalTimer, ARestIsNoLag) {
  Latch ran(10);
  HierarchicalWheelTimer timer(1ms, 2);
  timer.start();
  std::this_thread::sleep_for(3s);    // past the tick 2048, where a slot of a high level begins
  std::chrono::nanoseconds latest{};  // the worker's until it has stopped
  for (int i = 0; i < 10; ++i) {
    after(timer, i * 10ms, [&](Timeout& timeout) {
      latest = std::max<std::chrono::nanoseconds>(latest, steady_clock::now() - timeout.deadline());
      ran.count_down();
    });
  }
  ASSERT_TRUE(ran.wait());
  timer.stop();
  // Whatever held the worker up shows in both.
  EXPECT_LT(timer.stats().max_lag, latest + 800ms);
}

}  // namespace
}  // namespace hwt::test
