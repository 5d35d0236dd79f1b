// Defects of Netty's and Dubbo's HashedWheelTimer that this one does not share, numbered as they were found.
// D6 is in constructor_test.cpp. D11 (start() swallows an interrupt) has no counterpart in C++.

#include <array>
#include <stdexcept>

#include "tests/support/system.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

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

TEST(Defects, DefectD2_AFailedThreadStartLeavesTheTimerUsable) {
  std::atomic<bool> out_of_threads = true;
  Latch ran;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()> body) {
                            if (out_of_threads) throw std::runtime_error("out of threads");
                            return std::thread(std::move(body));
                          }}};
  for (int i = 0; i < 3; ++i) EXPECT_THROW(timer.new_timeout([] {}, kFar), std::runtime_error);
  out_of_threads = false;
  timer.new_timeout([&] { ran.count_down(); }, 0ms);
  EXPECT_TRUE(ran.wait());
}

/// The deterministic part; Races.StopAgainstNewTimeout is the hunt.
TEST(Defects, DefectD3_NewTimeoutRacingStopIsNeverLost) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> runs = 0;
    HashedWheelTimer timer(1ms);
    timer.start();
    Timeout accepted;
    std::vector<Timeout> unprocessed;
    run_together(2, [&](int thread) {
      if (thread == 0) unprocessed = timer.stop();
      if (thread == 1) accepted = timer.try_new_timeout([&] { ++runs; }, 0ms);
    });
    const std::size_t fates = static_cast<std::size_t>(runs) + unprocessed.size();
    ASSERT_EQ(fates, accepted ? 1U : 0U);
    ASSERT_TRUE(unprocessed.empty() || unprocessed.front() == accepted);
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
  EXPECT_TRUE(workers.calls() == 0 || workers.wait_until_ended());
}

TEST(Defects, DefectD5_RefusedTimeoutsLeaveNoCount) {
  HashedWheelTimer timer{{.max_pending_timeouts = 2}};
  for (int i = 0; i < 10; ++i) timer.try_new_timeout([] {}, kFar);
  EXPECT_EQ(timer.pending_timeouts(), 2);
  timer.stop();
  EXPECT_EQ(timer.pending_timeouts(), 0) << "what stop() returned is no longer pending";
  for (int i = 0; i < 10; ++i) EXPECT_THROW(timer.new_timeout([] {}, kFar), IllegalState);  // never RejectedExecution
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(Defects, DefectD7_CancelledInItsBucketIsSubtractedOnce) {
  Hold hold;
  HashedWheelTimer timer{{.tick_duration = 20ms, .max_pending_timeouts = 11}};
  timer.new_timeout([&] { hold(); }, 60ms);
  std::vector<Timeout> same_bucket;
  for (int i = 0; i < 10; ++i) same_bucket.push_back(timer.new_timeout([] {}, 60ms));
  ASSERT_TRUE(hold.wait_until_entered());
  for (Timeout& timeout : same_bucket) timeout.cancel();
  hold.let_go();
  {
    const Gate bucket_was_walked(timer);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    int accepted = 0;
    while (accepted < 100 && timer.try_new_timeout([] {}, kFar)) ++accepted;
    EXPECT_EQ(accepted, 11) << "the limit is as it was";
  }
}

TEST(Defects, DefectD8_TooManyTicksPerWheelIsAnArgumentError) {
  EXPECT_THROW(HashedWheelTimer(1ms, (std::int64_t{1} << 30) + 1), std::invalid_argument);
  EXPECT_THROW(HashedWheelTimer(1ms, std::int64_t{1} << 62), std::invalid_argument);
}

/// Dubbo on Windows sleeps for 0 ms in a loop.
TEST(Defects, DefectD9_WaitingForATickDoesNotSpin) {
  HashedWheelTimer timer(1ms);
  for (int i = 1; i < 100; ++i) timer.new_timeout([] {}, i * 5ms);
  const double before = processor_seconds();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(processor_seconds() - before, 0.2) << "of processor time in 0.3 s";
}

TEST(Defects, DefectD10_TheCancelledHookRunsForThoseThatStopCancels) {
  const auto in_wheel = std::make_shared<RecordingTask>();
  const auto in_queue = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1ms);
  timer.new_timeout(in_wheel, kFar);
  await_transfer(timer);
  timer.new_timeout(in_queue, kFar);
  EXPECT_EQ(timer.stop().size(), 2U);
  for (const auto& task : {in_wheel, in_queue}) {
    EXPECT_EQ(task->cancellations, 1) << "before stop() returned";
    EXPECT_TRUE(task->saw_cancelled);
    EXPECT_EQ(task->runs, 0);
  }
}

TEST(Defects, DefectD12_StopDoesNotDisturbARunningTask) {
  Latch running;
  std::atomic<bool> slept = false;
  HashedWheelTimer timer(1ms);
  timer.new_timeout(
      [&] {
        running.count_down();
        slept = slept_undisturbed(50ms);
      },
      0ms);
  ASSERT_TRUE(running.wait());
  timer.stop();
  EXPECT_TRUE(slept) << "stop() waited until the task had slept its time";
}

TEST(Defects, DefectD13_StopDoesNotWaitForTheOthersOfTheBucket) {
  std::atomic<int> runs = 0;
  HashedWheelTimer timer(1ms);
  std::vector<Timeout> unprocessed;
  Hold hold;
  {
    const Gate gate(timer);
    timer.new_timeout([&] { hold(); }, 0ms);
    for (int i = 0; i < 5; ++i) timer.new_timeout([&] { ++runs; }, 0ms);
  }
  ASSERT_TRUE(hold.wait_until_entered());
  std::jthread stopper([&] { unprocessed = timer.stop(); });
  wait_until_refusing(timer);
  hold.let_go();
  stopper.join();
  EXPECT_EQ(runs, 0) << "no task starts once stop() was requested";
  EXPECT_EQ(unprocessed.size(), 5U);
}

TEST(Defects, DefectD14_TheWorkerSurvivesAnErrorHandlerThatThrows) {
  testing::internal::CaptureStderr();  // such an error is logged, as if there was no handler
  Latch ran;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = [](std::exception_ptr error, const Timeout&) {
                            std::rethrow_exception(std::move(error));
                          }}};
  for (int i = 0; i < 3; ++i) timer.new_timeout([] { throw std::runtime_error("task"); }, 0ms);
  timer.new_timeout([&] { ran.count_down(); }, 1ms);
  EXPECT_TRUE(ran.wait());
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(timer.stats().task_errors, 3);
}

TEST(Defects, DefectD15_ATaskThatTheExecutorRefusesStillRuns) {
  ErrorLog log;
  Latch ran;
  std::atomic<std::thread::id> ran_on{};
  HashedWheelTimer timer{{.tick_duration = 1ms,
                          .executor = [](const std::function<void()>&) { throw std::runtime_error("queue full"); },
                          .on_task_error = log.handler()}};
  const Timeout timeout = timer.new_timeout(
      [&] {
        ran_on = std::this_thread::get_id();
        ran.count_down();
      },
      0ms);
  ASSERT_TRUE(ran.wait());
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_EQ(log.errors(), std::vector<std::string>{"queue full"});
  EXPECT_EQ(log.timeouts(), std::vector<Timeout>{timeout});
  EXPECT_EQ(ran_on, log.threads().front()) << "on the worker, which is where the executor threw";
}

TEST(Defects, DefectD16_AFloodOfCancellationsDoesNotStarveTheOthers) {
  std::atomic<bool> over = false;
  Latch done(50);
  HashedWheelTimer timer(1ms, 16);
  std::vector<std::jthread> flood;
  for (int thread = 0; thread < 2; ++thread) {
    flood.emplace_back([&] {
      while (!over) {
        std::array<Timeout, 64> timeouts;
        for (Timeout& timeout : timeouts) timeout = timer.new_timeout([] {}, 100ms);
        for (Timeout& timeout : timeouts) timeout.cancel();
      }
    });
  }
  for (int i = 0; i < 50; ++i) timer.new_timeout([&] { done.count_down(); }, i * 2ms);
  EXPECT_TRUE(done.wait()) << "with the flood still going on";
  over = true;
}

TEST(Defects, DefectD17_ExtremeDelaysPrintSensibly) {
  HashedWheelTimer timer(1ms);
  const Gate gate(timer);  // none of them runs
  const Timeout past = timer.new_timeout([] {}, std::chrono::nanoseconds::min());
  const Timeout never = timer.new_timeout([] {}, std::chrono::nanoseconds::max());
  EXPECT_TRUE(contains(text_of(past), "ago") || contains(text_of(past), "now")) << text_of(past);
  EXPECT_TRUE(contains(text_of(never), "deadline: never)")) << text_of(never);
  EXPECT_FALSE(contains(text_of(never), "-")) << text_of(never);
}

TEST(Defects, DefectD18_AStoppedTimerKeepsNoTasks) {
  const auto resource = std::make_shared<int>();
  const auto task = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1ms);
  timer.new_timeout([resource] {}, kFar);
  timer.new_timeout(task, kFar);
  await_transfer(timer);
  timer.new_timeout([resource] {}, kFar);
  timer.new_timeout(task, kFar);
  timer.new_timeout(task, kFar).cancel();
  timer.stop();  // and nobody wants the result
  EXPECT_EQ(resource.use_count(), 1);
  EXPECT_EQ(task.use_count(), 1);
  EXPECT_EQ(task->cancellations, 3);
}

}  // namespace
}  // namespace hwt
