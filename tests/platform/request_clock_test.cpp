// CycleRate on the machine's own cycle counter. tests/counter has its failures in simulated time.

#include "hashed_wheel_timer/internal/time/request_clock.h"

#include "tests/support/test_support.h"

#if defined(__linux__)
#include <unistd.h>

#include <fstream>
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
