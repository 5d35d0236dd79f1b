// ManualTimer: time from the caller. What every Timer does is in conformance_test, and exact times of random calls are
// in tests/fuzz/timers.cpp.

#include "hashed_wheel_timer/deadline.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using std::chrono::nanoseconds;

constexpr steady_clock::time_point kStart = steady_clock::time_point(1h);

TEST(Advance, IsExactFromAnyPhaseForAnyDelayAndTick) {
  for (const std::int64_t tick : {1, 3, 10})
    for (std::int64_t phase = 0; phase < 2 * tick; ++phase)
      for (std::int64_t delay = 0; delay <= 5 * tick; ++delay) {
        ManualTimer timer(nanoseconds(tick), kStart);
        timer.advance(nanoseconds(phase));
        std::int64_t ran_at = -1;
        timer.new_timeout([&] { ran_at = (timer.now() - kStart).count(); }, nanoseconds(delay));
        timer.advance(nanoseconds(10 * tick));
        const std::int64_t deadline = phase + delay;
        const std::int64_t expected = delay == 0 ? (phase / tick + 1) * tick : (deadline + tick - 1) / tick * tick;
        ASSERT_EQ(ran_at, expected) << "tick " << tick << ", phase " << phase << ", delay " << delay;
      }
}

/// A timeout runs at the first grid point at or after its deadline. If time ends before such a point, it never runs.
TEST(Advance, IsExactInTheLastTicksOfTime) {
  for (const nanoseconds tick : {nanoseconds(1us), nanoseconds(10us), nanoseconds(1ms)}) {
    const nanoseconds last_point = (nanoseconds::max() - kStart.time_since_epoch()) / tick * tick;
    ManualTimer timer(tick, kStart);
    std::vector<nanoseconds> ran_at;
    timer.new_timeout(must_not_run, nanoseconds::max());
    for (const nanoseconds before : {2 * tick, 2 * tick - 1ns, tick, 1ns, 0ns, -1ns}) {
      timer.new_timeout([&] { ran_at.push_back(timer.now() - kStart); }, last_point - before);
    }
    timer.advance_to(kStart + last_point - 3 * tick);
    EXPECT_EQ(ran_at, std::vector<nanoseconds>{});
    EXPECT_EQ(timer.advance(nanoseconds::max()), 5u);
    EXPECT_EQ(ran_at, (std::vector<nanoseconds>{last_point - 2 * tick, last_point - tick, last_point - tick, last_point,
                                                last_point}));
    EXPECT_EQ(timer.pending_timeouts(), 2);
    EXPECT_EQ(timer.now(), steady_clock::time_point::max());
    EXPECT_EQ(timer.advance(1s), 0u);
  }
}

TEST(Advance, ATimeBeforeTheClocksZeroIsAStartLikeAnyOther) {
  ManualTimer timer(1ms, steady_clock::time_point::min());
  int runs = 0;
  timer.new_timeout([&] { ++runs; }, 1s);
  EXPECT_LE(timer.next_wakeup(), steady_clock::time_point::min() + 1s);
  timer.advance(1s - 1ns);
  EXPECT_EQ(runs, 0);
  timer.advance(1ns);
  EXPECT_EQ(runs, 1);
  timer.new_timeout([&] { ++runs; }, 1s);
  EXPECT_EQ(timer.advance_to(steady_clock::time_point::max()), 1u);
  EXPECT_EQ(timer.stats().last_lag, nanoseconds::max()) << "and not a negative one";
}

/// Two deadlines are due by the last tick that ends before the end of time. The end of time itself is never due,
/// although a tick ends there.
TEST(Advance, EndsAtTheEndOfTimeWhereAlsoATickEnds) {
  for (const nanoseconds tick : {nanoseconds(1), nanoseconds(7), nanoseconds(73 * 127)}) {
    ASSERT_EQ(nanoseconds::max() % tick, 0ns);
    ManualTimer timer(tick, steady_clock::time_point());
    timer.new_timeout([] {}, nanoseconds::max());
    timer.new_timeout([] {}, nanoseconds::max() - 1ns - tick);
    timer.new_timeout([] {}, nanoseconds::max() - tick);
    EXPECT_EQ(timer.advance_to(steady_clock::time_point::max()), 2u);
    timer.new_timeout([] {}, 1s);
    EXPECT_EQ(timer.advance(1s), 0u);
    timer.on_earlier([] {});
    EXPECT_FALSE(timer.next_wakeup());
    EXPECT_TRUE(timer.new_timeout(on_cancelled([] {}), 1s).cancel()) << "UBSan notices an overflow";
    EXPECT_EQ(timer.stop().size(), 2u);
  }
}

/// From this start the clock has 2^64 ticks of a nanosecond, but a timer can count only 2^63. A timeout that is due
/// after the last one never runs.
TEST(Advance, IsNotEarlyWhereTicksCannotBeCounted) {
  ManualTimer timer(1ns, steady_clock::time_point::min());
  int runs = 0;
  const std::function<void()> again = [&] {
    if (++runs < 100) timer.new_timeout(again, 1h);
  };
  timer.new_timeout(again, 1h);
  EXPECT_EQ(timer.advance(1h), 1u);
  timer.advance_to(steady_clock::time_point(1s));
  const int before = runs;
  EXPECT_EQ(before, 2);
  timer.advance(1h - 1ns);
  EXPECT_EQ(runs, before);
  EXPECT_EQ(timer.pending_timeouts(), 1);
}

/// After a stall: a task that schedules itself again counts from the time to which the clock has jumped.
TEST(AdvanceTo, ATimeoutScheduledAfterAJumpIsNotEarly) {
  ManualTimer timer(1ms, kStart);
  std::vector<nanoseconds> ran_at;
  std::function<void()> again = [&] {
    ran_at.push_back(timer.now() - kStart);
    timer.new_timeout(again, 100ms);
  };
  timer.new_timeout(again, 100ms);
  EXPECT_EQ(timer.advance_to(kStart + 1s), 1u);
  EXPECT_EQ(timer.advance_to(kStart + 1099ms), 0u);
  EXPECT_EQ(timer.advance_to(kStart + 1100ms), 1u);
  EXPECT_EQ(ran_at, (std::vector<nanoseconds>{1000ms, 1100ms}));
}

TEST(AdvanceTo, ADelayOfZeroAndPastDeadlinesAreDueInTheirOrderAtTheNextTickThoughMaxTasksEndedTheCall) {
  for (const std::size_t max_tasks : {std::size_t{0}, std::size_t{1}}) {
    ManualTimer timer(1ms, kStart);
    for (std::size_t i = 0; i < max_tasks; ++i) timer.new_timeout([] {}, 1ms);
    EXPECT_EQ(timer.advance_to(kStart + 10ms, max_tasks), max_tasks);
    std::vector<int> order;
    const auto add = [&](int number, When when) { timer.add([&order, number] { order.push_back(number); }, when); };
    add(0, kStart - 1h);
    add(1, 0ms);
    add(2, kStart);
    add(3, steady_clock::time_point::min());
    EXPECT_EQ(timer.advance_to(kStart + 10ms), 0u);
    EXPECT_EQ(timer.advance(1ms), 4u);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
  }
}

TEST(AdvanceTo, APastDeadlineIsDueAtTheNextTickThoughMaxTasksLeftSomethingOver) {
  ManualTimer timer(1ms, kStart);
  for (const auto delay : {1ms, 1ms, 5ms}) timer.new_timeout([] {}, delay);
  Timeout moved = timer.new_timeout([] {}, 1h);
  EXPECT_EQ(timer.advance_to(kStart + 10ms, 1), 1u);
  timer.new_timeout([] {}, kStart - 1h);
  timer.new_timeout([] {}, kStart + 3ms);
  EXPECT_TRUE(moved.reschedule(kStart + 3ms));
  EXPECT_EQ(timer.advance_to(kStart + 11ms - 1ns), 2u) << "what was left over";
  EXPECT_EQ(timer.advance(1ns), 3u);
}

TEST(AdvanceTo, ATimeoutThatATaskCancelsInAJumpDoesNotRun) {
  ManualTimer timer(1ns, kStart);
  int ran = 0;
  Timeout later = timer.new_timeout([&] { ++ran; }, 1h);
  timer.new_timeout([&] { EXPECT_TRUE(later.cancel()); }, 1ns);
  // Were the cancelled one looked at in each revolution until it is out of the wheel, this would take hours.
  EXPECT_EQ(timer.advance_to(timer.now() + 100'000h), 1u);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(timer.advance(1ns), 0u);
}

TEST(ManualClock, BeginsAtThePresentTimeAndThenStandsStill) {
  const auto before = steady_clock::now();
  ManualTimer timer;
  const auto begin = timer.now();
  EXPECT_GE(begin, before);
  EXPECT_LE(begin, steady_clock::now());
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(timer.now(), begin);
  const ManualTimer other(Options{.tick_duration = 5ms});
  EXPECT_GE(other.now(), before + 2ms);
  EXPECT_EQ(ManualTimer(1ms, kStart).now(), kStart);
}

/// The timer takes the place of another one in the tests of a program, whose deadlines are those of its own clock.
TEST(ManualClock, TakesTheTimesOfTheProgramsClock) {
  ManualTimer timer;
  int runs = 0;
  timer.new_timeout([&] { ++runs; }, steady_clock::now() + 250ms);
  timer.new_timeout([&] { ++runs; }, hwt::Deadline::in(250ms));
  timer.new_timeout([&] { ++runs; }, 250ms);
  EXPECT_EQ(timer.advance(249ms), 0U);
  timer.advance_to(steady_clock::now() + 250ms + 1ms);  // to the end of the tick
  EXPECT_EQ(runs, 3);
  const auto now = timer.now();
  timer.new_timeout(must_not_run, 1s);
  EXPECT_EQ(timer.advance_to(steady_clock::time_point(1s)), 0u);
  EXPECT_EQ(timer.now(), now) << "time never goes back";
}

TEST(NextWakeup, IsNoneForATimeoutThatIsNeverDue) {
  for (const nanoseconds tick : {nanoseconds(1), nanoseconds(7), nanoseconds(1ms), nanoseconds(24h)})
    for (const nanoseconds start : {1ns - nanoseconds(1h), 1ns}) {
      SCOPED_TRACE(std::to_string(tick.count()) + ", from " + std::to_string(start.count()));
      ManualTimer timer(tick, steady_clock::time_point(start));
      EXPECT_EQ(timer.next_wakeup(), std::nullopt);
      Timeout only = timer.new_timeout([] {}, 1s);
      EXPECT_NE(timer.next_wakeup(), std::nullopt);
      EXPECT_TRUE(only.cancel());
      EXPECT_EQ(timer.next_wakeup(), std::nullopt);
      timer.new_timeout([] {}, 5s);
      Timeout never = timer.new_timeout(must_not_run, std::chrono::hours::max());
      Timeout moved = timer.new_timeout(must_not_run, 72h);
      EXPECT_TRUE(moved.reschedule(nanoseconds::max()));
      while (const auto next = timer.next_wakeup()) timer.advance_to(*next);
      EXPECT_LE(timer.now(), steady_clock::time_point(start + 72h + tick)) << "the clock has run on";
      EXPECT_EQ(timer.pending_timeouts(), 2);
      EXPECT_TRUE(never.cancel());
      EXPECT_EQ(timer.next_wakeup(), std::nullopt);
      int runs = 0;
      EXPECT_TRUE(moved.reschedule(1s));
      timer.new_timeout([&] { ++runs; }, 2s);
      EXPECT_NE(timer.next_wakeup(), std::nullopt);
      moved.cancel();
      timer.advance(2s + 2 * tick);
      EXPECT_EQ(runs, 1);
    }
}

TEST(NextWakeup, ComesNearInAFewSteps) {
  for (const nanoseconds tick : {nanoseconds(1), nanoseconds(1ms)}) {
    ManualTimer timer(tick, kStart);
    int runs = 0;
    timer.new_timeout([&] { ++runs; }, 24h * 365);
    int steps = 0;
    while (const auto next = timer.next_wakeup()) {
      timer.advance_to(*next);
      ++steps;
    }
    EXPECT_EQ(runs, 1);
    EXPECT_LE(steps, 11) << "one for each level of 64 slots";
  }
}

TEST(ManualTimer, AfterStopTimePassesAndNothingRuns) {
  ManualTimer timer(1ms, kStart);
  timer.new_timeout(must_not_run, 1ms);
  timer.next_wakeup();  // takes it into the wheel; the next stays in the queue
  timer.new_timeout(must_not_run, 1ms);
  EXPECT_EQ(timer.stop().size(), 2u);
  EXPECT_EQ(timer.advance(1h), 0u);
  EXPECT_EQ(timer.now(), kStart + 1h);
  EXPECT_FALSE(timer.next_wakeup());
}

TEST(ManualTimer, MayBeDestroyedInsideCancelled) {
  for (const bool schedules : {false, true}) {
    auto timer = std::make_unique<ManualTimer>(1ms, kStart);
    timer->new_timeout([] {}, 1s);
    const auto destroy = [&] {
      if (schedules) timer->new_timeout([] {}, 1s);
      timer.reset();
    };
    timer->new_timeout(on_cancelled(destroy), 1s).cancel();
    EXPECT_EQ(timer->next_wakeup(), std::nullopt) << "there is no timer to come back to";
    EXPECT_EQ(timer, nullptr);
  }
}

/// A call makes a limited number of passes, because cancelled() or another thread may always schedule more.
TEST(ManualTimer, ACallEndsAlthoughEachCancelledSchedulesAndCancelsAgain) {
  constexpr int kMany = 1000;
  int cancelled = 0;
  std::shared_ptr<TimerTask> task;
  ManualTimer timer(1ms, kStart);  // after the task, because its end still calls cancelled()
  task = on_cancelled([&] {
    if (++cancelled < kMany) timer.try_new_timeout(task, 1s).cancel();
  });
  timer.new_timeout(task, 1s).cancel();
  timer.next_wakeup();
  timer.advance(1ms);
  EXPECT_GE(cancelled, 2);
  EXPECT_LT(cancelled, kMany / 10);
}

/// cancelled() and the destructors of callables call the timer while it is destroyed. cancelled() runs as tasks do, so
/// advance(), advance_to() and stop() throw there.
TEST(ManualTimer, MayBeAskedForAnythingWhileItIsDestroyed) {
  const auto count_refusals = [](ManualTimer& timer) {
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_FALSE(timer.try_new_timeout([] {}, 1ms));
    timer.next_wakeup();
    return throws<IllegalState>([&] { EXPECT_EQ(timer.advance(1ms), 0u); }) +
           throws<IllegalState>([&] { EXPECT_EQ(timer.advance_to(kStart + 1h), 0u); }) +
           throws<IllegalState>([&] { timer.stop(); });
  };
  int refused_in_cancelled = -1, refused_in_destructor = -1;
  {
    ManualTimer timer(1ms, kStart);
    std::shared_ptr<int> last(new int, [&](int* number) {
      refused_in_destructor = count_refusals(timer);
      delete number;
    });
    timer.new_timeout([last = std::move(last)] {}, 1s);
    timer.new_timeout(on_cancelled([&] { refused_in_cancelled = count_refusals(timer); }), 1s);
  }
  EXPECT_EQ(refused_in_cancelled, 3);
  EXPECT_EQ(refused_in_destructor, 0);
}

TEST(ManualTimer, ATimeoutThatCancelledSchedulesIsSeenAtOnce) {
  int runs = 0;
  ManualTimer timer;
  const auto replaced = on_cancelled([&] { timer.new_timeout([&] { ++runs; }, 1ms); });
  timer.new_timeout(replaced, 10ms).cancel();
  EXPECT_EQ(timer.next_wakeup(), timer.now() + 1ms);
  EXPECT_EQ(timer.stats().backlog, 0);
  timer.new_timeout(replaced, 10ms).cancel();
  timer.advance(5ms);
  EXPECT_EQ(runs, 2);
}

TEST(ManualTimerThreads, AdvanceOneAtATime) {
  ManualTimer timer(1ms, kStart);
  std::atomic<int> inside = 0, ran = 0;
  for (int i = 0; i < 400; ++i) {
    after(timer, i * 1ms, [&] {
      EXPECT_EQ(++inside, 1);
      ++ran;
      --inside;
    });
  }
  run_together(4, [&](int) {
    for (int i = 0; i < 125; ++i) timer.advance(1ms);
  });
  EXPECT_EQ(timer.now(), kStart + 500ms);
  EXPECT_EQ(ran, 400);
}

}  // namespace
}  // namespace hwt
