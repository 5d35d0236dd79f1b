// A delay takes every std::chrono::duration. It rounds up, and saturates instead of overflowing.

#include "hashed_wheel_timer/delay.h"

#include <ratio>

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

using std::chrono::duration;
using std::chrono::nanoseconds;

constexpr nanoseconds value_of(Delay delay) { return delay; }

/// Returns the delay as a timer takes it: a negative one is due now.
constexpr std::int64_t nanos(Delay delay) { return detail::not_negative(delay).count(); }

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
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

// A sample. tests/arithmetic proves the conversion for all counts, and tests/fuzz compares it with exact numbers.
TEST(Delay, IsExactInAnyUnitToTheEndsOfItsRange) {
  EXPECT_EQ(value_of(Delay{}), nanoseconds(0));
  EXPECT_EQ(value_of(nanoseconds(-5)), nanoseconds(-5));
  EXPECT_EQ(value_of(1'000'000h), nanoseconds(3'600'000'000'000'000'000));
  EXPECT_EQ(value_of(nanoseconds(kMax - 1)), nanoseconds(kMax - 1));
  constexpr std::int64_t kSeconds = kMax / 1'000'000'000;
  EXPECT_EQ(value_of(std::chrono::seconds(-kSeconds)), std::chrono::seconds(-kSeconds));
  EXPECT_EQ(value_of(std::chrono::seconds(kSeconds + 1)), nanoseconds::max());
  EXPECT_EQ(value_of((std::chrono::hours::min)()), -nanoseconds::max());
  EXPECT_LT(value_of(std::chrono::years(291)), nanoseconds::max());
  EXPECT_EQ(value_of(std::chrono::years(293)), nanoseconds::max());
  EXPECT_EQ(value_of(duration<int, std::ratio<10'000'000'000>>(-1)), -nanoseconds::max()) << "a period of 317 years";
  EXPECT_EQ(value_of(duration<double>(kInfinity)), nanoseconds::max());
  EXPECT_EQ(value_of(duration<long double>(1e4000L)), nanoseconds::max());
  EXPECT_EQ(value_of(duration<std::uint64_t, std::nano>(std::uint64_t{1} << 63)), nanoseconds::max());
  EXPECT_EQ(value_of(duration<std::int8_t, std::ratio<86400>>(127)), 127 * 24h);
}

TEST(Delay, FractionsAreRoundedAwayFromZero) {
  using Picoseconds = duration<std::int64_t, std::pico>;
  EXPECT_EQ(value_of(Picoseconds(1000)), nanoseconds(1));
  EXPECT_EQ(value_of(Picoseconds(1001)), nanoseconds(2));
  EXPECT_EQ(value_of(Picoseconds(-1)), nanoseconds(-1));
  using Frames = duration<std::int64_t, std::ratio<1001, 30000>>;
  EXPECT_EQ(value_of(Frames(1)), nanoseconds(33'366'667));                               // 33 366 666 2/3
  EXPECT_EQ(value_of(Frames(270'000'000'000)), nanoseconds(9'009'000'000'000'000'000));  // count * 1001 would not fit
  constexpr std::int64_t kPerSecond = 1'000'000'000'039;
  EXPECT_EQ(value_of(duration<std::int64_t, std::ratio<1, kPerSecond>>(kPerSecond - 1)), 1s) << "a large denominator";
  // With a large numerator too: 2,999,999,999 * 10,000,000,019 / 3,000,000,000.
  using Odd = duration<std::int64_t, std::ratio<10'000'000'019, 3'000'000'000'000'000'000>>;
  EXPECT_EQ(value_of(Odd(2'999'999'999)), nanoseconds(10'000'000'016));
  EXPECT_EQ(value_of(duration<std::uint64_t, std::ratio<51, 100'000'000'000>>(100)), nanoseconds(51));
  EXPECT_EQ(value_of(duration<double, std::nano>(-1.25)), nanoseconds(-2));
  EXPECT_EQ(value_of(duration<double, std::pico>(1500.5)), nanoseconds(2)) << "rounded once";
  EXPECT_EQ(value_of(duration<double>(std::numeric_limits<double>::denorm_min())), nanoseconds(1));
  constexpr long double kLeast = std::numeric_limits<long double>::denorm_min();
  EXPECT_EQ(value_of(duration<long double, std::atto>(-kLeast)), nanoseconds(-1)) << "although the product is 0";
}

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

TEST(Delay, PassesThroughAFunctionOfTheUser) {
  const auto retry_in = [](Timer& timer, Delay delay) { return timer.new_timeout([] {}, delay); };
  ManualTimer timer;
  EXPECT_EQ(retry_in(timer, 250ms).deadline(), timer.now() + 250ms);
  EXPECT_EQ(retry_in(timer, 0.5s).deadline(), timer.now() + 500ms);
  EXPECT_THROW(retry_in(timer, duration<double>(kNan)), std::invalid_argument);
}

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

}  // namespace
}  // namespace hwt::test
