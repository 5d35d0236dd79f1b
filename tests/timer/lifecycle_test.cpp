// start(), stop() and the destructor, and defects of other timers. In a forked child: fork_test.

#include "tests/support/system.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

/// Also a thread whose first look finds the timer being started, and whose next look finds it started.
TEST(Start, ConcurrentlyMakesOneWorker) {
  for (int round = 0; round < 500; ++round) {
    CountingFactory workers;
    HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = workers.factory()}};
    run_together(4, [&](int thread) {
      if (thread == 0) timer.start();
      if (thread != 0) timer.new_timeout([] {}, kFar);
    });
    EXPECT_EQ(workers.calls(), 1);
    EXPECT_EQ(timer.pending_timeouts(), 3);
  }
}

TEST(Start, FailsForAllCallersThatWaitedAndCanBeRepeated) {
  std::atomic<bool> fail = true;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()> body) {
                            std::this_thread::sleep_for(1ms);
                            if (fail) throw std::runtime_error("no thread");
                            return std::thread(std::move(body));
                          }}};
  std::atomic<int> failures = 0;
  run_together(4, [&](int) { failures += throws<std::runtime_error>([&] { timer.start(); }) ? 1 : 0; });
  EXPECT_EQ(failures, 4);
  fail = false;
  EXPECT_NO_THROW(timer.start());
  EXPECT_NO_THROW(timer.new_timeout([] {}, kFar));
}

TEST(Start, TheWorkerHasAName) {
  std::optional<std::string> name;
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&] { name = thread_name(); }));
  if (!name) GTEST_SKIP() << "the system does not tell";
  EXPECT_EQ(name, "hwt-worker");
}

TEST(Stop, ConcurrentlyAllWaitAndOneGetsTheSet) {
  constexpr std::size_t kStoppers = 4;
  std::array<std::vector<Timeout>, kStoppers> results;
  std::atomic<bool> gate_is_open = false;
  HashedWheelTimer timer(1ms);
  std::vector<Timeout> pending = far_timeouts(timer, 10);
  Gate gate(timer);
  auto stoppers = start_threads(kStoppers, [&](int i) {
    results[static_cast<std::size_t>(i)] = timer.stop();
    EXPECT_TRUE(gate_is_open) << "stop() returned while the worker was in a task";
  });
  wait_until_refusing(timer);
  std::this_thread::sleep_for(20ms);
  gate_is_open = true;
  gate.open();
  stoppers.clear();
  // Without the probes, which were cancelled before the gate opened.
  const auto of_one = std::ranges::find_if(results, [](const auto& result) { return !result.empty(); });
  ASSERT_NE(of_one, results.end());
  EXPECT_TRUE(std::ranges::is_permutation(*of_one, pending));
  EXPECT_EQ(std::ranges::count_if(results, [](const auto& result) { return result.empty(); }), kStoppers - 1);
  EXPECT_EQ(timer.stats().unprocessed, 10);
}

TEST(Stop, ATaskThatStopsOrSchedulesDuringItIsRefusedAndReported) {
  ErrorLog log;
  Hold hold;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
  after(timer, 0ms, [&] {
    hold();
    EXPECT_THROW(timer.stop(), IllegalState);
    timer.new_timeout([] {}, 0ms);
  });
  ASSERT_TRUE(hold.wait_until_entered());
  std::jthread stopper([&] { EXPECT_TRUE(timer.stop().empty()); });
  wait_until_refusing(timer);
  hold.let_go();
  stopper.join();
  EXPECT_EQ(log.errors(), std::vector<std::string>{"new_timeout: the timer has been stopped"});
}

TEST(Stop, FromAnExecutorThreadOrATaskOfAnotherTimer) {
  std::atomic<std::size_t> unprocessed = 0;
  ThreadPerJob pool;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = pool.executor()}};
  HashedWheelTimer victim(1ms);
  for (Timer* const stopped : {static_cast<Timer*>(&victim), static_cast<Timer*>(&timer)}) {
    stopped->new_timeout([] {}, kFar);
    ASSERT_TRUE(ran_in_task(timer, [&, stopped] { unprocessed += stopped->stop().size(); }));
    EXPECT_THROW(stopped->new_timeout([] {}, 0ns), IllegalState);
  }
  HashedWheelTimer other(1ms);
  other.new_timeout([] {}, kFar);
  HashedWheelTimer stopping(1ms);
  ASSERT_TRUE(ran_in_task(stopping, [&] { unprocessed += other.stop().size(); }));
  EXPECT_EQ(unprocessed, 3U);
}

TEST(Destructor, InsideATaskOnTheWorker) {
  CountingFactory workers;
  Latch gone;
  const auto task = std::make_shared<RecordingTask>();
  std::atomic<int> later_runs = 0;
  const auto of_options = std::make_shared<int>();
  auto timer = std::make_unique<HashedWheelTimer>(
      Options{.tick_duration = 1ms, .thread_factory = workers.factory(), .on_task_error = [of_options](auto&&...) {}});
  timer->new_timeout(task, kFar);
  {
    const Gate gate(*timer);
    after(*timer, 0ms, [&](Timeout& self) {
      timer.reset();
      EXPECT_EQ(self.timer(), nullptr);
      EXPECT_TRUE(self.is_expired());
      gone.count_down();
    });
    for (int i = 0; i < 5; ++i) timer->new_timeout([&] { ++later_runs; }, 0ms);
  }
  ASSERT_TRUE(gone.wait());
  ASSERT_TRUE(workers.wait_until_ended());
  EXPECT_EQ(later_runs, 0) << "due in the same tick, behind the one that destroyed the timer";
  EXPECT_EQ(task->cancellations, 1);
  EXPECT_EQ(task.use_count(), 1);
  EXPECT_EQ(of_options.use_count(), 1);
}

TEST(Destructor, InsideCancelledOnTheWorker) {
  CountingFactory workers;
  auto timer = std::make_unique<HashedWheelTimer>(Options{.tick_duration = 1ms, .thread_factory = workers.factory()});
  const auto other = std::make_shared<RecordingTask>();
  Timeout timeout = timer->new_timeout(on_cancelled([&] { timer.reset(); }), kFar);
  timer->new_timeout(other, kFar);
  EXPECT_TRUE(timeout.cancel());
  ASSERT_TRUE(workers.wait_until_ended());
  EXPECT_EQ(timeout.timer(), nullptr);
  EXPECT_EQ(other->cancellations, 1);
}

// Defects of Netty's and Dubbo's HashedWheelTimer that this one does not share, numbered as they were found. These have
// tests in other files:
//   D2   a thread that cannot start            ThreadFactory.ItsExceptionReachesTheCallerAndTheTimerStaysUsable
//   D3   a timeout lost in a race with stop()  Conformance.ATimeoutThatRacesStopIsRefusedOrReturned
//   D5   a pending count that leaks            Promise9.StatsBalance
//   D6   a wrong count of timers               LiveTimersDeathTest.DefectD6_FailedConstructorsAreNotCounted
//   D8   a wheel that is too large             Constructor.ARefusalNamesTheOptionItsValueAndTheRange
//   D10  stop() does not call the hook         Conformance.StopReturnsPendingTimeoutsCancelledAndRefusesFromThenOn
//   D13  stop() runs the rest of the bucket    Conformance.StopWaitsForTheTaskThatRunsAndNoFurtherOneStarts
//   D14  an error handler that throws          MessageOfAnException.NamesOnTaskErrorAndCountsNoLineAsLeftOut
//   D15  a task that the executor refuses      Promise8.NoExceptionEndsTheWorker
//   D16  a flood of cancels starves others     UnderAFlood.OfThreadsThatScheduleAndCancelATimeoutIsPunctual
//   D17  the text of a far deadline            Handle.PrintsTheTimeUntilTheDeadlineOrThatItNeverComes
//   D18  tasks kept after stop()               TaskLifetime.ATimeoutThatStopReturnsCanBeRun
// D11 (start() swallows an interrupt) has no counterpart in C++.

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

/// Also if the start fails then.
TEST(Defects, DefectD4_StopDuringStartLeavesNoWorkerBehind) {
  for (const bool fails : {false, true}) {
    Hold hold;
    CountingFactory workers;
    std::atomic<int> runs = 0;
    std::atomic<bool> stopped = false;
    HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()> body) {
                              hold();
                              if (fails) throw std::runtime_error("no thread");
                              return workers.factory()(std::move(body));
                            }}};
    Timeout accepted;
    std::vector<Timeout> unprocessed;
    {
      const auto task = [&] {
        ++runs;
        EXPECT_FALSE(stopped);
      };
      std::jthread starter([&] { accepted = timer.try_new_timeout(task, 0ms); });
      ASSERT_TRUE(hold.wait_until_entered());
      std::jthread stopper([&] {
        unprocessed = timer.stop();
        stopped = true;
      });
      std::this_thread::sleep_for(20ms);
      EXPECT_FALSE(stopped) << "stop() waits for the start";
      hold.let_go();
    }
    EXPECT_EQ(static_cast<std::size_t>(runs) + unprocessed.size(), accepted ? 1U : 0U);
    EXPECT_FALSE(fails && accepted);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_THROW(timer.start(), IllegalState);
    EXPECT_TRUE(workers.calls() == 0 || workers.wait_until_ended());
  }
}

TEST(Defects, DefectD7_CancelledInItsBucketIsSubtractedOnce) {
  std::vector<Timeout> same_bucket;
  Latch all_scheduled;
  HashedWheelTimer timer{Options{.tick_duration = 20ms, .max_pending_timeouts = 11}};  // ends before those
  const auto deadline = steady_clock::now() + 1s;
  timer.new_timeout(
      [&] {
        EXPECT_TRUE(all_scheduled.wait());
        std::jthread([&] { cancel_all(same_bucket); }).join();
      },
      deadline);
  same_bucket = far_timeouts(timer, 10, deadline);
  all_scheduled.count_down();
  EXPECT_TRUE(none_pending(timer));
  int accepted = 0;
  while (accepted < 100 && timer.try_new_timeout([] {}, kFar)) ++accepted;
  EXPECT_EQ(accepted, 11) << "the limit is as it was";
}

TEST(Defects, DefectD12_StopAndTheDestructorWaitForARunningTaskAndDoNotDisturbIt) {
  for (const bool stops : {true, false}) {
    Latch running;
    std::atomic<bool> slept = false;
    std::optional<HashedWheelTimer> timer(1ms);
    after(*timer, 0ms, [&] {
      running.count_down();
      slept = slept_undisturbed(50ms);
    });
    ASSERT_TRUE(running.wait());
    stops ? static_cast<void>(timer->stop()) : timer.reset();
    EXPECT_TRUE(slept);
  }
}

}  // namespace
}  // namespace hwt::test
