// HierarchicalWheelTimer: what its wheel adds to, or takes from, what every timer promises.

#include <deque>

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"
#include "tests/support/worker_call.h"

namespace hwt::test {
namespace {
using std::chrono::nanoseconds;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

constexpr int kScale = kSanitized || kCounting ? 10 : 1;

/// Each message names the option, its value and the valid range.
void expect_refused(const Options& options, const std::string& option, const std::string& value,
                    const std::string& range) {
  const std::string message = message_of<std::invalid_argument>([&] { const HierarchicalWheelTimer timer(options); });
  EXPECT_EQ(message, "HierarchicalWheelTimer: " + option + ": " + value + " (expected: " + range + ")");
}

TEST(HierarchicalOptions, TicksPerWheelMustBeInRange) {
  const std::string range = "2 .. 4096";
  expect_refused({.ticks_per_wheel = 1}, "ticks_per_wheel", "1", range);
  expect_refused({.ticks_per_wheel = 0}, "ticks_per_wheel", "0", range);
  expect_refused({.ticks_per_wheel = -64}, "ticks_per_wheel", "-64", range);
  expect_refused({.ticks_per_wheel = 4097}, "ticks_per_wheel", "4097", range);
  expect_refused({.ticks_per_wheel = kInt64Max}, "ticks_per_wheel", "9223372036854775807", range);
  EXPECT_THROW(HierarchicalWheelTimer(100ms, 1), std::invalid_argument);
}

TEST(HierarchicalOptions, TickDurationMustBePositive) {
  const std::string range = "1 us or more";
  expect_refused({.tick_duration = 0ns}, "tick_duration", "0 ns", range);
  expect_refused({.tick_duration = -1ns}, "tick_duration", "-1 ns", range);
  expect_refused({.tick_duration = nanoseconds::min()}, "tick_duration", "-9223372036854775808 ns", range);
  EXPECT_THROW(HierarchicalWheelTimer(-1ms), std::invalid_argument);
}

TEST(HierarchicalOptions, ATickBelowAMicrosecondIsRaisedWithAWarning) {
  for (const auto tick : {999ns, 1ns}) {
    testing::internal::CaptureStderr();
    const HierarchicalWheelTimer raised(tick);
    const std::string warning = testing::internal::GetCapturedStderr();
    const std::string text = "tick_duration: " + std::to_string(tick.count()) + " ns is below 1 us; using 1 us\n";
    EXPECT_TRUE(contains(warning, text)) << warning;
    EXPECT_EQ(count_of(warning, "\n"), 1);
  }
  for (const nanoseconds tick : {nanoseconds(1us), nanoseconds(1001), nanoseconds(999us), nanoseconds(1ms)}) {
    testing::internal::CaptureStderr();
    const HierarchicalWheelTimer taken(tick);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
}

TEST(HierarchicalOptions, EveryOverloadMakesAWorkingTimer) {
  Latch ran(4);
  HierarchicalWheelTimer by_default;
  HierarchicalWheelTimer by_tick(1ms);
  HierarchicalWheelTimer by_tick_and_slots(1ms, 8);
  HierarchicalWheelTimer by_options{{.tick_duration = 1ms}};
  for (HierarchicalWheelTimer* timer : {&by_default, &by_tick, &by_tick_and_slots, &by_options}) {
    timer->new_timeout([&] { ran.count_down(); }, 0ms);
  }
  EXPECT_TRUE(ran.wait());
}

TEST(HierarchicalOptions, EveryNumberOfSlotsWorks) {
  for (const std::int64_t slots : {2, 3, 4, 5, 63, 64, 65, 512, 4095, 4096}) {
    Latch ran(20);
    HierarchicalWheelTimer timer(1ms, slots);
    for (int i = 0; i < 20; ++i) timer.new_timeout([&] { ran.count_down(); }, i * 1ms);
    EXPECT_TRUE(ran.wait()) << slots;
  }
}

// In Options the same number stands for the default.
TEST(HierarchicalOptions, FiveHundredAndTwelveSlotsCanBeHad) {
  Latch ran;
  HierarchicalWheelTimer timer(1ms, 512);
  timer.new_timeout([&] { ran.count_down(); }, 200ms);  // on the lowest level, of which 64 slots would not be enough
  ASSERT_TRUE(ran.wait());
  timer.stop();
  EXPECT_EQ(timer.stats().ticks, 1);
  EXPECT_THROW(HierarchicalWheelTimer(1ms, 4097), std::invalid_argument);
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

TEST(HierarchicalOptions, TheLongestTickStillSchedulesAndStops) {
  for (const std::int64_t slots : {2, 64, 4096}) {
    HierarchicalWheelTimer timer(nanoseconds::max(), slots);
    Timeout timeout = timer.new_timeout([] {}, 0ms);
    const Timeout never = timer.new_timeout([] {}, std::chrono::hours::max());
    EXPECT_TRUE(timeout.cancel());
    EXPECT_EQ(timer.stop(), std::vector<Timeout>{never});
  }
}

class HierarchicalSlots : public ::testing::TestWithParam<std::int64_t> {};

/// Wrong in other timers: those that round a deadline down to its slot are early by up to a tick.
TEST_P(HierarchicalSlots, NeverEarlyOverSeveralLevels) {
  for (const auto tick : {1ms, 10ms}) {
    std::atomic<int> early = 0;
    std::atomic<int> ran_twice = 0;
    std::deque<std::atomic<int>> runs(300);
    Latch all(300);
    HierarchicalWheelTimer timer(tick, GetParam());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      after(timer, i * 1777us, [&, i](Timeout& timeout) {
        if (steady_clock::now() < timeout.deadline()) ++early;
        if (++runs[i] != 1) ++ran_twice;
        all.count_down();
      });
    }
    ASSERT_TRUE(all.wait());
    EXPECT_EQ(early, 0);
    EXPECT_EQ(ran_twice, 0);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
}

/// Even if the worker was held up in between, and with timeouts on all levels.
TEST_P(HierarchicalSlots, RunsInTheOrderOfTicks) {
  constexpr int kTimeouts = 400;
  std::vector<steady_clock::time_point> deadlines;  // the worker's
  Latch all(kTimeouts);
  HierarchicalWheelTimer timer(1ms, GetParam());
  std::optional<Gate> gate(timer);
  for (int i = 0; i < kTimeouts; ++i) {
    after(timer, i * 7919 % 200 * 1ms, [&](Timeout& timeout) {
      deadlines.push_back(timeout.deadline());
      all.count_down();
    });
    if (i == kTimeouts / 2) gate.emplace(timer);  // the first half is in the wheel when the second half is queued
  }
  std::this_thread::sleep_for(100ms);
  gate.reset();
  ASSERT_TRUE(all.wait());
  timer.stop();
  for (std::size_t i = 1; i < deadlines.size(); ++i) {
    EXPECT_GE(deadlines[i], deadlines[i - 1] - 1ms) << "of a later tick, but ran first";
  }
}

INSTANTIATE_TEST_SUITE_P(Slots, HierarchicalSlots, ::testing::Values(2, 8, 64, 4096),
                         ::testing::PrintToStringParamName());

/// However many there are, the worker never walks over them.
TEST(HierarchicalTimer, FarTimeoutsCostNoTickAndNoWakeUp) {
  HierarchicalWheelTimer timer(1ms);
  for (int i = 0; i < 100'000 / kScale; ++i) timer.new_timeout([] {}, 10min + i * 6ms);
  await_transfer(timer);
  ASSERT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
  // At rest: the next slot that begins is one of 64^3 ms. Until then the timer must do no more than an empty one.
  come_to_rest(timer, 300ms);
  EXPECT_EQ(timer.pending_timeouts(), 100'000 / kScale);
}

TEST(HierarchicalTimer, ATimeoutCostsAtMostOneTickPerLevel) {
  Latch ran;
  HierarchicalWheelTimer timer(1ms, 4);
  timer.new_timeout([&] { ran.count_down(); }, 400ms);
  ASSERT_TRUE(ran.wait());
  timer.stop();
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

TEST(HierarchicalTimer, ATimeoutThatMovesDownIsNoLag) {
  std::chrono::nanoseconds before{1};
  Latch ran;
  HierarchicalWheelTimer timer(1ms, 2);
  after(timer, 100ms, [&] {
    before = timer.stats().last_lag;
    ran.count_down();
  });
  ASSERT_TRUE(ran.wait());
  EXPECT_EQ(before, 0ns);
}

/// The node and 6.4 bytes in the wheel.
TEST(HierarchicalTimer, SmallPerPendingTimeout) {
  constexpr int kTimeouts = 500'000 / kScale;
  const std::int64_t before = bytes_in_use;
  HierarchicalWheelTimer timer(1ms);
  std::vector<Timeout> timeouts;
  timeouts.reserve(kTimeouts);
  const std::int64_t around = bytes_in_use - before;
  for (int i = 0; i < kTimeouts; ++i) {
    timeouts.push_back(timer.new_timeout([] {}, 10min + std::chrono::milliseconds(i * std::int64_t{7919} % 600'000)));
    // The queue keeps the memory of its longest backlog; this one is about the timeouts.
    if (i % 1000 == 0) const Gate in_the_wheel(timer);
  }
  await_transfer(timer);
  EXPECT_LE(bytes_in_use - before - around, 72 * std::int64_t{kTimeouts} + (1 << 20));
}

}  // namespace
}  // namespace hwt::test
