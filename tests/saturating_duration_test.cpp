// Every duration that C++ can spell becomes a delay that is never shorter and never overflows.

#include "hashed_wheel_timer/saturating_duration.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

#include "gtest/gtest.h"
#include "test_support.h"

namespace hwt {
namespace {

using namespace std::chrono_literals;
using detail::is_nan;
using detail::saturating_nanoseconds;
using std::chrono::duration;
using std::chrono::nanoseconds;

template <class Rep, class Period>
constexpr std::int64_t nanos(duration<Rep, Period> delay) {
  return saturating_nanoseconds(delay).count();
}

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

static_assert(nanos(1us) == 1000, "usable at compile time");

TEST(SaturatingDuration, OrdinaryDelaysAreExact) {
  EXPECT_EQ(nanos(0s), 0);
  EXPECT_EQ(nanos(1ns), 1);
  EXPECT_EQ(nanos(3ms), 3'000'000);
  EXPECT_EQ(nanos(24h), 86'400'000'000'000);
  EXPECT_EQ(nanos(1'000'000h), 3'600'000'000'000'000'000);
  EXPECT_EQ(nanos(nanoseconds(kMax - 1)), kMax - 1);
  EXPECT_EQ(nanos(nanoseconds::max()), kMax);
}

TEST(SaturatingDuration, NegativeIsDueNow) {
  EXPECT_EQ(nanos(-1ns), 0);
  EXPECT_EQ(nanos(-1h), 0);
  EXPECT_EQ(nanos(nanoseconds::min()), 0);
  EXPECT_EQ(nanos(std::chrono::hours::min()), 0);
  EXPECT_EQ(nanos(duration<std::int64_t, std::pico>::min()), 0);
  EXPECT_EQ(nanos(duration<double>(-0.5)), 0);
  EXPECT_EQ(nanos(duration<double>(-0.0)), 0);
  EXPECT_EQ(nanos(duration<double>(-kInfinity)), 0);
  EXPECT_EQ(nanos(duration<float>::min()), 0);  // the lowest float
}

TEST(SaturatingDuration, BeyondTheRangeSaturates) {
  EXPECT_EQ(nanos(std::chrono::hours::max()), kMax);
  EXPECT_EQ(nanos(std::chrono::microseconds::max()), kMax);
  EXPECT_EQ(nanos(std::chrono::years(293)), kMax);
  EXPECT_LT(nanos(std::chrono::years(291)), kMax);
  EXPECT_EQ(nanos(duration<double>(1e300)), kMax);
  EXPECT_EQ(nanos(duration<double>(kInfinity)), kMax);
  EXPECT_EQ(nanos(duration<double>::max()), kMax);
  EXPECT_EQ(nanos(duration<float, std::milli>::max()), kMax);
  EXPECT_EQ(nanos(duration<long double>(1e4000L)), kMax);
  EXPECT_EQ(nanos(duration<std::int64_t, std::giga>(10)), kMax);
}

TEST(SaturatingDuration, TheLastMicrosecondsBeforeTheLimitAreNotEarly) {
  const std::int64_t last = kMax / 1000;
  EXPECT_GE(nanos(std::chrono::microseconds(last)), last * 1000);
  EXPECT_EQ(nanos(std::chrono::microseconds(last + 1)), kMax);
  EXPECT_GE(nanos(duration<std::uint64_t, std::nano>(kMax)), kMax);
}

TEST(SaturatingDuration, NotANumberIsRecognised) {
  EXPECT_TRUE(is_nan(duration<double>(kNan)));
  EXPECT_TRUE(is_nan(duration<float>(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_FALSE(is_nan(duration<double>(kInfinity)));
  EXPECT_FALSE(is_nan(duration<double>(0)));
  EXPECT_FALSE(is_nan(1s));
  EXPECT_EQ(nanos(duration<double>(kNan)), 0) << "whatever it is, it must not overflow";
}

TEST(SaturatingDuration, FloatingPointRoundsUp) {
  EXPECT_EQ(nanos(duration<double>(0.5)), 500'000'000);
  EXPECT_EQ(nanos(duration<float>(1.5F)), 1'500'000'000);
  EXPECT_EQ(nanos(duration<double, std::nano>(0.25)), 1);
  EXPECT_EQ(nanos(duration<double, std::nano>(1.0)), 1);
  EXPECT_EQ(nanos(duration<double, std::nano>(1.25)), 2);
  EXPECT_EQ(nanos(duration<double>(1e-10)), 1);
  EXPECT_EQ(nanos(duration<double>(std::numeric_limits<double>::denorm_min())), 1);
}

TEST(SaturatingDuration, FractionsOfANanosecondRoundUp) {
  using Picoseconds = duration<std::int64_t, std::pico>;
  EXPECT_EQ(nanos(Picoseconds(0)), 0);
  EXPECT_EQ(nanos(Picoseconds(1)), 1);
  EXPECT_EQ(nanos(Picoseconds(1000)), 1);
  EXPECT_EQ(nanos(Picoseconds(1001)), 2);
  EXPECT_EQ(nanos(Picoseconds::max()), kMax / 1000 + 1);
  using Femtoseconds = duration<std::int64_t, std::femto>;
  EXPECT_EQ(nanos(Femtoseconds(1)), 1);
  EXPECT_EQ(nanos(Femtoseconds(1'000'000)), 1);
  EXPECT_EQ(nanos(Femtoseconds::max()), kMax / 1'000'000 + 1);
}

TEST(SaturatingDuration, OddPeriods) {
  using Frames = duration<std::int64_t, std::ratio<1001, 30000>>;
  EXPECT_EQ(nanos(Frames(30000)), 1'001'000'000'000);
  EXPECT_EQ(nanos(Frames(1)), 33'366'667);                               // 33 366 666 2/3
  EXPECT_EQ(nanos(Frames(270'000'000'000)), 9'009'000'000'000'000'000);  // count * numerator would not fit
  EXPECT_EQ(nanos(Frames::max()), kMax);
  EXPECT_EQ(nanos(duration<int, std::ratio<1, 3>>(2)), 666'666'667);
}

TEST(SaturatingDuration, APeriodWithALargeDenominatorDoesNotOverflow) {
  constexpr std::int64_t kPerSecond = 1'000'000'000'039;
  using Ticks = duration<std::int64_t, std::ratio<1, kPerSecond>>;
  EXPECT_EQ(nanos(Ticks(kPerSecond)), 1'000'000'000);
  EXPECT_EQ(nanos(Ticks(kPerSecond - 1)), 1'000'000'000);
  EXPECT_EQ(nanos(Ticks(kPerSecond / 2)), 500'000'000);
}

TEST(SaturatingDuration, UnsignedAndNarrowCounts) {
  EXPECT_EQ(nanos(duration<std::uint64_t, std::nano>(std::numeric_limits<std::uint64_t>::max())), kMax);
  EXPECT_EQ(nanos(duration<std::uint64_t, std::nano>(std::uint64_t{1} << 63)), kMax);
  EXPECT_EQ(nanos(duration<std::uint64_t, std::nano>(5)), 5);
  EXPECT_EQ(nanos(duration<std::uint32_t>(4'000'000'000U)), 4'000'000'000'000'000'000);
  EXPECT_EQ(nanos(duration<std::uint8_t, std::milli>(255)), 255'000'000);
  EXPECT_EQ(nanos(duration<std::int8_t, std::ratio<86400>>(127)), 127LL * 86'400'000'000'000);
  EXPECT_EQ(nanos(duration<std::int8_t>(-128)), 0);
}

TEST(SaturatingDuration, TheTimerTakesEveryDuration) {
  test::Latch ran(4);
  HashedWheelTimer timer(1ms);
  const auto count = [&ran] { ran.count_down(); };
  EXPECT_TRUE(timer.new_timeout(count, duration<double>(0.001)));
  EXPECT_TRUE(timer.new_timeout(count, duration<std::int64_t, std::femto>(1)));
  EXPECT_TRUE(timer.new_timeout(count, nanoseconds::min()));
  EXPECT_TRUE(timer.new_timeout(count, duration<std::uint8_t, std::milli>(1)));
  ASSERT_TRUE(ran.wait());
}

TEST(SaturatingDuration, BeyondTheClockMeansNever) {
  HashedWheelTimer timer(1ms);
  const Timeout hours = timer.new_timeout([] {}, std::chrono::hours::max());
  const Timeout infinite = timer.new_timeout([] {}, duration<double>(kInfinity));
  const Timeout largest = timer.new_timeout([] {}, nanoseconds::max());
  for (const Timeout& timeout : {hours, infinite, largest}) {
    EXPECT_EQ(timeout.deadline(), std::chrono::steady_clock::time_point::max());
  }
  const test::Gate worker_has_seen_them(timer);
  EXPECT_FALSE(hours.is_expired() || infinite.is_expired() || largest.is_expired());
  EXPECT_EQ(timer.pending_timeouts(), 3);
}

TEST(Span, TakesAnyUnitToTheEndsOfItsRange) {
  using detail::Span;
  using std::chrono::nanoseconds;
  EXPECT_EQ(nanoseconds(Span(nanoseconds(-5))), nanoseconds(-5));
  EXPECT_EQ(nanoseconds(Span(std::chrono::milliseconds(7))), nanoseconds(7'000'000));
  EXPECT_EQ(nanoseconds(Span(std::chrono::hours(-7))), std::chrono::hours(-7));
  EXPECT_EQ(nanoseconds(Span((std::chrono::hours::max)())), (nanoseconds::max)());
  EXPECT_EQ(nanoseconds(Span((std::chrono::hours::min)())), (nanoseconds::min)());
  constexpr std::int64_t kSeconds = (nanoseconds::max)().count() / 1'000'000'000;
  EXPECT_EQ(nanoseconds(Span(std::chrono::seconds(kSeconds))), std::chrono::seconds(kSeconds));
  EXPECT_EQ(nanoseconds(Span(std::chrono::seconds(-kSeconds))), std::chrono::seconds(-kSeconds));
  EXPECT_EQ(nanoseconds(Span(std::chrono::seconds(kSeconds + 1))), (nanoseconds::max)());
  EXPECT_EQ(nanoseconds(Span(std::chrono::seconds(-kSeconds - 1))), (nanoseconds::min)());
  EXPECT_EQ(nanoseconds(Span(std::chrono::duration<unsigned, std::ratio<3600>>(4'000'000'000U))), (nanoseconds::max)());
  struct Setting {
    operator nanoseconds() const { return nanoseconds(5); }  // NOLINT(google-explicit-constructor)
  };
  EXPECT_EQ(nanoseconds(Span(Setting())), nanoseconds(5));
  const std::atomic<nanoseconds> shared(nanoseconds(6));
  EXPECT_EQ(nanoseconds(Span(shared)), nanoseconds(6));
  EXPECT_EQ(nanoseconds(Span{}), nanoseconds(0));
  static_assert(!std::is_convertible_v<duration<double>, Span>, "would lose what is less than a nanosecond");
}

TEST(SaturatingDuration, TheTimerRefusesOnlyNaN) {
  HashedWheelTimer timer(1ms);
  const std::string message =
      test::message_of<std::invalid_argument>([&] { timer.new_timeout([] {}, duration<double>(kNan)); });
  EXPECT_TRUE(test::contains(message, "NaN")) << message;
  EXPECT_THROW(timer.new_timeout(std::make_shared<test::RecordingTask>(), duration<float>(kNan)),
               std::invalid_argument);
  EXPECT_FALSE(timer.try_new_timeout([] {}, duration<double>(kNan)));
  EXPECT_EQ(timer.stats().scheduled, 0);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(SaturatingDuration, APeriodOfAboutHalfANanosecondDoesNotWrap) {
  using Odd = std::chrono::duration<std::uint64_t, std::ratio<51, 100'000'000'000>>;
  EXPECT_EQ(saturating_nanoseconds(Odd::max()), std::chrono::nanoseconds::max());
  EXPECT_EQ(saturating_nanoseconds(Odd(100)), std::chrono::nanoseconds(51));
}

#ifdef __SIZEOF_INT128__
TEST(SaturatingDuration, CountsWiderThan64BitsSaturate) {
  __extension__ using Wide = __int128;
  using WideNanoseconds = std::chrono::duration<Wide, std::nano>;
  EXPECT_EQ(saturating_nanoseconds(WideNanoseconds((Wide{1} << 64) + 5)), std::chrono::nanoseconds::max());
  EXPECT_EQ(saturating_nanoseconds(WideNanoseconds(5)), std::chrono::nanoseconds(5));
}
#endif

}  // namespace
}  // namespace hwt
