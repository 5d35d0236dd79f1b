// LoopTimer: its own promises, besides those of every Timer, which conformance_test checks.

#include "hashed_wheel_timer/loop_timer.h"

#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

void run_until(LoopTimer& timer, const bool& done) {
  while (!done) turn(timer);
}

/// The last call of run_due() was 50 ms ago, as in a loop that sleeps.
TEST(LoopTimer, AfterALongSleepADelayCountsFromTheCall) {
  std::optional<steady_clock::time_point> ran_at;
  const auto note = [&] { ran_at = steady_clock::now(); };
  LoopTimer timer{1ms};
  KeyedTimer<int, int> keyed(timer, [&](int, int&) { note(); });
  Timeout far = timer.new_timeout(note, kFar);
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { std::jthread([&] { timer.new_timeout(note, 30ms); }).join(); },
           [&] { EXPECT_TRUE(far.reschedule(30ms)); }, [&] { (void)keyed.set(1, 1, 30ms); }}) {
    timer.run_due();
    std::this_thread::sleep_for(50ms);
    ran_at.reset();
    const auto deadline = steady_clock::now() + 30ms;
    call();
    while (!ran_at) turn(timer);
    EXPECT_GE(*ran_at, deadline);
  }
}

TEST(LoopTimer, RunDueReturnsWhenToCallItAgain) {
  LoopTimer timer{1ms};
  EXPECT_EQ(timer.run_due(), std::nullopt);
  const auto deadline = steady_clock::now() + kFar;
  timer.new_timeout([] {}, deadline + 1h);
  Timeout first = timer.new_timeout([] {}, deadline);
  EXPECT_LE(timer.run_due(), deadline + 1ms);
  EXPECT_GT(timer.run_due(), steady_clock::now());
  timer.stop();
  EXPECT_EQ(timer.run_due(), std::nullopt);
}

TEST(LoopTimer, RunDueRunsAtMostMaxTasksAndComesBackAtOnceForTheRest) {
  LoopTimer timer{1ms};
  int runs = 0;
  const auto deadline = steady_clock::now();
  for (int i = 0; i < 10; ++i) timer.new_timeout([&] { ++runs; }, deadline);
  while (runs == 0) timer.run_due(4);
  EXPECT_EQ(runs, 4);
  EXPECT_LE(timer.run_due(0), steady_clock::now());
  timer.run_due(4);
  EXPECT_EQ(runs, 8);
  EXPECT_EQ(timer.run_due(), std::nullopt);
  EXPECT_EQ(runs, 10);
}

TEST(LoopTimer, WithoutOnEarlierALoopFindsTimeoutsOfItsOwnHandlers) {
  LoopTimer timer{1ms};
  EXPECT_EQ(timer.run_due(), std::nullopt);
  const auto task = std::make_shared<RecordingTask>();
  Timeout timeout = timer.new_timeout(task, kFar);
  EXPECT_TRUE(timer.run_due());
  timeout.cancel();
  timer.run_due();
  EXPECT_EQ(task->cancellations, 1);
  bool ran = false;
  timer.new_timeout([&] { timer.new_timeout([&] { ran = true; }, 0s); }, 0s);
  while (!ran) {
    const auto next = timer.run_due();
    ASSERT_TRUE(next || ran) << "a loop would sleep without end";
  }
}

/// run_due() finds those timeouts before it returns.
TEST(LoopTimer, OnEarlierIsNotCalledForWhatTasksScheduleInRunDue) {
  int calls = 0;
  bool ran = false;
  LoopTimer timer{1ms};
  timer.on_earlier([&] { ++calls; });
  timer.new_timeout(
      [&] {
        timer.new_timeout([] {}, steady_clock::time_point::min());
        ran = true;
      },
      10ms);
  timer.run_due();
  calls = 0;
  run_until(timer, ran);
  EXPECT_EQ(calls, 0);
}

/// A loop without other work can end when no timeout is pending.
TEST(LoopTimer, OnEarlierIsCalledWhenTheLastPendingTimeoutOfALimitedTimerIsCancelled) {
  int calls = 0;
  LoopTimer timer(Options{.tick_duration = 1ms, .max_pending_timeouts = 10});
  timer.on_earlier([&] { ++calls; });
  const TimeoutId first = timer.add([] {}, kFar);
  EXPECT_GT(timer.run_due(), steady_clock::now() + 1min);
  const TimeoutId last = timer.add([] {}, 2 * kFar);
  calls = 0;
  EXPECT_EQ(timer.cancel(first), CancelResult::Cancelled);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(timer.cancel(last), CancelResult::Cancelled);
  EXPECT_EQ(calls, 1);
}

TEST(LoopTimer, ALoopEndsWhenATaskHasCancelledTheLastPendingOne) {
  for (const bool has_function : {true, false}) {
    LoopTimer timer(Options{.tick_duration = 1ms, .max_pending_timeouts = 10});
    if (has_function) timer.on_earlier([] {});
    Timeout last = timer.new_timeout(must_not_run, kFar);
    timer.new_timeout([&] { EXPECT_TRUE(last.cancel()); }, 1ms);  // the pass for it takes the other into the wheel too
    for (auto next = timer.run_due(); next; next = timer.run_due()) {
      ASSERT_LT(*next, timer.now() + 60s) << "the loop sleeps until the tick of the cancelled one";
      std::this_thread::sleep_until(*next);
    }
    EXPECT_TRUE(last.is_cancelled());
  }
}

/// Most timeouts are cancelled before their tick ends, and a cancel costs least in the queue.
TEST(LoopTimer, RunDueLeavesATimeoutInTheQueueUntilItsTickIsOver) {
  LoopTimer timer{10h};
  timer.new_timeout([] {}, 0s);
  timer.run_due();
  EXPECT_EQ(timer.stats().backlog, 1);
}

TEST(LoopTimer, RunDueRunsAllThatAreDueHoweverMany) {
  constexpr int kMany = internal::Tuning::kTransfers * (internal::Tuning::kFarPasses + 1);
  LoopTimer timer{1ms};
  int runs = 0;
  const auto deadline = steady_clock::now();
  for (int i = 0; i < kMany; ++i) timer.add([&] { ++runs; }, deadline);
  std::this_thread::sleep_until(deadline + 2ms);
  timer.run_due();
  EXPECT_EQ(runs, kMany);
}

TEST(LoopTimer, RefusesOptionsThatNeedAThread) {
  const auto refusal_of = [](const Options& options) {
    return message_of<std::invalid_argument>([&] { LoopTimer timer(options); });
  };
  for (const auto tick : {0ms, -1ms}) EXPECT_TRUE(contains(refusal_of({.tick_duration = tick}), "tick_duration: "));
  EXPECT_TRUE(contains(refusal_of({.slow_task = -1ns}), "slow_task: -1 ns"));
  const auto factory = [](std::function<void()> body) { return std::thread(std::move(body)); };
  EXPECT_TRUE(contains(refusal_of({.thread_factory = factory}), "thread_factory: set"));
}

TEST(PollTimeout, IsRoundedUpAndNeverNegativeForATime) {
  EXPECT_EQ(poll_timeout({}), -1);
  EXPECT_EQ(poll_timeout(steady_clock::time_point::min()), 0);
  EXPECT_EQ(poll_timeout(steady_clock::now()), 0);
  EXPECT_EQ(poll_timeout(steady_clock::time_point::max()), (std::numeric_limits<int>::max)());
  const auto begin = steady_clock::now();
  const int wait = poll_timeout(begin + 10s + 1ns);
  EXPECT_LE(wait, 10'001);
  EXPECT_GE(begin + wait * 1ms + (steady_clock::now() - begin), begin + 10s) << "a wait of that long is enough";
}

// Statistics, the limit, slow tasks: every Timer has them.

template <class T>
class EveryTimer : public ::testing::Test {};
TYPED_TEST_SUITE(EveryTimer, AllTimers);

TYPED_TEST(EveryTimer, HasStatistics) {
  const auto owner = make_timer<TypeParam>();
  Timer& timer = *owner;
  EXPECT_EQ(timer.stats().last_lag, 0ns);
  EXPECT_EQ(timer.stats().max_lag, 0ns);
  std::atomic<int> runs = 0;
  for (int i = 0; i < 3; ++i) timer.new_timeout([&] { ++runs; }, i * 10ms);
  timer.new_timeout([] {}, kFar).cancel();
  timer.new_timeout([] {}, kFar);
  EXPECT_TRUE(passes_until(*owner, [&] { return runs == 3 && timer.stats().ticks >= 3; }));
  const TimerStats stats = timer.stats();
  EXPECT_TRUE(is_balanced(stats, 1));
  EXPECT_EQ(stats.scheduled, 5);
  EXPECT_EQ(stats.cancelled, 1);
  EXPECT_EQ(stats.pending, 1);
  EXPECT_EQ(stats.expired, 3);
  EXPECT_TRUE(passes_until(*owner, [&] { return timer.stats().running_for == 0ns; }));
  const LatencyHistogram lateness = timer.lateness();
  EXPECT_EQ(lateness.count(), 3u);
  EXPECT_GE(lateness.max(), 0ns);
  EXPECT_GE(stats.max_lag, stats.last_lag);
  // On a busy machine the worker may not have slept until now.
  EXPECT_TRUE(passes_until(*owner, [&] { return settle(*owner), timer.stats().wakeups >= 1; }));
}

TYPED_TEST(EveryTimer, ReportsSlowTasksExceptOneThatHasDestroyedIt) {
  std::atomic<int> reports = 0;
  CountingFactory workers;
  Options options{.slow_task = 1ms, .on_slow_task = [&](const Timeout&, std::chrono::nanoseconds ran) {
                    EXPECT_GT(ran, 1ms);
                    ++reports;
                  }};
  if (!kDriven<TypeParam>) options.thread_factory = workers.factory();
  auto* const timer = make_timer<TypeParam>(options).release();
  timer->new_timeout([] { std::this_thread::sleep_for(2ms); }, 0s);
  EXPECT_TRUE(passes_until(*timer, [&] { return reports == 1; }));
  EXPECT_EQ(timer->stats().slow_tasks, 1);
  std::atomic<bool> gone = false;
  after(*timer, 0s, [&] {
    delete timer;
    std::this_thread::sleep_for(2ms);
    gone = true;
  });
  while (kDriven<TypeParam> && !gone) turn(*timer);
  EXPECT_TRUE(kDriven<TypeParam> || workers.wait_until_ended());
  EXPECT_EQ(reports, 1);
}

TEST(LoopTimer, TellsHowLateALoopCameAndHowLongATaskRuns) {
  LoopTimer timer{1ms};
  TimerStats inside;
  bool ran = false;
  timer.new_timeout(
      [&] {
        std::this_thread::sleep_for(2ms);
        inside = timer.stats();
        ran = true;
      },
      0s);
  std::this_thread::sleep_for(20ms);  // the loop is late by that
  run_until(timer, ran);
  EXPECT_GE(timer.lateness().max(), 20ms);
  EXPECT_GE(inside.running_for, 2ms);
  EXPECT_GE(timer.stats().max_lag, 19ms) << "from the end of the tick";
  EXPECT_EQ(timer.stats().running_for, 0ns);
}

TEST(ManualTimerStats, AreOfItsOwnClock) {
  ManualTimer timer(1ms);
  TimerStats inside;
  timer.new_timeout([&] { inside = timer.stats(); }, 1ms);
  timer.advance(1ms);
  EXPECT_EQ(inside.running_for, 0ns);
  EXPECT_EQ(timer.lateness().max(), 0ns);
  timer.new_timeout([] {}, 1ms);
  timer.advance_to(timer.now() + 5s);
  EXPECT_EQ(timer.lateness().max(), 4999ms);
  EXPECT_EQ(timer.stats().max_lag, 4999ms);
}

/// Otherwise they would stay in the queue, and their nodes with them, until the next timeout comes.
TEST(LoopTimer, RunDueDropsTimeoutsThatAnotherThreadHasCancelled) {
  constexpr int kEnough = internal::Tuning::kCalls;
  int calls = 0;
  LoopTimer timer{1ms};
  timer.new_timeout([] {}, kFar);
  timer.run_due();
  for (const bool is_woken : {false, true, true}) {
    if (is_woken) timer.on_earlier([&] { ++calls; });
    std::vector<Timeout> timeouts = far_timeouts(timer, kEnough, 2 * kFar);
    calls = 0;
    // Each time a new thread, which takes over from the last one.
    run_together(1, [&](int) {
      for (Timeout& timeout : timeouts) {
        ASSERT_EQ(calls, 0);
        EXPECT_TRUE(timeout.cancel());
      }
    });
    EXPECT_EQ(calls, is_woken ? 1 : 0);
    EXPECT_GT(timer.stats().backlog, 0);
    timer.run_due();
    EXPECT_EQ(timer.stats().backlog, 0);
  }
}

TEST(LoopTimer, RunDueAsksForACallAtOnceIfAnotherThreadHasCancelledThousandsMeanwhile) {
  constexpr int kEnough = 16'500;  // more than Tuning::kCalls
  for (const bool is_woken : {false, true}) {
    LoopTimer timer{1ms};
    if (is_woken) timer.on_earlier([] {});
    bool done = false;
    timer.new_timeout(
        [&] {
          std::vector<Timeout> timeouts = far_timeouts(timer, kEnough);
          run_together(1, [&](int) {
            for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
          });
          done = true;
        },
        0ns);
    std::optional<steady_clock::time_point> next;
    while (!done) next = timer.run_due();
    ASSERT_TRUE(next);
    EXPECT_LE(*next, steady_clock::now());
    timer.run_due();
    EXPECT_EQ(timer.stats().backlog, 0);
    EXPECT_EQ(timer.run_due(), std::nullopt);
  }
}

/// Each cancelled() schedules more than a pass takes, and makes the next cancelled() due.
TEST(LoopTimer, ACallOfRunDueTakesOnlyWhatCameBeforeIt) {
  constexpr int kMore = 101'000, kCalls = 3;
  int cancellations = 0;
  std::shared_ptr<TimerTask> chain;
  LoopTimer timer{1ms};
  chain = on_cancelled([&] {
    if (++cancellations == kCalls) return;
    for (int i = 0; i < kMore; ++i) timer.add(must_not_run, kFar);
    timer.new_timeout(chain, kFar).cancel();
  });
  timer.new_timeout(chain, kFar).cancel();
  for (int calls = 1; cancellations != kCalls && calls <= 100; ++calls) {
    const int before = cancellations;
    const auto next = timer.run_due();
    EXPECT_LE(cancellations, before + 1);
    if (cancellations != kCalls) {
      EXPECT_LE(next, steady_clock::now()) << "there is more to do";
    }
  }
  EXPECT_EQ(cancellations, kCalls);
}

/// Whether the timeout waits in the inbox or is in the wheel, or was there and is cancelled.
TEST(LoopTimer, ATimeoutThatIsNeverDueIsNoReasonForAnotherCall) {
  for (const std::int64_t limit : {0, 100}) {
    for (const std::chrono::nanoseconds tick : {std::chrono::nanoseconds(1), std::chrono::nanoseconds(7),
                                                std::chrono::nanoseconds(1ms), std::chrono::nanoseconds(24h)}) {
      SCOPED_TRACE(std::to_string(tick.count()) + " ns, limit " + std::to_string(limit));
      LoopTimer timer{{.tick_duration = tick, .max_pending_timeouts = limit}};
      timer.new_timeout(must_not_run, std::chrono::hours::max());
      EXPECT_EQ(timer.run_due(), std::nullopt);
      timer.new_timeout(std::make_shared<RecordingTask>(), kFar).cancel();  // its cancelled() asks for a pass
      timer.run_due();
      EXPECT_EQ(timer.run_due(), std::nullopt);
      Timeout moved = timer.new_timeout(must_not_run, 72h);
      EXPECT_NE(timer.run_due(), std::nullopt);
      EXPECT_TRUE(moved.reschedule(std::chrono::hours::max()));
      timer.new_timeout(std::make_shared<RecordingTask>(), kFar).cancel();
      timer.on_earlier([] {});
      EXPECT_EQ(timer.pending_timeouts(), 2);
    }
  }
}

}  // namespace
}  // namespace hwt
