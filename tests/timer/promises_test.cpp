// The promises of README.md, "Promises": a suite for each, under its number and its sentence there. The lines with
// "Also" name other tests of the promise.

#include "tests/support/test_support.h"
#include "tests/support/worker_call.h"

namespace hwt::test {
namespace {

// Promise 1: Never early: a task starts at or after its deadline, by `steady_clock`.
// Also tests/timer/conformance_test.cpp: Conformance.EveryTimeoutHasExactlyOneFate
// Also tests/timer/reschedule_test.cpp: Reschedule
// Also tests/timer/short_tick_test.cpp: ShortTick.IsNeverEarlyAndRunsEachOnce
// Also tests/manual/manual_timer_test.cpp: Advance, AdvanceTo.ATimeoutScheduledAfterAJumpIsNotEarly
// Also tests/counter/old_timer_test.cpp: OldTimer

TEST(Promise1, NeverEarly) {
  for (const std::chrono::nanoseconds tick : {1ms, 7ms}) {
    constexpr int kCount = 300;
    Latch done(kCount);
    std::atomic<int> early = 0;
    HashedWheelTimer timer(tick, 8);
    for (int i = 0; i < kCount; ++i) {
      const auto delay = 137us * i;  // up to 41 ms: several revolutions, mostly off the grid
      const auto not_before = steady_clock::now() + delay;
      after(timer, delay, [&, not_before](Timeout& timeout) {
        const auto now = steady_clock::now();
        if (now < not_before || now < timeout.deadline()) ++early;
        done.count_down();
      });
    }
    ASSERT_TRUE(done.wait());
    EXPECT_EQ(early, 0);
  }
}

// Promise 2: Late by at most one tick, plus the worker's own lag, which `stats()` and `lateness()` show. Without
// `Options::exact_clock` up to 4 us more, and 1.05 ms more once the processor's cycle counter has proved wrong; 2.1 ms
// more in that moment.
// Also tests/counter/simulated_counter_test.cpp: RestingTimer
// Also tests/fuzz
// Also tests/timer/idle_test.cpp: AfterAPass, Idle.NoWakeUpIsLost
// Also tests/manual/manual_timer_test.cpp: Advance.IsExactFromAnyPhaseForAnyDelayAndTick
// Also tests/wheel/every_wheel_test.cpp: Walk
// Also tests/wheel/hierarchical_wheel_test.cpp: AllOfASmallWheel

TEST(Promise2, LateByAtMostOneTickPlusTheWorkersOwnLag) {
  constexpr auto kTick = 10ms;
  constexpr int kCount = 100;
  Latch done(kCount);
  std::atomic<std::int64_t> max_late = 0;
  HashedWheelTimer timer(kTick);
  int judged = 0;
  {
    // A worker that sleeps, and that the system does not let come before the first deadline, counts no lag for it.
    const Gate awake(timer);
    for (int i = 0; i < kCount; ++i) {
      const auto counted = std::make_shared<std::atomic<bool>>(false);
      const Timeout timeout = after(timer, 30ms + i * 1ms, [&, counted](Timeout& self) {
        const std::int64_t late = (steady_clock::now() - self.deadline()).count();
        if (*counted && late > max_late) max_late = late;
        done.count_down();
      });
      *counted = steady_clock::now() < timeout.deadline();  // else this thread was late, not the worker
      judged += *counted ? 1 : 0;
    }
  }
  ASSERT_TRUE(done.wait());
  timer.stop();  // the lag of the last tick is known once the worker has finished it
  EXPECT_GT(judged, 0);
  EXPECT_LE(max_late, (kTick + timer.stats().max_lag).count());
}

TEST(Promise2, TheLagIsVisible) {
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&] { std::this_thread::sleep_for(30ms); }));
  timer.stop();
  EXPECT_GE(timer.stats().last_lag, 30ms);
  EXPECT_GE(timer.stats().max_lag, timer.stats().last_lag);
}

// Promise 3: Each accepted timeout ends as exactly one of expired, cancelled, returned by `stop()`.
// Also tests/timer/conformance_test.cpp: Conformance.EveryTimeoutHasExactlyOneFate
// Also tests/timer/conformance_test.cpp: Conformance.ATimeoutThatRacesStopIsRefusedOrReturned
// Also tests/oracle

TEST(Promise3, EveryAcceptedTimeoutEndsInExactlyOneWay) {
  constexpr int kCount = 1000;
  std::array<std::atomic<int>, kCount> runs{};
  HashedWheelTimer timer(1ms, 4);
  std::vector<Timeout> timeouts;
  std::array<int, kCount> cancels{};
  for (int i = 0; i < kCount; ++i) {
    const auto delay = i % 5 == 0 ? std::chrono::nanoseconds(kFar) : (i % 40) * 500us;
    timeouts.push_back(timer.new_timeout([&runs, i] { ++runs[i]; }, delay));
    if (i % 3 == 0) cancels[i] += timeouts.back().cancel() ? 1 : 0;
    if (i % 7 == 0) cancels[i / 2] += timeouts[i / 2].cancel() ? 1 : 0;
  }
  EXPECT_TRUE(eventually([&] { return timer.stats().expired > 10; }));
  const std::vector<Timeout> unprocessed = timer.stop();
  EXPECT_FALSE(unprocessed.empty());
  for (int i = 0; i < kCount; ++i) {
    const auto left = std::count(unprocessed.begin(), unprocessed.end(), timeouts[i]);
    EXPECT_EQ(runs[i] + cancels[i] + left, 1) << "timeout " << i;
    EXPECT_EQ(timeouts[i].is_expired(), runs[i] == 1) << "timeout " << i;
    EXPECT_EQ(timeouts[i].is_cancelled(), runs[i] == 0) << "timeout " << i;
  }
  EXPECT_TRUE(is_balanced(timer.stats()));
}

// Promise 4: After `cancel()` returned true the task never runs, even if it is due in the same tick.
// Also tests/timer/conformance_test.cpp: Conformance.CancelIsTrueOnceAndThenTheTaskNeverRuns
// Also tests/timer/cancel_and_wait_test.cpp: CancelAndWait.AnObjectOfTheTaskMayBeDestroyedAfterIt
// Also tests/oracle

TEST(Promise4, ATaskCanCancelAnotherOneDueInTheSameTick) {
  std::atomic<int> victim_runs = 0;
  bool won = false;
  Latch done;
  Timeout victim;
  HashedWheelTimer timer(1ms);
  {
    const Gate gate(timer);
    const auto deadline = timer.now();  // one for both, so that they are due in the same tick
    timer.new_timeout([&] { won = victim.cancel(); }, deadline);
    victim = timer.new_timeout([&] { ++victim_runs; }, deadline);
    timer.new_timeout([&] { done.count_down(); }, 0ms);
  }
  ASSERT_TRUE(done.wait());
  EXPECT_TRUE(won);
  EXPECT_EQ(victim_runs, 0);
  EXPECT_TRUE(victim.is_cancelled());
}

// Promise 5: What one thread schedules with non-decreasing deadlines runs in that order (an executor may reorder).
// Also tests/timer/conformance_test.cpp: Conformance.TimeoutsWithDeadlinesThatDoNotFallRunInThatOrder
// Also tests/timer/run_test.cpp: RunTest.LosesNothingAndKeepsTheOrderWhileItTakesOver
// Also tests/timer/load_test.cpp: OrderOfOneThread.HoldsWhileItTidiesUpBehindItself
// Also tests/fuzz

TEST(Promise5, OneThreadsTimeoutsRunInDeadlineOrderDespiteCancellations) {
  constexpr int kCount = 2000;
  std::vector<int> order;  // only the worker writes
  HashedWheelTimer timer(5ms, 4);
  std::vector<Timeout> timeouts;
  for (int i = 0; i < kCount; ++i) {
    timeouts.push_back(timer.new_timeout([&order, i] { order.push_back(i); }, 50ms + i * 10us));
  }
  std::size_t cancelled = 0;
  {
    const Gate gate(timer);  // now they are in their buckets
    for (int i = 0; i < kCount; i += 3) cancelled += timeouts[i].cancel() ? 1 : 0;
  }
  EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
  timer.stop();
  EXPECT_EQ(order.size() + cancelled, std::size_t{kCount});
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// Promise 6: `max_pending_timeouts` is exact under concurrency. The count drops at `cancel()`, is never negative, and
// is 0 after `stop()`.
// Also tests/timer/lifecycle_test.cpp: Defects.DefectD7_CancelledInItsBucketIsSubtractedOnce
// Also tests/oracle
// Also tests/timer/reschedule_test.cpp: Reschedule.ManyTimesToEarlierAndToLaterAsTheSameTimeout
// Also tests/timer/reschedule_test.cpp: RescheduleOf.ATimeoutUnderALimitKeepsItsOnePlace
// Also tests/timer/races_test.cpp: Limit
// Also tests/timer/wait_test.cpp: StoppedTimer.HasNonePendingWhenStopReturns
// Also tests/timer/load_test.cpp: Withdraw.FreesTheNodeAtOnce

TEST(Promise6, NeverMoreThanTheLimitAreAccepted) {
  constexpr int kLimit = 100;
  std::atomic<int> accepted = 0, rejected = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = kLimit}};
  run_together(4, [&](int) {
    for (int i = 0; i < 100; ++i) {
      ++(throws<RejectedExecution>([&] { timer.new_timeout([] {}, kFar); }) ? rejected : accepted);
    }
  });
  EXPECT_EQ(accepted, kLimit);
  EXPECT_EQ(rejected, 400 - kLimit);
  EXPECT_EQ(timer.pending_timeouts(), kLimit);
  EXPECT_EQ(timer.stats().rejected, 400 - kLimit);
}

// Promise 7: Cancelled timeouts do not accumulate while the worker sleeps through a long tick. One cancelled by the
// thread that made it is usually free at once. A thread wakes the worker for every 4,096 that it cancels in the wheel,
// and the worker collects them.
// Also tests/manual/on_earlier_test.cpp: OnEarlier.IsCalledForThousandsInTheWheelThatAreDueEarlierOrCancelled
// Also tests/timer/flood_test.cpp: UnderAFlood.OfThreadsThatScheduleAndCancelATimeoutIsPunctual
// Also tests/timer/load_test.cpp: HeldWorker
// Also tests/timer/load_test.cpp: Withdraw.FreesTheNodeAtOnce

TEST(Promise7, CancelledTimeoutsAreCollectedLongBeforeTheTick) {
  HashedWheelTimer timer(10min);  // no tick will come
  for (int i = 0; i < 500'000; ++i) timer.new_timeout([] {}, kFar).cancel();
  // The producer drops dead entries itself.
  EXPECT_LE(timer.stats().backlog, 4096);
  EXPECT_EQ(timer.stats().cancelled, 500'000);
}

/// Returns whether the timer still refers to the timeout. It does until the worker has collected it.
bool is_held_by_the_timer(const Timeout& timeout) {
  return (internal::Node::of(timeout)->word & internal::Node::kReferences) != internal::Node::kReference;
}

TEST(Promise7, TheWorkerCollectsEach4096ThatAThreadCancelsInTheWheel) {
  constexpr std::size_t kCollectedAtOnce = 4096;
  HashedWheelTimer timer(1ms, 1 << 17);  // no bucket comes up again while the test runs
  std::vector<Timeout> timeouts;
  for (std::size_t i = 0; i < 5 * kCollectedAtOnce; ++i) timeouts.push_back(timer.new_timeout([] {}, kFar));
  await_transfer(timer);
  // Nothing is due from here on, so only the canceller wakes the worker.
  for (std::size_t cancelled = 1; cancelled <= timeouts.size(); ++cancelled) {
    ASSERT_TRUE(timeouts[cancelled - 1].cancel());
    if (cancelled % kCollectedAtOnce != 0) continue;
    const auto held = [&] { return std::ranges::count_if(timeouts, is_held_by_the_timer); };
    ASSERT_TRUE(eventually([&] { return held() == std::ssize(timeouts) - static_cast<std::ptrdiff_t>(cancelled); }))
        << held() << " are held after " << cancelled << " of " << timeouts.size() << " have been cancelled";
  }
}

// Promise 8: An exception from a task, `cancelled()` or the executor never ends the worker. A task that the executor
// refuses runs on the worker.
// Also tests/timer/conformance_test.cpp: Conformance.ExceptionsReachTheHandlerAndTheTimerGoesOn
// Also tests/timer/messages_test.cpp: MessageOfAnException.NamesOnTaskErrorAndCountsNoLineAsLeftOut
// Also tests/timer/tasks_test.cpp: Errors, Executor

TEST(Promise8, NoExceptionEndsTheWorker) {
  ErrorLog log;
  std::vector<std::thread::id> ran_on;  // only the worker writes
  Latch ran(2);
  Timeout taken;
  HashedWheelTimer timer{{.tick_duration = 1ms,
                          .executor = [](const std::function<void()>&) { throw 1; },
                          .on_task_error = log.handler()}};
  const auto task = [&] {
    ran_on.push_back(std::this_thread::get_id());
    ran.count_down();
  };
  std::vector<Timeout> timeouts{timer.new_timeout(task, 0ms)};
  ASSERT_TRUE(log.wait_for(1));
  // Refused by the executor too. The task moves its handle away.
  timeouts.push_back(after(timer, 0ms, [&](Timeout& self) {
    taken = std::move(self);
    throw 2;
  }));
  ASSERT_TRUE(log.wait_for(3));
  timeouts.push_back(timer.new_timeout(on_cancelled([] { throw 3; }), kFar));
  timeouts.back().cancel();
  ASSERT_TRUE(log.wait_for(4));
  timeouts.push_back(timer.new_timeout(task, 0ms));
  ASSERT_TRUE(ran.wait()) << "refused by the executor, so the worker runs them";
  ASSERT_TRUE(log.wait_for(5));
  timer.stop();
  EXPECT_EQ(log.errors(), (std::vector<std::string>{"1", "1", "2", "3", "1"}));
  EXPECT_EQ(log.timeouts(), (std::vector<Timeout>{timeouts[0], timeouts[1], timeouts[1], timeouts[2], timeouts[3]}));
  EXPECT_EQ(log.threads(), std::vector(5, ran_on.front())) << "on the worker, which is where the executor threw";
  EXPECT_EQ(ran_on, std::vector(2, ran_on.front()));
  EXPECT_EQ(timer.stats().task_errors, 5);
}

// Promise 9: `stats()` balances: scheduled = expired + cancelled + unprocessed + pending.
// Also tests/oracle

TEST(Promise9, StatsBalance) {
  Latch done(2);
  HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 4}};
  for (int i = 0; i < 2; ++i) timer.new_timeout([&] { done.count_down(); }, 0ms);
  ASSERT_TRUE(done.wait());
  EXPECT_TRUE(timer.new_timeout([] {}, kFar).cancel());
  for (int i = 0; i < 4; ++i) timer.new_timeout([] {}, kFar);
  EXPECT_THROW(timer.new_timeout([] {}, kFar), RejectedExecution);
  EXPECT_FALSE(timer.try_new_timeout([] {}, kFar));

  TimerStats stats = timer.stats();
  EXPECT_EQ(stats.scheduled, 7);
  EXPECT_EQ(stats.expired, 2);
  EXPECT_EQ(stats.cancelled, 1);
  EXPECT_EQ(stats.rejected, 2);
  EXPECT_EQ(stats.unprocessed, 0);
  EXPECT_TRUE(is_balanced(stats, 4));

  std::vector<Timeout> unprocessed = timer.stop();
  EXPECT_FALSE(unprocessed.front().cancel());
  EXPECT_THROW(timer.new_timeout([] {}, kFar), IllegalState);
  stats = timer.stats();
  EXPECT_EQ(stats.scheduled, 7) << "refused after stop(): counted nowhere";
  EXPECT_EQ(stats.cancelled, 1) << "cancelled by stop(): counted as unprocessed";
  EXPECT_EQ(stats.rejected, 2);
  EXPECT_EQ(stats.unprocessed, 4);
  EXPECT_TRUE(is_balanced(stats));
}

/// A program that compares a polled value with the last one begins with a value of its own.
TEST(Promise9, NothingIsCountedBeforeAnythingHappens) {
  const HashedWheelTimer timer(1ms);
  constexpr std::size_t kNumbers = offsetof(TimerStats, counts_cycles);  // every field before it is a number
  const std::array<char, kNumbers> zeros{};
  for (const TimerStats& stats : {TimerStats{}, timer.stats()}) {
    EXPECT_EQ(std::memcmp(&stats, zeros.data(), kNumbers), 0);
    EXPECT_FALSE(stats.counts_cycles);
  }
}

TEST(Promise9, ExpiredIsCountedBeforeTheTaskRuns) {
  std::atomic<std::int64_t> expired = -1;
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&] { expired = timer.stats().expired; }));
  EXPECT_EQ(expired, 1);
}

// Promise 10: At most 100,000 timeouts enter the wheel in one pass; a rest follows without waiting for a tick.
// Also tests/timer/idle_test.cpp: Transfers

TEST(Promise10, AFloodDoesNotKeepTheWorkerFromExpiring) {
  constexpr int kLimit = 100'000, kFlood = 250'000;
  std::atomic<std::int64_t> left_when_first_ran = -1;
  std::atomic<int> runs = 0;
  HashedWheelTimer timer(1ms);
  {
    Gate gate(timer);
    timer.new_timeout([&] { left_when_first_ran = timer.stats().backlog; }, 0ns);
    for (int i = 0; i < kFlood / 2; ++i) {
      timer.new_timeout([&] { ++runs; }, 0ns);
      timer.new_timeout([] {}, kFar);
    }
    EXPECT_EQ(timer.stats().backlog, kFlood + 1);
  }
  EXPECT_TRUE(eventually([&] { return runs == kFlood / 2 && timer.stats().backlog == 0; }));
  EXPECT_EQ(left_when_first_ran, kFlood + 1 - kLimit) << "what the worker has in its hand is not left out";
  EXPECT_EQ(timer.stop().size(), std::size_t{kFlood / 2});
  EXPECT_TRUE(is_balanced(timer.stats()));
}

// Promise 11: Idle costs nothing: no wake-up for empty buckets. While nothing is pending, the worker wakes up only to
// clean up after the last timeouts and to return the memory of a peak.
// Also tests/timer/idle_test.cpp: Defects.DefectD9_WaitingForATickDoesNotSpin, Idle, AfterAPass, Watched

/// Timeouts lie far beyond the 64 revolutions that an entry's tag can tell, in a small wheel.
TEST(Promise11, NoWakeUpsForEmptyBucketsAndOtherRevolutions) {
  HashedWheelTimer timer(1ms, 8);
  for (int i = 0; i < 100; ++i) timer.new_timeout([] {}, kFar - i * 10ms);
  // The worker wakes up to call cancelled(), and takes all timeouts of this thread.
  const auto task = std::make_shared<RecordingTask>();
  EXPECT_TRUE(timer.new_timeout(task, kFar).cancel());
  ASSERT_TRUE(task->was_cancelled.wait());
  ASSERT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
  come_to_rest(timer, 600ms);  // longer than 64 revolutions take
  EXPECT_EQ(timer.stats().ticks, 0);
}

// Promise 12: Out of memory leaves the timer as it was and throws `std::bad_alloc`; on the worker it loses nothing.
// Also tests/timer/allocation_test.cpp: Allocation, NewTimeout, StopThatGrows, WorkerWithoutMemory, WithoutMemory
// Also tests/timer/constructor_test.cpp: ThreadFactory
// Also tests/timer/reschedule_test.cpp: Reschedule.ToEarlierWithoutMemoryChangesNothing
// Also tests/timer/reschedule_test.cpp: RescheduleWithoutMemoryOnTheWorker

struct CopyThrows {
  CopyThrows() = default;
  CopyThrows(const CopyThrows&) { throw std::bad_alloc(); }
  void operator()() const {}
};
struct BigCopyThrows : CopyThrows {
  std::array<std::byte, 100> bytes{};
};

template <class Callable>
void expect_failing_copy_changes_nothing() {
  Latch done;
  HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 1}};
  const Callable callable;
  for (int i = 0; i < 100; ++i) EXPECT_THROW(timer.new_timeout(callable, 0ms), std::bad_alloc);
  const TimerStats stats = timer.stats();
  EXPECT_EQ(stats.scheduled + stats.rejected + stats.pending + stats.cancelled + stats.expired, 0);
  EXPECT_NO_THROW(timer.new_timeout([&] { done.count_down(); }, 0ms)) << "the one place is free";
  ASSERT_TRUE(done.wait());
  EXPECT_TRUE(timer.stop().empty());
}

TEST(Promise12, AFailingCopyLeavesTheTimerAsItWas) {
  expect_failing_copy_changes_nothing<CopyThrows>();
  expect_failing_copy_changes_nothing<BigCopyThrows>();
}

// Promise 13: Handles outlive the timer. A task may destroy its own timer.
// Also tests/timer/conformance_test.cpp: Conformance.MayBeDestroyedInsideOneOfItsTasks
// Also tests/timer/lifecycle_test.cpp: Destructor
// Also tests/timer/races_test.cpp: Races.DestroyInsideACancel
// Also tests/timer/races_test.cpp: Races.PrintingAHandleWhileItsTimerGoes
// Also tests/timer/tasks_test.cpp: TaskLifetime

TEST(Promise13, HandlesOutliveTheTimer) {
  Timeout pending, expired, cancelled, shared;
  const auto task = std::make_shared<RecordingTask>();
  {
    Latch ran;
    HashedWheelTimer timer(1ms);
    pending = timer.new_timeout([] {}, kFar);
    cancelled = timer.new_timeout([] {}, kFar);
    cancelled.cancel();
    shared = timer.new_timeout(task, kFar);
    expired = timer.new_timeout([&] { ran.count_down(); }, 0ms);
    ASSERT_TRUE(ran.wait());
  }
  for (Timeout* timeout : {&pending, &expired, &cancelled, &shared}) {
    EXPECT_EQ(timeout->timer(), nullptr);
    EXPECT_FALSE(timeout->cancel() || timeout->reschedule(1ms) || timeout->reschedule(2 * kFar));
    EXPECT_TRUE(contains(text_of(*timeout), "Timeout(deadline: ")) << text_of(*timeout);
    const Timeout copy = *timeout;
    EXPECT_EQ(copy, *timeout);
  }
  EXPECT_TRUE(expired.is_expired());
  EXPECT_TRUE(pending.is_cancelled() && cancelled.is_cancelled() && shared.is_cancelled());
  EXPECT_EQ(&shared.task(), task.get());
}

// Promise 14: Short-lived threads cost no more than long ones, because the next thread takes over the resources of one
// that ended.
// Also tests/timer/wait_test.cpp: FirstUse.TakesOverAllThatThreadsHaveLeft, ThreadEnd.IsNotTheLastUse
// Also tests/timer/load_test.cpp: Withdraw.ThreadsEndWithWithdrawnTimeouts

TEST(Promise14, ShortLivedThreadsLeaveNothingBehind) {
  constexpr int kThreads = 300;
  std::atomic<int> runs = 0;
  HashedWheelTimer timer(1ms);
  std::vector<Timeout> kept(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    std::jthread([&, i] {
      timer.new_timeout([&] { ++runs; }, (i % 10) * 1ms);
      timer.new_timeout([] {}, kFar).cancel();
      kept[i] = timer.new_timeout([] {}, kFar);
    }).join();
  }
  for (Timeout& timeout : kept) EXPECT_TRUE(timeout.cancel()) << "its thread is gone, the timeout is not";
  EXPECT_TRUE(eventually([&] { return runs == kThreads; }));
  EXPECT_TRUE(ran_in_task(timer, [] {}));  // before it the worker takes all that is there
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_TRUE(is_balanced(timer.stats()));
  EXPECT_LE(producers_of(internal::Node::of(kept.front())->core()), 3)
      << "one for the short-lived threads, and perhaps for this thread and the worker";
}

}  // namespace
}  // namespace hwt::test
