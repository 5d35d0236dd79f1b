// Deadlines in another unit than the clock's: each function that takes one saturates, and rounds to the later
// nanosecond.

#include <chrono>
#include <cstdint>
#include <ratio>
#include <stop_token>
#include <type_traits>

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;
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
constexpr std::int64_t kMax = detail::kMaxNanoseconds;

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

TEST(CoarseDeadline, TheTimerNeverRunsATaskOfTheLastPoint) {
  ManualTimer timer;
  const auto fail = [] { ADD_FAILURE() << "it is never due"; };
  struct Failing : TimerTask {
    void run(Timeout&) override { ADD_FAILURE() << "it is never due"; }
  };
  const auto shared = std::make_shared<Failing>();
  const Timeout timeouts[] = {
      timer.new_timeout(fail, (Coarse::max)()),
      timer.try_new_timeout(fail, (Coarse::max)()),
      timer.new_timeout(shared, (Coarse::max)()),
      timer.try_new_timeout(shared, (Coarse::max)()),
      timer.new_timeout(fail, 1s),
  };
  EXPECT_TRUE(timer.add(fail, (Coarse::max)()));
  EXPECT_TRUE(timer.try_add(fail, (Coarse::max)()));
  const TimeoutId moved = timer.add(fail, 1s);
  EXPECT_TRUE(timer.reschedule(moved, (Coarse::max)()));
  EXPECT_TRUE(Timeout(timeouts[4]).reschedule((Coarse::max)()));
  TimeoutScope scope(timer);
  scope.add(fail, (Coarse::max)());
  for (const Timeout& timeout : timeouts) EXPECT_EQ(timeout.deadline(), kNever);
  timer.advance(24h);
  EXPECT_EQ(timer.pending_timeouts(), 9);
}

TEST(CoarseDeadline, TheTimerRunsATaskOfACoarsePointAtThatPoint) {
  ManualTimer timer(1ms, {});
  int ran = 0;
  const Timeout timeout = timer.new_timeout([&] { ++ran; }, Coarse(std::chrono::milliseconds(250)));
  EXPECT_EQ(timeout.deadline(), steady_clock::time_point(250ms));
  timer.advance(249ms);
  EXPECT_EQ(ran, 0);
  timer.advance(1ms);
  EXPECT_EQ(ran, 1);
  timer.new_timeout([&] { ++ran; }, (Coarse::min)());
  timer.advance(1ms);
  EXPECT_EQ(ran, 2) << "the first point has passed";
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

TEST(CoarseDeadline, AKeyedTimerNeverExpiresAKeyOfTheLastPoint) {
  ManualTimer timer;
  KeyedTimer<int, int> keyed(timer, [](int key, int) { ADD_FAILURE() << key << " is never due"; });
  EXPECT_EQ(keyed.set(1, 1, (Coarse::max)()), KeyedResult::Added);
  EXPECT_EQ(keyed.set(2, 2, 1s), KeyedResult::Added);
  EXPECT_EQ(keyed.move(2, (Coarse::max)()), KeyedResult::Moved);
  timer.advance(24h);
  EXPECT_EQ(keyed.size(), 2U);
  EXPECT_EQ(keyed.remaining(1), (nanoseconds::max)());
}

TEST(CoarseDeadline, AStopAfterOfTheLastPointRequestsNothing) {
  ManualTimer timer;
  const StopAfter limit(timer, (Coarse::max)());
  timer.advance(24h);
  EXPECT_FALSE(limit.token().stop_requested());
}

TEST(CoarseDeadline, ASleepUntilTheLastPointGoesOn) {
  ManualTimer timer;
  Sleep sleep = sleep_until(timer, (Coarse::max)());
  EXPECT_FALSE(sleep.await_ready());
  Sleep over = sleep_until(timer, (Coarse::min)());
  EXPECT_TRUE(over.await_ready());
}

TEST(CoarseDeadline, APassiveWheelNeverFiresANodeOfTheLastPoint) {
  struct Node : WheelNode {
    void on_timeout() override { ADD_FAILURE() << "it is never due"; }
  };
  PassiveWheel wheel(1ms, Coarse());
  Node node;
  Node postponed;
  wheel.schedule(node, (Coarse::max)());
  wheel.schedule(postponed, 1s);
  wheel.postpone(postponed, (Coarse::max)());
  EXPECT_EQ(node.deadline(), kNever);
  EXPECT_EQ(postponed.deadline(), kNever);
  wheel.advance((Coarse::min)());
  wheel.advance(Coarse(24h));
  EXPECT_EQ(wheel.size(), 2U);
  wheel.cancel_all();
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
}

TEST(CoarseDeadline, ATypeThatConvertsToAPointIsTaken) {
  struct Request {
    operator steady_clock::time_point() const { return steady_clock::time_point(250ms); }
  };
  ManualTimer timer;
  EXPECT_EQ(timer.new_timeout([] {}, Request()).deadline(), steady_clock::time_point(250ms));
  EXPECT_EQ(timer.new_timeout([] {}, hwt::Deadline::never()).deadline(), kNever);
}

}  // namespace
}  // namespace hwt::test
