// CycleRate on the machine's own cycle counter, and on readings of a counter that has failed. tests/counter has all
// failures in simulated time.

#include "hashed_wheel_timer/internal/time/request_clock.h"

#include "tests/support/test_support.h"

#if defined(__linux__)
#include <unistd.h>

#include <fstream>
#include <string>
#endif

namespace hwt::internal {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

class CycleRateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!rate_.wanted()) GTEST_SKIP() << "the cycle counter is not the clock of this machine";
    // A reading in whose midst the thread was preempted is of no use.
    ASSERT_TRUE(eventually([&] {
      rate_.measure(ClockReading::take());
      return rate_.get() != 0;
    }));
    ASSERT_NE(rate_.window(), 0u);
  }

  /// Compares two readings of which the later one is faulty. The counter is then never used again.
  void expect_fault(const ClockReading& begin, const ClockReading& end) {
    rate_.check(begin, end);
    EXPECT_FALSE(rate_.wanted());
    EXPECT_EQ(rate_.window(), 0u);
    rate_.measure(ClockReading::take());
    EXPECT_EQ(rate_.window(), 0u);
  }
  double nanoseconds_per_cycle() const { return static_cast<double>(rate_.get()) / 4294967296.0; }

  const ClockReading begin_ = ClockReading::take();
  CycleRate rate_{true};
};

TEST_F(CycleRateTest, IsThatOfTheClockRaisedByAThousandth) {
  ASSERT_TRUE(eventually([&] {
    const ClockReading end = ClockReading::take();
    const auto passed = static_cast<double>(end.time - begin_.time);
    const double least = passed / static_cast<double>(end.after - begin_.before);
    const double most = passed / static_cast<double>(end.before - begin_.after);
    if (most > least * 1.0001) return false;  // preempted
    EXPECT_GT(nanoseconds_per_cycle(), least);
    EXPECT_LT(nanoseconds_per_cycle(), most * 1.003);
    return true;
  }));
}

// A reading of a few cycles.
constexpr ClockReading kBegin{.before = 1'000'000, .time = 1'000'000, .after = 1'000'100};

TEST_F(CycleRateTest, ASlowCounterIsNeverUsedAgainAndItsFaultIsRemembered) {
  ClockReading end = kBegin;
  end.time += 2'000'000;  // the counter stood still
  expect_fault(kBegin, end);
  EXPECT_GE(rate_.behind(), 2'000'000);
  EXPECT_LT(rate_.behind(), 2'010'000);
  // There may be no cycle between any two readings.
  const ClockReading still{kBegin.before, kBegin.time, kBegin.before};
  rate_.check(still, {still.before, still.time + 2'090'000, still.before});
  EXPECT_GE(rate_.behind(), 2'090'000);
}

/// No estimate is valid for longer. The counter of this machine runs.
TEST_F(CycleRateTest, TheFaultOfACounterThatRunsAgainIsAWindowAtMost) {
  // The later reading is a true one: check() waits until the clock has gone on from it.
  const ClockReading end = ClockReading::take();
  ClockReading begin = end;
  begin.time -= 3'600'000'000'000;
  expect_fault(begin, end);
  EXPECT_EQ(rate_.behind(), CycleRate::kWindow);
}

/// Two thousandths are no fault: the rate is raised by one, and the clock may run slower by another one.
TEST_F(CycleRateTest, ACounterThatIsFastByTwoAndAHalfThousandthsIsNeverUsedAgain) {
  ClockReading end = kBegin;
  const auto cycles = static_cast<std::uint64_t>(20'000'000 / nanoseconds_per_cycle());
  end.before += cycles;
  end.after += cycles;
  end.time += 19'950'000;
  expect_fault(kBegin, end);
  EXPECT_EQ(rate_.behind(), 0);
}

TEST_F(CycleRateTest, ACounterThatGoesBackIsNeverUsedAgain) {
  ClockReading end = kBegin;
  end.before -= 1'000;
  end.after -= 1'000;
  end.time += 1'000;
  expect_fault(kBegin, end);
  EXPECT_EQ(rate_.behind(), CycleRate::kWindow);
}

#if defined(__linux__) && defined(__x86_64__)
TEST(CycleCounter, IsTheClockIfTheKernelSaysSoAndLeavesNoFileOpen) {
  std::string clock;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> clock;
  const int before = dup(STDERR_FILENO);
  close(before);
  EXPECT_EQ(cycle_counter::is_the_clock(), clock == "tsc");
  const int after = dup(STDERR_FILENO);
  close(after);
  EXPECT_EQ(after, before);
}
#endif

}  // namespace
}  // namespace hwt::internal
