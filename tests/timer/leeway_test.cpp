// A leeway: the timer runs the task at the roundest tick in [deadline, deadline + leeway].

#include "hashed_wheel_timer/leeway.h"

#include <new>

#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {
using internal::kForever;
using internal::TickGrid;
using std::chrono::nanoseconds;
using Time = steady_clock::time_point;

template <class T>
class LeewayOf : public ::testing::Test {};
TYPED_TEST_SUITE(LeewayOf, AllTimers);

TEST(Roundest, IsTheDeadlineItselfWithoutAPointOfTheGrid) {
  constexpr TickGrid kGrid{0, 100};
  EXPECT_EQ(kGrid.roundest(101, 199), 101);
  EXPECT_EQ(kGrid.roundest(101, 200), 200);
  EXPECT_EQ(kGrid.roundest(200, 200), 200);
  EXPECT_EQ(kGrid.roundest(-5, 99), -5);
}

TEST(Roundest, NeverMakesATimeoutOneThatIsNeverDue) {
  for (const std::int64_t tick : {std::int64_t{1}, std::int64_t{3}, std::int64_t{1'000'000}}) {
    const TickGrid grid{-5, tick};
    EXPECT_EQ(grid.roundest(kForever, kForever), kForever);
    for (const std::int64_t earliest : {std::int64_t{-10}, std::int64_t{1}, kForever / 2, kForever - 1}) {
      const std::int64_t rounded = grid.roundest(earliest, kForever);
      EXPECT_GE(rounded, earliest);
      EXPECT_LT(rounded, kForever);
    }
  }
  // The last tick that ends.
  EXPECT_EQ((TickGrid{0, 2}.roundest(kForever - 2, kForever)), kForever - 1);
}

TYPED_TEST(LeewayOf, NeverRunsBeforeTheDeadlineNorAfterTheLeeway) {
  constexpr auto kLeeway = 20ms;
  std::atomic<int> early = 0;
  std::atomic<int> ran = 0;
  const auto timer = make_timer<TypeParam>();
  std::vector<Timeout> timeouts;
  std::vector<Time> deadlines;
  timer->new_timeout([] {}, 0ns);  // starts the timer, so that its ticks begin before the deadlines
  const Time start = timer->now();
  for (int i = 0; i != 100; ++i) {
    const Time deadline = start + 30ms + i * 313us;
    deadlines.push_back(deadline);
    timeouts.push_back(timer->new_timeout(
        [&early, &ran, deadline, &timer = *timer] {
          if (timer.now() < deadline) ++early;
          ++ran;
        },
        deadline, Leeway(kLeeway)));
  }
  ASSERT_TRUE(passes_until(*timer, [&] { return ran == 100; }));
  EXPECT_EQ(early, 0);
  std::vector<Time> chosen;
  for (std::size_t i = 0; i != timeouts.size(); ++i) {
    EXPECT_GE(timeouts[i].deadline(), deadlines[i]);
    EXPECT_LE(timeouts[i].deadline(), deadlines[i] + kLeeway);
    if (chosen.empty() || chosen.back() != timeouts[i].deadline()) chosen.push_back(timeouts[i].deadline());
  }
  // The deadlines span 31 ms, and each leeway contains a multiple of 16 ticks.
  EXPECT_LE(chosen.size(), 4U);
  for (std::size_t i = 1; i < chosen.size(); ++i) {
    EXPECT_EQ((chosen[i] - chosen[i - 1]) % 16ms, nanoseconds::zero()) << "a tick that is less round";
  }
}

TYPED_TEST(LeewayOf, IsTakenByEachFunctionThatSchedulesOrMoves) {
  const auto timer = make_timer<TypeParam>();
  const auto shared = std::make_shared<RecordingTask>();
  const Leeway leeway(100s);
  // 3,650,000 to 3,750,000 ticks from the start, which is when the first of them is scheduled. 3,670,016 is the
  // roundest, also for those that come or are due some seconds earlier or later.
  constexpr auto kDelay = 3'650s;
  const Time expected = timer->new_timeout([] {}, kDelay, leeway).deadline();
  const Time exact = timer->now() + kDelay - 1s;
  EXPECT_GE(expected, exact + 1s);
  const auto at = [&](TimeoutId id) { return timer->find(id).deadline(); };
  EXPECT_EQ(timer->new_timeout(shared, kDelay, leeway).deadline(), expected);
  EXPECT_EQ(timer->new_timeout([] {}, exact, leeway).deadline(), expected);
  EXPECT_EQ(timer->new_timeout(shared, exact, leeway).deadline(), expected);
  EXPECT_EQ(timer->try_new_timeout([] {}, kDelay, leeway).deadline(), expected);
  EXPECT_EQ(timer->try_new_timeout(shared, kDelay, leeway).deadline(), expected);
  EXPECT_EQ(timer->try_new_timeout([] {}, exact, leeway).deadline(), expected);
  EXPECT_EQ(timer->try_new_timeout(shared, exact, leeway).deadline(), expected);
  EXPECT_EQ(at(timer->add([] {}, kDelay, leeway)), expected);
  EXPECT_EQ(at(timer->add([] {}, exact, leeway)), expected);
  EXPECT_EQ(at(timer->try_add([] {}, kDelay, leeway)), expected);
  EXPECT_EQ(at(timer->try_add([] {}, exact, leeway)), expected);
  TimeoutScope scope(*timer);
  EXPECT_EQ(at(scope.add([] {}, kDelay, leeway)), expected);
  EXPECT_EQ(at(scope.add([] {}, exact, leeway)), expected);
  Timeout moved = timer->new_timeout([] {}, 10 * kFar);
  EXPECT_TRUE(moved.reschedule(kDelay, leeway));
  EXPECT_EQ(moved.deadline(), expected);
  EXPECT_TRUE(moved.reschedule(exact + 10 * kFar));
  EXPECT_TRUE(moved.reschedule(exact, leeway));
  EXPECT_EQ(moved.deadline(), expected);
  const TimeoutId named = timer->add([] {}, 10 * kFar);
  EXPECT_TRUE(timer->reschedule(named, kDelay, leeway));
  EXPECT_EQ(at(named), expected);
  EXPECT_TRUE(timer->reschedule(named, exact + 10 * kFar));
  EXPECT_TRUE(timer->reschedule(named, exact, leeway));
  EXPECT_EQ(at(named), expected);
  EXPECT_FALSE(Timeout().reschedule(kDelay, leeway));
}

TYPED_TEST(LeewayOf, OfZeroOrLessKeepsTheDeadline) {
  const auto timer = make_timer<TypeParam>();
  const Time deadline = timer->now() + kFar + 123ns;
  for (const Leeway leeway : {Leeway(), Leeway{0ms}, Leeway{-1ms}, Leeway{(nanoseconds::min)()}}) {
    EXPECT_EQ(timer->new_timeout([] {}, deadline, leeway).deadline(), deadline);
  }
}

TYPED_TEST(LeewayOf, BeyondTheRangeOfTheClockIsNoError) {
  std::atomic<bool> ran = false;
  const auto timer = make_timer<TypeParam>();
  const Leeway leeway{(nanoseconds::max)()};
  EXPECT_EQ(timer->new_timeout([] {}, (Time::max)(), leeway).deadline(), (Time::max)());
  const Time deadline = (Time::max)() - 1ns;
  EXPECT_EQ(timer->new_timeout([] {}, deadline, leeway).deadline(), deadline);
  EXPECT_LT(timer->new_timeout([] {}, kFar, leeway).deadline(), (Time::max)());
  EXPECT_GE(timer->new_timeout([] {}, kFar, leeway).deadline(), timer->now() + kFar - kClockIsAhead - 1s);
  // A deadline that has passed is due now, if the leeway has passed as well.
  timer->new_timeout([&ran] { ran = true; }, (Time::min)(), Leeway{1ms});
  EXPECT_TRUE(passes_until(*timer, [&] { return ran.load(); }));
}

TYPED_TEST(LeewayOf, OfNaNIsRefusedByNameAndAnyByAStoppedTimer) {
  const Leeway nan{kNanDelay};
  const auto timer = make_timer<TypeParam>();
  const auto message = [](auto call) { return message_of<std::invalid_argument>(call); };
  EXPECT_EQ(message([&] { timer->new_timeout([] {}, kFar, nan); }), "new_timeout: leeway: NaN (expected: a number)");
  EXPECT_EQ(message([&] { timer->add([] {}, kFar, nan); }), "add: leeway: NaN (expected: a number)");
  EXPECT_FALSE(timer->try_new_timeout([] {}, kFar, nan));
  EXPECT_FALSE(timer->try_add([] {}, kFar, nan));
  Timeout timeout = timer->new_timeout([] {}, kFar);
  const Time deadline = timeout.deadline();
  EXPECT_EQ(message([&] { timeout.reschedule(1ms, nan); }), "reschedule: leeway: NaN (expected: a number)");
  EXPECT_EQ(timeout.deadline(), deadline);
  EXPECT_EQ(timer->stats().scheduled, 1);
  timer->stop();
  EXPECT_THROW(timer->new_timeout([] {}, kFar, Leeway{1s}), IllegalState);
  EXPECT_FALSE(timer->try_new_timeout([] {}, kFar, Leeway{1s}));
  EXPECT_FALSE(timeout.reschedule(kFar, Leeway{1s}));
}

TEST(LeewayWithoutAThread, ThrowsTheErrorOfTheFactoryAndChangesNothing) {
  HashedWheelTimer timer{{.thread_factory = [](auto) -> std::thread { throw std::bad_alloc(); }}};
  EXPECT_THROW(timer.new_timeout([] {}, kFar, Leeway{1s}), std::bad_alloc);
  EXPECT_FALSE(timer.try_new_timeout([] {}, kFar, Leeway{1s}));
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// Runs 10,000 timeouts, one each 100 us, at a tick of 1 us. Returns how often a loop that drives the timer wakes up.
std::int64_t wakeups(Leeway leeway) {
  ManualTimer timer{1us, Time(5s)};
  int ran = 0;
  for (int i = 0; i != 10'000; ++i) timer.new_timeout([&ran] { ++ran; }, 1s + i * 100us + 37us, leeway);
  while (const auto next = timer.next_wakeup()) timer.advance_to(*next);
  EXPECT_EQ(ran, 10'000);
  return timer.stats().wakeups;
}

TEST(LeewayOf10ms, LetsTenThousandTimeoutsASecondMeetInOneWakeUpForEach8192Us) {
  EXPECT_LE(wakeups(Leeway{10ms}), 1'000'000 / 8'192 + 4);
  EXPECT_LE(wakeups(Leeway{100ms}), 1'000'000 / 65'536 + 4);
  EXPECT_GE(wakeups(Leeway{}), 10'000);
}

}  // namespace
}  // namespace hwt::test
