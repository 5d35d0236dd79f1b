// Netty's HashedWheelTimerTest, test by test under its own names. Times are shorter where the meaning allows it.

#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

TEST(NettyHashedWheelTimerTest, ScheduleTimeoutShouldNotRunBeforeDelay) {
  Latch barrier;
  HashedWheelTimer timer;
  const Timeout timeout = timer.new_timeout([&] { barrier.count_down(); }, 10s);
  EXPECT_FALSE(barrier.wait(300ms));  // three ticks
  EXPECT_FALSE(timeout.is_expired()) << "timer should not expire";
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, ScheduleTimeoutShouldRunAfterDelay) {
  Latch barrier;
  HashedWheelTimer timer;
  const auto start = steady_clock::now();
  const Timeout timeout = timer.new_timeout([&] { barrier.count_down(); }, 200ms);
  ASSERT_TRUE(barrier.wait());
  EXPECT_GE(steady_clock::now() - start, 200ms);
  EXPECT_TRUE(timeout.is_expired()) << "timer should expire";
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, StopTimer) {
  Latch latch(3);
  HashedWheelTimer processed;
  for (int i = 0; i < 3; ++i) processed.new_timeout([&] { latch.count_down(); }, 1ms);
  ASSERT_TRUE(latch.wait());
  EXPECT_EQ(processed.stop().size(), 0U) << "number of unprocessed timeouts should be 0";

  HashedWheelTimer unprocessed;
  for (int i = 0; i < 5; ++i) unprocessed.new_timeout([] {}, kFar);
  EXPECT_EQ(unprocessed.stop().size(), 5U);
}

TEST(NettyHashedWheelTimerTest, TimerShouldThrowExceptionAfterShutdownForNewTimeouts) {
  Latch latch(3);
  HashedWheelTimer timer;
  for (int i = 0; i < 3; ++i) timer.new_timeout([&] { latch.count_down(); }, 1ms);
  ASSERT_TRUE(latch.wait());
  timer.stop();
  EXPECT_THROW(timer.new_timeout([] {}, 1ms), IllegalState);
}

TEST(NettyHashedWheelTimerTest, TimerOverflowWheelLength) {
  Latch rounds(40);
  std::atomic<std::size_t> refused = 0;
  std::function<void(Timeout&)> again = [&](Timeout& timeout) {
    if (!timeout.timer()->try_new_timeout(again, 1ms)) ++refused;  // stop() has begun during this task
    rounds.count_down();
  };
  HashedWheelTimer timer(1ms, 32);
  timer.new_timeout(again, 1ms);
  ASSERT_TRUE(rounds.wait());  // more than one revolution
  const std::size_t unprocessed = timer.stop().size();
  EXPECT_EQ(unprocessed + refused, 1U) << "the last one was pending, or its task was running";
}

TEST(NettyHashedWheelTimerTest, ExecutionOnTime) {
  constexpr auto kTick = 200ms;
  constexpr auto kDelay = 125ms;
  constexpr int kScheduled = kSanitized ? 10'000 : 100'000;
  Latch done(kScheduled);
  std::atomic<int> too_early = 0;
  std::atomic<std::int64_t> latest = 0;
  HashedWheelTimer timer(kTick);
  const auto first = steady_clock::now();
  for (int i = 0; i < kScheduled; ++i) {
    const auto start = steady_clock::now();
    after(timer, kDelay, [&, start] {
      const auto delay = steady_clock::now() - start;
      if (delay < kDelay) ++too_early;
      if (delay.count() > latest) latest = delay.count();
      done.count_down();
    });
  }
  ASSERT_TRUE(done.wait());
  timer.stop();
  EXPECT_EQ(too_early, 0);
  EXPECT_LT(latest, std::chrono::nanoseconds(2 * (kTick + kDelay) + 30s).count()) << "30 s for a busy machine";
  EXPECT_GE(steady_clock::now() - first, kDelay);
}

TEST(NettyHashedWheelTimerTest, ExecutionOnTaskExecutor) {
  Latch ran;
  Latch executed;
  const auto caller_runs = [&](const std::function<void()>& job) {
    job();
    executed.count_down();
  };
  HashedWheelTimer timer{{.ticks_per_wheel = 32, .max_pending_timeouts = 2, .executor = caller_runs}};
  timer.new_timeout([&] { ran.count_down(); }, 10ms);
  EXPECT_TRUE(ran.wait());
  EXPECT_TRUE(executed.wait());
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, RejectedExecutionExceptionWhenTooManyTimeoutsAreAddedBackToBack) {
  HashedWheelTimer timer{{.ticks_per_wheel = 32, .max_pending_timeouts = 2}};
  timer.new_timeout([] {}, kFar);
  timer.new_timeout([] {}, kFar);
  EXPECT_THROW(timer.new_timeout([] {}, 1ms), RejectedExecution);
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, NewTimeoutShouldStopThrowingRejectedExecutionExceptionWhenExistingTimeoutIsCancelled) {
  Latch second;
  HashedWheelTimer timer{{.tick_duration = 100ms, .ticks_per_wheel = 32, .max_pending_timeouts = 2}};
  timer.new_timeout([] {}, kFar);
  Timeout to_cancel = timer.new_timeout([] {}, kFar);
  EXPECT_TRUE(to_cancel.cancel());
  timer.new_timeout([&] { second.count_down(); }, 90ms);  // at once: Netty has to wait for a tick here
  EXPECT_TRUE(second.wait());
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, NewTimeoutShouldStopThrowingRejectedExecutionExceptionWhenExistingTimeoutIsExecuted) {
  Latch first;
  Latch second;
  HashedWheelTimer timer{{.tick_duration = 25ms, .ticks_per_wheel = 4, .max_pending_timeouts = 2}};
  timer.new_timeout([] {}, kFar);
  timer.new_timeout([&] { first.count_down(); }, 90ms);
  ASSERT_TRUE(first.wait());
  EXPECT_NO_THROW(timer.new_timeout([&] { second.count_down(); }, 90ms));
  EXPECT_TRUE(second.wait());
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, ReportPendingTimeouts) {
  Latch latch;
  HashedWheelTimer timer;
  Timeout t1 = timer.new_timeout([] {}, 100min);
  Timeout t2 = timer.new_timeout([] {}, 100min);
  const Timeout t3 = timer.new_timeout([&] { latch.count_down(); }, 500ms);
  EXPECT_TRUE(timer.pending_timeouts() == 3 || t3.is_expired()) << "on a machine that took 500 ms to come here";
  t1.cancel();
  t2.cancel();
  ASSERT_TRUE(latch.wait());
  EXPECT_EQ(timer.pending_timeouts(), 0);
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, Overflow) {
  Latch latch;
  HashedWheelTimer timer(1ms);
  Timeout timeout = timer.new_timeout([&] { latch.count_down(); }, std::chrono::milliseconds::max());
  EXPECT_FALSE(latch.wait(100ms));  // a hundred ticks
  EXPECT_TRUE(timeout.cancel());
  timer.stop();
}

TEST(NettyHashedWheelTimerTest, StopTimerCancelsPendingTasks) {
  HashedWheelTimer timer;
  for (int i = 0; i < 5; ++i) timer.new_timeout([] {}, kFar);
  const std::vector<Timeout> unprocessed = timer.stop();
  EXPECT_EQ(unprocessed.size(), 5U);
  for (const Timeout& timeout : unprocessed) {
    EXPECT_TRUE(timeout.is_cancelled()) << "all unprocessed tasks should be cancelled";
  }
}

TEST(NettyHashedWheelTimerTest, PendingTimeoutsShouldBeCountedCorrectlyWhenTimeoutCancelledWithinGoalTick) {
  Hold hold;
  Latch two_ticks_later;
  HashedWheelTimer timer(20ms);
  timer.new_timeout([&] { hold(); }, 200ms);
  std::vector<Timeout> timeouts = far_timeouts(timer, 10, 200ms);
  ASSERT_TRUE(hold.wait_until_entered());
  for (Timeout& timeout : timeouts) timeout.cancel();
  hold.let_go();
  timer.new_timeout([&] { two_ticks_later.count_down(); }, 40ms);
  ASSERT_TRUE(two_ticks_later.wait());
  EXPECT_EQ(timer.pending_timeouts(), 0);
  timer.stop();
}

/// Has no @Test annotation in Netty 4.2 and is never run there.
TEST(NettyHashedWheelTimerTest, CancelWillCallCallback) {
  const auto task = std::make_shared<RecordingTask>();
  HashedWheelTimer timer;
  Timeout timeout = timer.new_timeout(task, kFar);
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_TRUE(timeout.cancel());
  EXPECT_TRUE(task->was_cancelled.wait());
  EXPECT_EQ(task->runs, 0);
}

// Dubbo's HashedWheelTimerTest, test by test under its own names.

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
  after(timer, 10ms, [&](Timeout& timeout) {
    refusal = message_of<IllegalState>([&] { timeout.timer()->stop(); });
    ran.count_down();
  });
  ASSERT_TRUE(ran.wait());
  EXPECT_TRUE(contains(refusal, "stop")) << refusal;

  std::atomic<std::size_t> runs = 0;
  for (int i = 0; i < 8; ++i) timer.new_timeout([&] { ++runs; }, 0ms);
  const std::size_t unprocessed = timer.stop().size();
  EXPECT_EQ(unprocessed + runs, 8U);
  EXPECT_THROW(timer.new_timeout([] {}, 0ms), IllegalState);
}

}  // namespace
}  // namespace hwt::test
