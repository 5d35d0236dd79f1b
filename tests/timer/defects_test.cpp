// Defects of Netty's and Dubbo's HashedWheelTimer that this one does not share, numbered as they were found. These have
// tests in other files:
//   D2   a thread that cannot start            ThreadFactory.ItsExceptionReachesTheCallerAndTheTimerStaysUsable
//   D3   a timeout lost in a race with stop()  Conformance.ATimeoutThatRacesStopIsRefusedOrReturned
//   D5   a pending count that leaks            Promise9.StatsBalance
//   D6   a wrong count of timers               LiveTimersDeathTest.DefectD6_FailedConstructorsAreNotCounted
//   D8   a wheel that is too large             Constructor.TicksPerWheelMustBeInRange
//   D10  stop() does not call the hook         Conformance.StopReturnsPendingTimeoutsCancelledAndRefusesFromThenOn
//   D13  stop() runs the rest of the bucket    Conformance.StopWaitsForTheTaskThatRunsAndNoFurtherOneStarts
//   D14  an error handler that throws          MessageOfAnException.NamesOnTaskErrorAndCountsNoLineAsLeftOut
//   D15  a task that the executor refuses      Promise8.NoExceptionEndsTheWorker
//   D16  a flood of cancels starves others     UnderAFlood.OfTwoThreadsThatScheduleAndCancelATimeoutIsPunctual
//   D17  the text of a far deadline            Handle.PrintsThatADeadlineNeverComes
//   D18  tasks kept after stop()               TaskLifetime.ATimeoutThatStopReturnsCanBeRun
// D11 (start() swallows an interrupt) has no counterpart in C++.

#include "tests/support/system.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

TEST(Defects, DefectD1_StartRacingStopNeverHangs) {
  for (int round = 0; round < 300; ++round) {
    HashedWheelTimer timer(1ms, 8);
    run_together(3, [&](int thread) {
      try {
        if (thread == 0) timer.stop();
        if (thread == 1) timer.start();
        if (thread == 2) timer.new_timeout([] {}, kFar);
      } catch (const IllegalState&) {
      }
    });
    EXPECT_THROW(timer.start(), IllegalState);
  }
}

TEST(Defects, DefectD4_StopDuringStartLeavesNoWorkerBehind) {
  Hold hold;
  CountingFactory workers;
  std::atomic<int> runs = 0;
  std::atomic<bool> stopped = false;
  std::atomic<int> ran_after_stop = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()> body) {
                            hold();
                            return workers.factory()(std::move(body));
                          }}};
  Timeout accepted;
  std::vector<Timeout> unprocessed;
  {
    std::jthread starter([&] {
      accepted = timer.try_new_timeout(
          [&] {
            ++runs;
            if (stopped) ++ran_after_stop;
          },
          0ms);
    });
    ASSERT_TRUE(hold.wait_until_entered());
    std::jthread stopper([&] {
      unprocessed = timer.stop();
      stopped = true;
    });
    std::this_thread::sleep_for(20ms);
    hold.let_go();
  }
  EXPECT_EQ(static_cast<std::size_t>(runs) + unprocessed.size(), accepted ? 1U : 0U);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(ran_after_stop, 0);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_THROW(timer.start(), IllegalState);
  EXPECT_TRUE(workers.calls() == 0 || workers.wait_until_ended());
}

TEST(Defects, DefectD7_CancelledInItsBucketIsSubtractedOnce) {
  Hold hold;
  HashedWheelTimer timer{{.tick_duration = 20ms, .max_pending_timeouts = 11}};
  timer.new_timeout([&] { hold(); }, 60ms);
  std::vector<Timeout> same_bucket = far_timeouts(timer, 10, 60ms);
  ASSERT_TRUE(hold.wait_until_entered());
  for (Timeout& timeout : same_bucket) EXPECT_TRUE(timeout.cancel());
  hold.let_go();
  {
    const Gate bucket_was_walked(timer);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    int accepted = 0;
    while (accepted < 100 && timer.try_new_timeout([] {}, kFar)) ++accepted;
    EXPECT_EQ(accepted, 11) << "the limit is as it was";
  }
}

/// Dubbo on Windows sleeps for 0 ms in a loop.
TEST(Defects, DefectD9_WaitingForATickDoesNotSpin) {
  HashedWheelTimer timer(1ms);
  for (int i = 1; i < 100; ++i) timer.new_timeout([] {}, i * 5ms);
  const double before = processor_seconds();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(processor_seconds() - before, 0.2) << "of processor time in 0.3 s";
}

TEST(Defects, DefectD12_StopDoesNotDisturbARunningTask) {
  Latch running;
  std::atomic<bool> slept = false;
  HashedWheelTimer timer(1ms);
  after(timer, 0ms, [&] {
    running.count_down();
    slept = slept_undisturbed(50ms);
  });
  ASSERT_TRUE(running.wait());
  timer.stop();
  EXPECT_TRUE(slept) << "stop() waited until the task had slept its time";
}

}  // namespace
}  // namespace hwt::test
