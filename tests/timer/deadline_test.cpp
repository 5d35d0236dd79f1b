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
  timer.new_timeout([] {}, steady_clock::now() + kFar);  // may read a clock to start the timer
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

#endif

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

}  // namespace
}  // namespace hwt::test
