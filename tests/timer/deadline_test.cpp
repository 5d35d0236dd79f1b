// Deadlines that callers know, for a timer with a worker. It reads no clock for them, and treats those in the past as
// due now. What every timer promises of them: conformance_test.

#include "hashed_wheel_timer/keyed_timer.h"
#include "tests/support/any_timer.h"
#include "tests/support/clock_readings.h"

namespace hwt::test {
namespace {
using Time = steady_clock::time_point;

template <class T>
class Deadlines : public ::testing::Test {};

TYPED_TEST_SUITE(Deadlines, ThreadedTimers, TimerNames);

#ifdef HWT_TEST_COUNTS_CLOCK_READINGS

void expect_no_reading(Timer& timer, const std::vector<Time>& deadlines) {
  const auto shared = std::make_shared<RecordingTask>();
  KeyedTimer<int, int> keyed(timer, [](const int&, int&) {});
  // An act on a timeout whose expiry has begun reads a clock. So each act has a timeout or key of its own, which is far
  // from due until then.
  const int count = static_cast<int>(deadlines.size());
  std::vector<Timeout> far;
  for (int i = 0; i < count; ++i) {
    far.push_back(timer.new_timeout([] {}, kFar));
    (void)keyed.set(3 * i, 1, kFar);
    (void)keyed.set(3 * i + 1, 1, kFar);
  }
  const int before = clock_readings;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Time deadline = deadlines[at];
    timer.new_timeout([] {}, deadline);
    timer.new_timeout(shared, deadline);
    EXPECT_TRUE(timer.try_new_timeout([] {}, deadline));
    EXPECT_TRUE(timer.try_new_timeout(shared, deadline));
    Timeout cancelled = timer.new_timeout([] {}, deadline);
    cancelled.cancel();
    far[at].reschedule(deadline);
    (void)keyed.set(3 * i, 2, deadline);
    (void)keyed.move(3 * i + 1, deadline);
    (void)keyed.set(3 * i + 2, 1, deadline);
  }
  EXPECT_EQ(clock_readings, before);
}

TYPED_TEST(Deadlines, ReadNoClock) {
  TypeParam timer(1ms);
  timer.start();
  const Time now = timer.now();
  const std::vector<Time> future{now + 10ms, now + 1h, now + 100h, Time::max()};
  expect_no_reading(timer, future);
  settle(timer);
  // A worker that sleeps is woken for these.
  for (int i = 0; i < 20; ++i) {
    settle(timer);
    expect_no_reading(timer, {timer.now()});
    settle(timer);
    expect_no_reading(timer, {now - 1h, Time::min()});
  }
  TypeParam exact(Options{.tick_duration = 1ms, .exact_clock = true});
  exact.start();
  settle(exact);
  // Without exact_clock, a reading of the cycle counter would not be counted.
  expect_no_reading(exact, {exact.now() - 1h, exact.now(), exact.now() + 1h, Time::min(), Time::max()});
  const int before = clock_readings;
  exact.new_timeout([] {}, 1h);
  EXPECT_EQ(clock_readings, before + 1) << "or this test could not fail";
}

TEST(ManualDeadlines, ReadNoClock) {
  ManualTimer timer;
  expect_no_reading(timer, {timer.now() - 1h, timer.now(), timer.now() + 1h, Time::max()});
}

TYPED_TEST(Deadlines, OnlyTheFirstMayReadAClockToStartTheTimer) {
  const Time deadline = steady_clock::now() + kFar;
  TypeParam timer(1ms);
  timer.new_timeout([] {}, deadline);
  const int before = clock_readings;
  timer.new_timeout([] {}, deadline);
  EXPECT_EQ(clock_readings, before);
}

#endif

/// Calls attempt(timer, start) with fresh timers of that tick until three attempts have counted. A timer's grid begins
/// at `start` or a little later. attempt() returns a check, for the case that nothing was held up. Else the grid may
/// have begun late. Or the worker may have read the clock in one tick and taken the timeout in the next one, so that it
/// ran in the middle of a tick. Then attempt() returns an empty function, or the lag tells.
template <class T>
void judge(std::chrono::nanoseconds tick, const std::function<std::function<void()>(T& timer, Time start)>& attempt) {
  int judged = 0;
  for (int attempts = 0; attempts < 100 && judged < 3; ++attempts) {
    T timer(tick);
    const Time start = timer.now();
    timer.start();
    const Time latest_start = timer.now();
    const std::function<void()> check = attempt(timer, start);
    timer.stop();
    if (!check || latest_start >= start + tick / 4 || timer.stats().max_lag >= tick / 2) continue;
    check();
    ++judged;
  }
  EXPECT_GT(judged, 0);
}

constexpr auto kTick = 40ms;

/// A delay of zero runs before deadlines that came after it, however far these are in the past. All wait for the same
/// grid point. The worker has been asleep for more than a tick, and only these timeouts can wake it.
TYPED_TEST(Deadlines, InThePastAreDueAtTheNextPointOfTheGridInTheOrderOfScheduling) {
  judge<TypeParam>(kTick, [](TypeParam& timer, Time start) -> std::function<void()> {
    std::this_thread::sleep_until(start + kTick * 3 / 2);
    std::vector<std::pair<int, Time>> runs;
    Latch done(4);
    const auto task = [&](int i) {
      return [&, i] {
        runs.emplace_back(i, timer.now());
        done.count_down();
      };
    };
    timer.new_timeout(task(0), start - 1h);
    timer.new_timeout(task(1), 0ms);
    timer.new_timeout(task(2), start);
    timer.new_timeout(task(3), Time::min());
    const bool in_one_tick = timer.now() < start + 2 * kTick;
    EXPECT_TRUE(done.wait());
    if (!in_one_tick) return {};
    return [=] {
      for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(runs[static_cast<std::size_t>(i)].first, i);
        EXPECT_GE(runs[static_cast<std::size_t>(i)].second, start + 2 * kTick) << "not at a grid point";
      }
    };
  });
}

TYPED_TEST(Deadlines, MovedToThePastAreDueAtTheNextPointOfTheGrid) {
  for (const bool in_the_wheel : {false, true}) {
    judge<TypeParam>(kTick, [&](TypeParam& timer, Time start) -> std::function<void()> {
      RunLog run;
      Timeout moved = timer.new_timeout([&] { run(); }, kFar);
      if (in_the_wheel) settle(timer);
      std::this_thread::sleep_until(start + kTick * 5 / 2);
      EXPECT_TRUE(moved.reschedule(start - 1h));
      const bool in_one_tick = timer.now() < start + 3 * kTick;
      EXPECT_TRUE(run.wait());
      if (!in_one_tick) return {};
      return [=, ran_at = run.started()] { EXPECT_GE(ran_at, start + 3 * kTick) << "not at a grid point"; };
    });
  }
}

/// The worker is not late because of a deadline that had passed long before it heard of it.
TYPED_TEST(Deadlines, InThePastAreNoLag) {
  constexpr auto kIdle = 200ms;
  bool small = false;
  for (int attempt = 0; attempt < 20 && !small; ++attempt) {
    TypeParam timer(1ms);
    settle(timer);
    std::this_thread::sleep_for(kIdle);
    Latch done;
    timer.new_timeout([&] { done.count_down(); }, timer.now() - 100ms);
    ASSERT_TRUE(done.wait());
    settle(timer);
    small = timer.stats().max_lag < kIdle / 4;
  }
  EXPECT_TRUE(small);
}

/// One of them wakes the worker, which then sleeps to the end of the tick. All of them are due there. That makes two
/// wake-ups, or four if a tick ends during the flood.
TYPED_TEST(Deadlines, AFloodInThePastWakesTheWorkerOnce) {
  constexpr int kTimeouts = 500;
  TypeParam timer(100ms);
  timer.start();
  bool few = false;
  for (int attempt = 0; attempt < 20 && !few; ++attempt) {
    settle(timer);
    const std::int64_t before = timer.stats().wakeups;
    Latch done(kTimeouts);
    for (int i = 0; i < kTimeouts; ++i) {
      timer.new_timeout([&] { done.count_down(); }, Time::min() + 1h);
      if (i % 50 == 0) std::this_thread::sleep_for(100us);  // the worker may sleep again
    }
    ASSERT_TRUE(done.wait());
    few = timer.stats().wakeups - before <= 4;
  }
  EXPECT_TRUE(few);
}

}  // namespace
}  // namespace hwt::test
