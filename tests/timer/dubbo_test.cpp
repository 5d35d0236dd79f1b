// Dubbo's HashedWheelTimerTest, test by test under its own names.

#include <limits>
#include <stdexcept>

#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

TEST(DubboHashedWheelTimerTest, ConstructorTest) {
  EXPECT_NO_THROW(HashedWheelTimer());
  EXPECT_NO_THROW(HashedWheelTimer(100ms));
  EXPECT_NO_THROW(HashedWheelTimer(100ms, 8));
  EXPECT_THROW(HashedWheelTimer(0ms), std::invalid_argument);
  EXPECT_THROW(HashedWheelTimer(100ms, 0), std::invalid_argument);
  EXPECT_THROW(HashedWheelTimer(std::chrono::nanoseconds::max(), 8), std::invalid_argument);
  EXPECT_THROW(HashedWheelTimer(100ms, std::numeric_limits<std::int32_t>::max()), std::invalid_argument);
  testing::internal::CaptureStderr();  // there may be a warning about that many timers
  std::vector<std::unique_ptr<HashedWheelTimer>> timers;
  for (int i = 0; i < 128; ++i) {
    EXPECT_NO_THROW(timers.push_back(std::make_unique<HashedWheelTimer>())) << "never refused, however many";
  }
  testing::internal::GetCapturedStderr();
}

TEST(DubboHashedWheelTimerTest, CreateTaskTest) {
  ErrorLog log;
  HashedWheelTimer timer{
      {.tick_duration = 10ms, .ticks_per_wheel = 8, .max_pending_timeouts = 8, .on_task_error = log.handler()}};
  EXPECT_THROW(timer.new_timeout(std::shared_ptr<TimerTask>(), 10s), std::invalid_argument);

  Timeout failing = timer.new_timeout([] { throw std::runtime_error("test"); }, 10ms);
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_FALSE(failing.cancel());
  EXPECT_FALSE(failing.is_cancelled());
  EXPECT_NE(text_of(failing), "");
  EXPECT_EQ(failing.timer(), &timer);

  Timeout cancelled = timer.new_timeout([] {}, 1000s);
  EXPECT_TRUE(cancelled.cancel());
  EXPECT_TRUE(cancelled.is_cancelled());

  std::vector<Timeout> due_now;
  {
    const Gate gate(timer);  // Dubbo hopes to be faster than a tick
    for (int i = 0; i < 8; ++i) due_now.push_back(timer.new_timeout([] { throw 1; }, -1ms));
    EXPECT_EQ(timer.pending_timeouts(), 8);
    EXPECT_THROW(timer.new_timeout([] {}, -1ms), RejectedExecution);
  }
  EXPECT_TRUE(log.wait_for(9)) << "each of them ran, and failed";
  EXPECT_TRUE(due_now[2].is_expired());
}

TEST(DubboHashedWheelTimerTest, StopTaskTest) {
  Latch ran;
  std::string refusal;
  HashedWheelTimer timer(10ms);
  timer.new_timeout(
      [&](Timeout& timeout) {
        refusal = message_of<IllegalState>([&] { timeout.timer()->stop(); });
        ran.count_down();
      },
      10ms);
  ASSERT_TRUE(ran.wait());
  EXPECT_TRUE(contains(refusal, "stop")) << refusal;

  std::atomic<std::size_t> runs = 0;
  for (int i = 0; i < 8; ++i) timer.new_timeout([&] { ++runs; }, 0ms);
  const std::size_t unprocessed = timer.stop().size();
  EXPECT_EQ(unprocessed + runs, 8U);
  EXPECT_THROW(timer.new_timeout([] {}, 0ms), IllegalState);
}

}  // namespace
}  // namespace hwt
