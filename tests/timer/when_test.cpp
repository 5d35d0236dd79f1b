// When takes delays, points of the timer's clock and points of the wall clock, and nothing else. A point of the wall
// clock is converted once, exactly or a little late, and never early.

#include "hashed_wheel_timer/when.h"

#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/test_support.h"

#if defined(__linux__) && defined(__GLIBC__)
#define HWT_TEST_SETS_CLOCKS 1

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

/// The next readings of the clocks, for this thread. Empty: those of the system. Below 0: there is no such clock.
struct Reading {
  clockid_t clock;
  std::int64_t time;
};
thread_local std::vector<Reading>* script = nullptr;

}  // namespace

// Instead of the one of the C library, for the whole program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  if (script != nullptr && !script->empty() && script->front().clock == clock) {
    const std::int64_t now = script->front().time;
    script->erase(script->begin());
    if (now < 0) return -1;
    *time = {now / 1'000'000'000, now % 1'000'000'000};
    return 0;
  }
  return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
}
#endif

namespace hwt::test {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using WallPoint = std::chrono::time_point<system_clock, nanoseconds>;

template <class T>
constexpr bool kTaken = std::is_convertible_v<T, When>;

struct Setting {
  operator nanoseconds() const { return 5ms; }
};
struct Request {
  operator steady_clock::time_point() const { return steady_clock::time_point(250ms); }
};

static_assert(kTaken<nanoseconds> && kTaken<std::chrono::hours> && kTaken<std::chrono::duration<float>>);
static_assert(kTaken<Delay> && kTaken<Setting>);
static_assert(kTaken<steady_clock::time_point> && kTaken<hwt::Deadline>);
static_assert(kTaken<std::chrono::time_point<steady_clock, std::chrono::seconds>>);
static_assert(kTaken<system_clock::time_point> && kTaken<std::chrono::sys_seconds> && kTaken<std::chrono::sys_days>);
static_assert(!kTaken<int> && !kTaken<long> && !kTaken<double> && !kTaken<bool> && !kTaken<std::nullptr_t>);
static_assert(!std::is_default_constructible_v<When>, "no delay and no deadline");
static_assert(!kTaken<std::chrono::time_point<std::chrono::file_clock>>,
              "neither the timer's clock nor the wall clock");
static_assert(!kTaken<std::chrono::time_point<steady_clock, std::chrono::duration<double>>>, "may be a NaN");
static_assert(!kTaken<std::chrono::time_point<system_clock, std::chrono::duration<double>>>, "may be a NaN");
static_assert(std::is_trivially_copyable_v<When> && sizeof(When) == 16, "goes through two registers");

constexpr std::int64_t kMax = (nanoseconds::max)().count();
constexpr When kHour = 1h;
static_assert(!kHour.is_deadline() && kHour.nanoseconds() == 3'600'000'000'000, "usable at compile time");

TEST(WhenTest, ADelayCountsFromTheTimeAtWhichTheTimerTakesIt) {
  EXPECT_EQ(When(5ms).deadline([] { return std::int64_t{7}; }), 5'000'007);
  EXPECT_EQ(When(-5ms).deadline([] { return std::int64_t{7}; }), 7) << "due now";
  EXPECT_EQ(When((nanoseconds::max)()).deadline([] { return std::int64_t{7}; }), kMax) << "never";
  EXPECT_EQ(When(Setting()).nanoseconds(), 5'000'000);
}

TEST(WhenTest, ADeadlineAsksForNoTime) {
  const auto fail = [] {
    ADD_FAILURE() << "read a clock";
    return std::int64_t{0};
  };
  EXPECT_EQ(When(steady_clock::time_point(5ns)).deadline(fail), 5);
  EXPECT_EQ(When(steady_clock::time_point(-5ns)).deadline(fail), -5) << "it comes back exactly";
  EXPECT_EQ(When(hwt::Deadline::never()).deadline(fail), kMax);
  EXPECT_EQ(When(Request()).deadline(fail), 250'000'000);
}

TEST(WhenTest, OnlyADelayCanBeNaN) {
  EXPECT_TRUE(When(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())).is_nan());
  EXPECT_TRUE(When(Delay(std::chrono::duration<float>(std::numeric_limits<float>::quiet_NaN()))).is_nan());
  EXPECT_FALSE(When((nanoseconds::min)()).is_nan());
  EXPECT_FALSE(When((steady_clock::time_point::min)()).is_nan());
}

/// The readings of both clocks around the making of a When bound its deadline.
TEST(WallClock, APointBecomesTheOneAtWhichTheWallClockShowsItAndNeverAnEarlierOne) {
  for (const nanoseconds ahead : {nanoseconds(1h), nanoseconds(-1h), nanoseconds(0), nanoseconds(24h * 36500)})
    for (int i = 0; i < 1000; ++i) {
      const auto steady_before = steady_clock::now();
      const WallPoint wall = system_clock::now();
      const WallPoint point = wall + ahead;
      const When when = point;
      ASSERT_TRUE(when.is_deadline());
      // The reading of steady_clock came first. So the deadline is not before this, unless it is early. The wall clock
      // may round down to its unit.
      ASSERT_GE(when.nanoseconds(), (steady_before.time_since_epoch() + ahead - system_clock::duration(1)).count());
      ASSERT_LE(nanoseconds(when.nanoseconds()), steady_clock::now().time_since_epoch() + ahead + 1s) << "generous";
    }
}

TEST(WallClock, TheEndOfTheWallClockIsNeverAndItsBeginningIsDueNow) {
  EXPECT_EQ(When((system_clock::time_point::max)()).nanoseconds(), kMax);
  EXPECT_EQ(When((WallPoint::max)()).nanoseconds(), kMax);
  EXPECT_EQ(When((std::chrono::sys_days::max)()).nanoseconds(), kMax);
  EXPECT_LT(When((WallPoint::max)() - 1ns).nanoseconds(), kMax) << "a point, and not never";
  EXPECT_LT(When((WallPoint::min)()).nanoseconds(), 0);
  EXPECT_LT(When((std::chrono::sys_days::min)()).nanoseconds(), 0);
  EXPECT_LT(When(std::chrono::sys_seconds()).nanoseconds(), steady_clock::now().time_since_epoch().count()) << "1970";
}

#ifdef HWT_TEST_SETS_CLOCKS

/// The clocks of this thread show these times, one after the other.
class Script {
 public:
  explicit Script(std::vector<Reading> readings) : readings_(std::move(readings)) { script = &readings_; }
  ~Script() {
    script = nullptr;
    EXPECT_TRUE(readings_.empty()) << "it read " << readings_.size() << " times less than it must";
  }

 private:
  std::vector<Reading> readings_;
};

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(WallClock, TheCoarseClocksAreUsedIfTheyWereNotUpdatedMeanwhile) {
  const Script clocks({{CLOCK_MONOTONIC_COARSE, 5 * kSecond + 1},
                       {CLOCK_REALTIME_COARSE, 1000 * kSecond},
                       {CLOCK_MONOTONIC_COARSE, 5 * kSecond + 1}});
  EXPECT_EQ(When(WallPoint(1001s)).nanoseconds(), 6 * kSecond + 1) << "exact";
}

TEST(WallClock, IfTheCoarseClocksAreUpdatedMeanwhileTheExactOnesMakeItLateAndNotEarly) {
  // The true distance is 5 s against 1000 s. This thread is preempted for 2 s after each reading.
  const Script clocks({{CLOCK_MONOTONIC_COARSE, 5 * kSecond},
                       {CLOCK_REALTIME_COARSE, 1002 * kSecond},
                       {CLOCK_MONOTONIC_COARSE, 9 * kSecond},
                       {CLOCK_REALTIME, 1006 * kSecond},
                       {CLOCK_MONOTONIC, 13 * kSecond}});
  EXPECT_EQ(When(WallPoint(1100s)).nanoseconds(), 107 * kSecond) << "the wall clock shows it at 105 s";
}

TEST(WallClock, ASystemWithoutCoarseClocksHasTheExactOnes) {
  const Script clocks({{CLOCK_MONOTONIC_COARSE, -1}, {CLOCK_REALTIME, 1000 * kSecond}, {CLOCK_MONOTONIC, 5 * kSecond}});
  EXPECT_EQ(When(WallPoint(1001s)).nanoseconds(), 6 * kSecond);
}

TEST(WallClock, ADistanceBeyondTheRangeOfTheClockIsItsEnd) {
  {
    const Script clocks(
        {{CLOCK_MONOTONIC_COARSE, 10 * kSecond}, {CLOCK_REALTIME_COARSE, 0}, {CLOCK_MONOTONIC_COARSE, 10 * kSecond}});
    EXPECT_EQ(When((WallPoint::max)() - 1s).nanoseconds(), kMax);
  }
  const Script clocks(
      {{CLOCK_MONOTONIC_COARSE, 0}, {CLOCK_REALTIME_COARSE, 10 * kSecond}, {CLOCK_MONOTONIC_COARSE, 0}});
  EXPECT_EQ(When((WallPoint::min)() + 1s).nanoseconds(), (std::numeric_limits<std::int64_t>::min)());
}

#endif

/// Each function that takes a delay takes a When, and so a point of the wall clock.
template <class Point>
concept IsTakenEverywhere =
    requires(Timer& timer, TimeoutScope& scope, Timeout& timeout, KeyedTimer<int, int>& keyed, StopAfter& limit,
             PassiveWheel& wheel, WheelNode& node, std::shared_ptr<TimerTask> task, Point at) {
      timer.new_timeout([] {}, at), timer.try_new_timeout([] {}, at);
      timer.new_timeout(task, at), timer.try_new_timeout(task, at);
      timer.add([] {}, at), timer.try_add([] {}, at), timer.reschedule(TimeoutId(), at);
      scope.add([] {}, at), timeout.reschedule(at);
      keyed.set(1, 1, at), keyed.move(1, at);
      StopAfter(timer, at), limit.reschedule(at);
      wheel.schedule(node, at), wheel.postpone(node, at);
    };
static_assert(IsTakenEverywhere<system_clock::time_point> && IsTakenEverywhere<Request>);

// Deadlines in another unit than the clock's: each function that takes one saturates, and rounds to the later
// nanosecond.

template <class Duration>
using At = std::chrono::time_point<steady_clock, Duration>;
using Coarse = At<std::chrono::milliseconds>;
using Third = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

constexpr steady_clock::time_point kNever = (steady_clock::time_point::max)();

constexpr std::int64_t due(detail::Point point) { return steady_clock::time_point(point).time_since_epoch().count(); }
constexpr std::int64_t now(detail::PresentTime point) {
  return steady_clock::time_point(point).time_since_epoch().count();
}

static_assert(due(Coarse(std::chrono::milliseconds(250))) == 250'000'000, "usable at compile time");
static_assert(!std::is_convertible_v<std::chrono::system_clock::time_point, detail::Point>, "another clock");
static_assert(!std::is_convertible_v<nanoseconds, detail::Point>, "no point");
static_assert(!std::is_convertible_v<nanoseconds, hwt::Deadline>, "no point");
static_assert(std::is_trivially_copyable_v<detail::Point> && sizeof(detail::Point) == 8, "goes through a register");

TEST(CoarseDeadline, APointBeyondTheRangeIsTheEndOfTheClock) {
  EXPECT_EQ(due((Coarse::max)()), kMax);
  EXPECT_LE(due((Coarse::min)()), -kMax);
  EXPECT_EQ(due((At<std::chrono::hours>::max)()), kMax);
  EXPECT_LE(due((At<std::chrono::hours>::min)()), -kMax);
  EXPECT_EQ(due((At<std::chrono::duration<std::uint64_t, std::micro>>::max)()), kMax);
  EXPECT_EQ(due(At<std::chrono::duration<std::uint64_t, std::nano>>(
                std::chrono::duration<std::uint64_t, std::nano>(std::uint64_t{1} << 63))),
            kMax);
  EXPECT_EQ(due((At<std::chrono::duration<std::int64_t, std::ratio<10'000'000'000>>>::max)()), kMax);
  EXPECT_LE(due((At<std::chrono::duration<std::int64_t, std::ratio<20'000'000'001, 2>>>::min)()), -kMax);
  EXPECT_EQ(due(kNever), kMax);
  EXPECT_EQ(due((steady_clock::time_point::min)()), (nanoseconds::min)().count()) << "exact in the clock's own unit";
  EXPECT_EQ(due({}), 0);
  EXPECT_EQ(When((Coarse::max)()).nanoseconds(), kMax) << "never, for each function that takes a When";
  EXPECT_EQ(When(Coarse(250ms)).nanoseconds(), 250'000'000);
}

TEST(CoarseDeadline, AFractionIsRoundedToTheLaterNanosecondAlsoBeforeTheEpoch) {
  EXPECT_EQ(due(At<Picoseconds>(Picoseconds(1))), 1);
  EXPECT_EQ(due(At<Picoseconds>(Picoseconds(1000))), 1);
  EXPECT_EQ(due(At<Picoseconds>(Picoseconds(1001))), 2);
  EXPECT_EQ(due(At<Picoseconds>(Picoseconds(-1))), 0);
  EXPECT_EQ(due(At<Picoseconds>(Picoseconds(-1000))), -1);
  EXPECT_EQ(due(At<Picoseconds>(Picoseconds(-1001))), -1);
  EXPECT_EQ(due(At<Picoseconds>(Picoseconds(-1999))), -1);
  EXPECT_EQ(due((At<Picoseconds>::min)()), -((std::numeric_limits<std::int64_t>::max)() / 1000));
  EXPECT_EQ(due(At<Third>(Third(1))), 333'333'334);
  EXPECT_EQ(due(At<Third>(Third(-1))), -333'333'333);
  EXPECT_EQ(due(At<Third>(Third(-3))), -1'000'000'000);
  using Small = std::chrono::duration<std::int8_t, std::femto>;
  EXPECT_EQ(due(At<Small>(Small(-128))), 0);
  EXPECT_EQ(due(At<Small>(Small(127))), 1);
}

TEST(CoarseDeadline, ThePresentTimeIsRoundedToTheEarlierNanosecond) {
  EXPECT_EQ(now(At<Picoseconds>(Picoseconds(1999))), 1);
  EXPECT_EQ(now(At<Picoseconds>(Picoseconds(-1))), -1);
  EXPECT_EQ(now(At<Third>(Third(1))), 333'333'333);
  EXPECT_EQ(now(At<Third>(Third(-1))), -333'333'334);
  EXPECT_EQ(now((Coarse::max)()), kMax);
  using Small = std::chrono::duration<std::int8_t, std::femto>;
  EXPECT_EQ(now(At<Small>(Small(127))), 0);
}

TEST(CoarseDeadline, AManualTimerTakesCoarsePresentTimes) {
  ManualTimer timer(1ms, Coarse(std::chrono::milliseconds(5)));
  EXPECT_EQ(timer.now(), steady_clock::time_point(5ms));
  ManualTimer late(1ms, (Coarse::max)());
  EXPECT_EQ(late.now(), kNever);
  int ran = 0;
  timer.new_timeout([&] { ++ran; }, 1s);
  timer.advance_to((Coarse::min)());
  EXPECT_EQ(ran, 0);
  timer.advance_to((Coarse::max)());
  EXPECT_EQ(ran, 1);
}

TEST(CoarseDeadline, ADeadlineOfTheLastPointNeverComes) {
  const hwt::Deadline deadline = (Coarse::max)();
  EXPECT_TRUE(deadline.is_never());
  EXPECT_FALSE(deadline.expired());
  EXPECT_TRUE(hwt::Deadline((Coarse::min)()).expired());
  EXPECT_EQ(hwt::Deadline(Coarse(250ms)).time(), steady_clock::time_point(250ms));
  EXPECT_TRUE(hwt::Deadline(steady_clock::time_point(1s)).expired((Coarse::max)()));
  EXPECT_EQ(hwt::Deadline(steady_clock::time_point(1s)).remaining((Coarse::max)()), 0ns);
  EXPECT_TRUE(hwt::Deadline::in(1s, (Coarse::max)()).is_never());
  EXPECT_TRUE(hwt::Deadline::in(std::chrono::hours::max(), steady_clock::time_point(-1h)).is_never());
}

}  // namespace
}  // namespace hwt::test

// A Deadline keeps the budget of a request over all hops, and never makes it longer. More in tests/fuzz.

namespace hwt {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using time_point = Deadline::time_point;

constexpr time_point kNow{1'000'000s};

static_assert(Deadline() == Deadline::never());
static_assert(Deadline::never().remaining(kNow) == nanoseconds::max());
static_assert(!Deadline::never().expired(time_point::max()));
static_assert(Deadline(kNow + 5s).remaining(kNow) == 5s);
static_assert(Deadline(kNow).expired(kNow));
static_assert(!Deadline(kNow).expired(kNow - 1ns));
static_assert(min(Deadline(kNow), Deadline::never()) == Deadline(kNow));
static_assert(min(Deadline(kNow), Deadline(kNow - 1ns)) == Deadline(kNow - 1ns));

TEST(Deadline, CountsFromNow) {
  const time_point before = std::chrono::steady_clock::now();
  const Deadline deadline = Deadline::in(1h);
  const time_point after = std::chrono::steady_clock::now();
  EXPECT_GE(deadline.time(), before + 1h);
  EXPECT_LE(deadline.time(), after + 1h);
  EXPECT_FALSE(deadline.expired());
  EXPECT_LE(deadline.remaining(), 1h);
  EXPECT_GT(deadline.remaining(), 0ns);
}

TEST(Deadline, RefusesANaN) { EXPECT_THROW(Deadline::in(test::kNanDelay, kNow), std::invalid_argument); }

TEST(Deadline, NamesABadText) {
  for (const std::string text :
       {"", "m", "5", "5s", "123456789m", "-5m", "+5m", " 5m", "5 m", "5m ", "5mm", "0x5m", "5.0m", "1e3m", "５m"}) {
    EXPECT_FALSE(Deadline::try_from_grpc_timeout(text, kNow)) << text;
    EXPECT_EQ(test::message_of<std::invalid_argument>([&] { Deadline::from_grpc_timeout(text, kNow); }),
              "Deadline: grpc-timeout: \"" + text + "\" (expected: 1 to 8 digits and one of H, M, S, m, u, n)");
  }
}

TEST(Deadline, ShowsALongOrBinaryTextOnOneShortLine) {
  const std::string text = "a\nb" + std::string(10'000, 'x');
  const std::string message = test::message_of<std::invalid_argument>([&] { Deadline::from_grpc_timeout(text, kNow); });
  EXPECT_EQ(message, "Deadline: grpc-timeout: \"a?b" + std::string(37, 'x') +
                         "...\" (expected: 1 to 8 digits and one of H, M, S, m, u, n)");
}

TEST(Deadline, IsWrittenInTheFinestUnitThatFits) {
  const auto text = [](nanoseconds rest) { return Deadline(kNow + rest).to_grpc_timeout(kNow); };
  EXPECT_EQ(text(0ns), "0n");
  EXPECT_EQ(text(-5s), "0n");
  EXPECT_EQ(text(1ns), "1n");
  EXPECT_EQ(text(99'999'999ns), "99999999n");
  EXPECT_EQ(text(100'000'999ns), "100000u");
  EXPECT_EQ(text(250ms), "250000u");
  EXPECT_EQ(text(100s), "100000m");
  EXPECT_EQ(text(28h), "100800S");
  EXPECT_EQ(Deadline::never().to_grpc_timeout(kNow), "");
  EXPECT_EQ(Deadline(time_point::max() - 1ns).to_grpc_timeout(time_point(0ns)), "2562047H");
}

}  // namespace
}  // namespace hwt
