// SOFAJRaft's own tests of RepeatedTimer. Theirs sleep and allow 3 triggers more or less; here the clock is exact.

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

class JRaftRepeatedTimer : public ::testing::Test {
 protected:
  ManualTimer clock_;
  int triggers_ = 0;
  int destroyed_ = 0;
  std::chrono::nanoseconds adjusted_ = 0ns;  // 0: not
  RepeatedTimer timer_{"test",
                       50ms,
                       clock_,
                       {.on_trigger = [this] { ++triggers_; },
                        .adjust_timeout = [this](auto timeout) { return adjusted_ == 0ns ? timeout : adjusted_; },
                        .on_destroy = [this] { ++destroyed_; }}};
};

TEST_F(JRaftRepeatedTimer, StartTrigger) {
  timer_.start();
  clock_.advance(1s);
  EXPECT_EQ(triggers_, 20);
}

TEST_F(JRaftRepeatedTimer, StopStart) {
  timer_.start();
  clock_.advance(1s);
  EXPECT_EQ(triggers_, 20);
  timer_.stop();
  clock_.advance(1s);
  EXPECT_EQ(triggers_, 20);
  timer_.start();
  clock_.advance(1s);
  EXPECT_EQ(triggers_, 40);
}

TEST_F(JRaftRepeatedTimer, RunOnce) {
  timer_.start();
  EXPECT_TRUE(timer_.run_once_now());
  EXPECT_EQ(triggers_, 1);
  clock_.advance(1s);
  EXPECT_EQ(triggers_, 1 + 20);
}

TEST_F(JRaftRepeatedTimer, Destroy) {
  timer_.start();
  clock_.advance(100ms);
  EXPECT_EQ(destroyed_, 0);
  timer_.destroy();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(JRaftRepeatedTimer, AdjustTimeout) {
  adjusted_ = 100ms;
  timer_.start();
  clock_.advance(1s);
  EXPECT_EQ(triggers_, 10);
}

TEST_F(JRaftRepeatedTimer, Reset) {
  timer_.start();
  EXPECT_EQ(timer_.timeout(), 50ms);
  for (int i = 0; i < 10; ++i) {
    clock_.advance(80ms);
    timer_.reset();
  }
  EXPECT_EQ(triggers_, 10) << "once in each 80 ms";
  timer_.reset(100ms);
  EXPECT_EQ(timer_.timeout(), 100ms);
  for (int i = 0; i < 10; ++i) {
    clock_.advance(80ms);
    timer_.reset();
  }
  EXPECT_EQ(triggers_, 10) << "put off each time before it was due";
}

}  // namespace
}  // namespace hwt
