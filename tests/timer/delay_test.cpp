// A delay takes every std::chrono::duration. It rounds up, and saturates instead of overflowing. And leeways.

#include "hashed_wheel_timer/delay.h"

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

using std::chrono::duration;
using std::chrono::nanoseconds;

constexpr nanoseconds value_of(Delay delay) { return delay; }

/// Returns the delay as a timer takes it: a negative one is due now.
constexpr std::int64_t nanos(Delay delay) { return detail::not_negative(delay).count(); }

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

static_assert(nanos(1us) == 1000, "usable at compile time");

static_assert(sizeof(Delay) == 8);
static_assert(std::is_trivially_copyable_v<Delay>, "goes through a register");
static_assert(value_of(-1us) == -1us, "usable at compile time");
static_assert(std::is_nothrow_convertible_v<std::chrono::hours, Delay>);
static_assert(std::is_nothrow_convertible_v<duration<double>, Delay>);
static_assert(std::is_nothrow_convertible_v<Delay, nanoseconds>);
static_assert(!std::is_convertible_v<int, Delay>, "no unit");

TEST(Delay, ATimerTakesANegativeOneAsZero) {
  EXPECT_EQ(nanos(-1ns), 0);
  EXPECT_EQ(nanos(nanoseconds::min()), 0);
  EXPECT_EQ(nanos(duration<double>(-kInfinity)), 0);
  EXPECT_EQ(nanos(duration<float>::min()), 0) << "the lowest float";
}

TEST(Delay, OnlyNaNIsTheLowestNanoseconds) {
  EXPECT_TRUE(Delay(duration<double>(kNan)).is_nan());
  EXPECT_TRUE(Delay(duration<float, std::milli>(std::numeric_limits<float>::quiet_NaN())).is_nan());
  EXPECT_TRUE(Delay(duration<long double>(-std::numeric_limits<long double>::quiet_NaN())).is_nan());
  const volatile double computed = kNan;  // not by the compiler
  EXPECT_TRUE(Delay(duration<double>(computed)).is_nan());
  EXPECT_EQ(value_of(duration<double>(kNan)), nanoseconds::min());
  EXPECT_EQ(nanos(duration<double>(kNan)), 0) << "and the conversion does not overflow";

  for (const Delay delay : {Delay(), Delay(1s), Delay(duration<double>(0)), Delay(duration<double>(kInfinity))}) {
    EXPECT_FALSE(delay.is_nan());
  }
  const std::atomic<nanoseconds> lowest(nanoseconds::min());
  for (const Delay delay :
       {Delay(nanoseconds::min()), Delay(std::chrono::hours::min()), Delay(std::chrono::microseconds::min()),
        Delay(duration<double>(-kInfinity)), Delay(duration<double>(std::numeric_limits<double>::lowest())),
        Delay(duration<int, std::ratio<10'000'000'000>>::min()), Delay(lowest)}) {
    EXPECT_FALSE(delay.is_nan());
    EXPECT_EQ(nanoseconds(delay), nanoseconds::min() + nanoseconds(1));
  }
  const Delay copy = Delay(duration<double>(kNan));
  EXPECT_TRUE(Delay(copy).is_nan()) << "a copy is not made from nanoseconds";
}

// A type with a conversion operator, and a type that derives from a duration.
TEST(Delay, TakesDurationsThatConvertToNanoseconds) {
  struct Setting {
    operator nanoseconds() const { return nanoseconds(5); }  // NOLINT(google-explicit-constructor)
    operator int() const { return 7; }                       // NOLINT(google-explicit-constructor)
  };
  EXPECT_EQ(value_of(Setting()), nanoseconds(5));
  static_assert(!std::is_nothrow_convertible_v<Setting, Delay>, "its operator may throw");
  const std::atomic<nanoseconds> shared(nanoseconds(6));
  EXPECT_EQ(value_of(shared), nanoseconds(6));
  nanoseconds later(8);
  EXPECT_EQ(value_of(std::ref(later)), nanoseconds(8));
  struct Hours : std::chrono::hours {
    using duration::duration;
  };
  EXPECT_EQ(value_of(Hours(2)), 2h);
  EXPECT_EQ(value_of(Hours(std::numeric_limits<Hours::rep>::max())), nanoseconds::max()) << "saturates, as its base";
}

#ifdef __SIZEOF_INT128__
TEST(Delay, TakesCountsOf128Bits) {
  __extension__ using Signed = __int128;
  __extension__ using Unsigned = unsigned __int128;
  constexpr Unsigned kLargest = ~Unsigned{0};
  constexpr auto kLowest = static_cast<Signed>(Unsigned{1} << 127);
  EXPECT_EQ(value_of(duration<Signed, std::nano>(5)), nanoseconds(5));
  EXPECT_EQ(value_of(duration<Signed, std::nano>(-5)), nanoseconds(-5));
  EXPECT_EQ(value_of(duration<Signed, std::nano>((Signed{1} << 64) + 5)), nanoseconds::max());
  EXPECT_EQ(value_of(duration<Signed, std::nano>(-(Signed{1} << 64) - 5)), -nanoseconds::max());
  EXPECT_EQ(value_of(duration<Signed>(kLowest)), -nanoseconds::max());
  EXPECT_EQ(value_of(duration<Signed, std::atto>(kLowest)), -nanoseconds::max());
  EXPECT_EQ(value_of(duration<Unsigned, std::pico>(kLargest)), nanoseconds::max());
  EXPECT_EQ(value_of(duration<Unsigned, std::pico>((Unsigned{1} << 64) + 5)), nanoseconds(18'446'744'073'709'552));
  EXPECT_EQ(value_of(duration<Signed, std::pico>(-(Signed{1} << 64) - 5)), nanoseconds(-18'446'744'073'709'552));
}
#endif

void free_function() {}

TEST(Delay, FindsTheRightOverloadForEachTask) {
  ManualTimer timer;
  int ran = 0;
  auto task = std::make_shared<RecordingTask>();
  const std::shared_ptr<TimerTask> none;
  const std::atomic<nanoseconds> shared(1ms);
  const auto owner = [&ran, owned = std::make_unique<int>(1)] { ran += *owned; };
  EXPECT_TRUE(timer.new_timeout(free_function, 0.5s));
  EXPECT_TRUE(timer.try_new_timeout(*free_function, duration<float, std::ratio<1, 3>>(1)));
  EXPECT_TRUE(timer.new_timeout([&ran](Timeout&) { ++ran; }, shared));
  EXPECT_TRUE(timer.new_timeout([&ran, owned = std::make_unique<int>(1)] { ran += *owned; }, 1ms));
  EXPECT_TRUE(timer.new_timeout(std::ref(owner), 1ms));
  EXPECT_TRUE(timer.new_timeout(task, shared));
  EXPECT_TRUE(timer.new_timeout(std::shared_ptr<TimerTask>(task), 0.5s));
  EXPECT_TRUE(timer.try_new_timeout(std::move(task), shared));
  EXPECT_THROW(timer.new_timeout(nullptr, 1ms), std::invalid_argument);
  EXPECT_THROW(timer.new_timeout(none, 1ms), std::invalid_argument);
  EXPECT_THROW(timer.new_timeout(std::function<void()>(), 0.5s), std::invalid_argument);
  EXPECT_FALSE(timer.try_new_timeout(nullptr, 1ms));
  EXPECT_EQ(timer.advance(1s), 8U);
  EXPECT_EQ(ran, 3);
  static_assert(noexcept(timer.try_new_timeout(free_function, nanoseconds::zero())));
  static_assert(noexcept(timer.try_new_timeout(nullptr, nanoseconds::zero())));
}

TEST(Delay, EachRefusalNamesItsParameter) {
  const duration<double> nan(kNan);
  ManualTimer timer;
  Timeout timeout = timer.new_timeout([] {}, 1h);
  const auto deadline = timeout.deadline();
  KeyedTimer<int, int> keyed(timer, [](const int&, int&) {});
  (void)keyed.set(1, 1, 1h);
  const auto message = [](auto&& call) { return message_of<std::invalid_argument>(call); };
  const std::string of_delay = ": delay: NaN (expected: a number)";
  EXPECT_EQ(message([&] { timer.new_timeout([] {}, nan); }), "new_timeout" + of_delay);
  EXPECT_EQ(message([&] { timer.new_timeout(std::make_shared<RecordingTask>(), nan); }), "new_timeout" + of_delay);
  EXPECT_EQ(message([&] { timeout.reschedule(nan); }), "reschedule" + of_delay);
  EXPECT_EQ(message([&] { Timeout().reschedule(nan); }), "reschedule" + of_delay);
  EXPECT_EQ(message([&] { (void)keyed.set(1, 2, nan); }), "KeyedTimer" + of_delay);
  EXPECT_EQ(message([&] { (void)keyed.set(2, 2, nan); }), "KeyedTimer" + of_delay);
  EXPECT_EQ(message([&] { (void)keyed.move(1, nan); }), "KeyedTimer" + of_delay);
  EXPECT_EQ(message([&] { (void)keyed.move(2, nan); }), "KeyedTimer" + of_delay);
  EXPECT_EQ(message([&] { Schedule::once(nan); }), "Schedule" + of_delay);
  EXPECT_EQ(message([&] { Schedule::fixed_delay(1s, nan); }), "Schedule" + of_delay);
  EXPECT_EQ(message([&] { Schedule::fixed_delay(nan, 1s); }), "Schedule: initial: NaN (expected: a number)");
  EXPECT_EQ(message([&] { Schedule::fixed_rate(nan, 1s); }), "Schedule: initial: NaN (expected: a number)");
  EXPECT_EQ(message([&] { Schedule::fixed_rate(1s, nan); }), "Schedule: period: NaN (expected: a number)");
  EXPECT_EQ(message([&] { RepeatedTimer("t", nan, timer, {.on_trigger = [] {}}); }),
            "RepeatedTimer: timeout: NaN (expected: a number)");
  RepeatedTimer repeated("t", 1s, timer, {.on_trigger = [] {}});
  EXPECT_EQ(message([&] { repeated.reset(nan); }), "RepeatedTimer: timeout: NaN (expected: a number)");
  EXPECT_EQ(message([&] { timer.advance(nan); }), "ManualTimer: by: NaN (expected: a number)");
  EXPECT_EQ(message([&] { timer.advance(-1ns); }), "ManualTimer: by: -1 ns (expected: 0 ns or more)");

  EXPECT_EQ(timeout.deadline(), deadline);
  EXPECT_EQ(repeated.timeout(), 1s);
  EXPECT_EQ(keyed.size(), 1U);
  EXPECT_EQ(keyed.remove(1), 1);
  EXPECT_EQ(timer.pending_timeouts(), 1) << "nothing was scheduled on the way";
}

TEST(Delay, APassiveWheelRefusesNaN) {
  struct Node : WheelNode {
    void on_timeout() override {}
  };
  const std::chrono::steady_clock::time_point start{};
  const duration<double> nan(kNan);
  Node node;
  PassiveWheel wheel(1ms, start);
  EXPECT_EQ(message_of<std::invalid_argument>([&] { wheel.schedule(node, nan); }),
            "PassiveWheel: delay: NaN (expected: a number)");
  EXPECT_FALSE(node.scheduled());
  wheel.schedule(node, 5ms);
  EXPECT_THROW(wheel.schedule(node, nan), std::invalid_argument);
  wheel.postpone(node, nan);
  EXPECT_EQ(node.deadline(), start + 5ms);

  Node overdue;
  wheel.schedule(overdue, 5ms);
  EXPECT_EQ(wheel.advance(start + 10ms, 1), 1U);
  wheel.postpone(overdue, nan);
  EXPECT_EQ(overdue.deadline(), start + 5ms) << "it did not move, not even to the present";

  wheel.schedule(node, nanoseconds::min());
  EXPECT_EQ(node.deadline(), start + 10ms) << "that is a number: due now";
  static_assert(noexcept(wheel.postpone(node, nan)));
}

// A leeway: the timer runs the task at the roundest tick in [deadline, deadline + leeway].

using Time = steady_clock::time_point;

template <class T>
class LeewayOf : public ::testing::Test {};
TYPED_TEST_SUITE(LeewayOf, AllTimers);

TYPED_TEST(LeewayOf, NeverRunsBeforeTheDeadlineNorAfterTheLeeway) {
  constexpr auto kLeeway = 20ms;
  std::atomic<int> early = 0, ran = 0;
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
  TimeoutScope scope(*timer);
  Timeout moved = timer->new_timeout([] {}, 10 * kFar);
  const TimeoutId named = timer->add([] {}, 10 * kFar);
  for (const When when : {When(kDelay), When(exact)}) {
    EXPECT_EQ(timer->new_timeout([] {}, when, leeway).deadline(), expected);
    EXPECT_EQ(timer->new_timeout(shared, when, leeway).deadline(), expected);
    EXPECT_EQ(timer->try_new_timeout([] {}, when, leeway).deadline(), expected);
    EXPECT_EQ(timer->try_new_timeout(shared, when, leeway).deadline(), expected);
    EXPECT_EQ(at(timer->add([] {}, when, leeway)), expected);
    EXPECT_EQ(at(timer->try_add([] {}, when, leeway)), expected);
    EXPECT_EQ(at(scope.add([] {}, when, leeway)), expected);
    EXPECT_TRUE(moved.reschedule(10 * kFar) && moved.reschedule(when, leeway));
    EXPECT_EQ(moved.deadline(), expected);
    EXPECT_TRUE(timer->reschedule(named, 10 * kFar) && timer->reschedule(named, when, leeway));
    EXPECT_EQ(at(named), expected);
  }
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
