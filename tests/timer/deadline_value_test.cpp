// Promise: a Deadline keeps the budget of a request over all hops, and never makes it longer.

#include <unordered_map>

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/coroutine/coroutine_support.h"

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

TEST(Deadline, HasNoNegativeRest) {
  EXPECT_EQ(Deadline(kNow - 5s).remaining(kNow), 0ns);
  EXPECT_EQ(Deadline::in(-5s, kNow), Deadline(kNow));
  EXPECT_TRUE(Deadline::in(0s, kNow).expired(kNow));
}

TEST(Deadline, BeyondTheRangeOfTheClockNeverComes) {
  EXPECT_TRUE(Deadline::in(std::chrono::hours::max(), kNow).is_never());
  EXPECT_TRUE(Deadline::in(nanoseconds::max(), kNow).is_never());
  EXPECT_TRUE(Deadline::from_milliseconds(std::numeric_limits<std::int64_t>::max(), kNow).is_never());
  EXPECT_TRUE(Deadline::from_grpc_timeout("99999999H", kNow).is_never());
  EXPECT_EQ(Deadline(time_point::max() - 1ns).remaining(time_point::min()), nanoseconds::max());
}

TEST(Deadline, RefusesANaN) { EXPECT_THROW(Deadline::in(test::kNanDelay, kNow), std::invalid_argument); }

/// Each function that takes a point of the timer's clock takes a Deadline, too. asio.h has its own test.
class TakesADeadline : public testing::Test {
 protected:
  /// `arm(deadline, ran)` makes something that sets `ran` at the deadline.
  template <class Arm>
  void runs_at(Arm arm) {
    bool ran = false;
    [[maybe_unused]] const auto kept = arm(Deadline::in(5ms, kNow), ran);
    bool never = false;
    [[maybe_unused]] const auto kept_for_ever = arm(Deadline::never(), never);
    timer.advance(4ms);
    EXPECT_FALSE(ran);
    timer.advance(1ms);
    EXPECT_TRUE(ran);
    timer.advance(1h);
    EXPECT_FALSE(never);
    EXPECT_EQ(timer.pending_timeouts(), 1);
  }

  ManualTimer timer{1ms, kNow};
};

TEST_F(TakesADeadline, NewTimeoutAt) {
  runs_at([&](Deadline deadline, bool& ran) { return timer.new_timeout([&ran] { ran = true; }, deadline); });
  EXPECT_EQ(timer.new_timeout([] {}, Deadline::never()).deadline(), time_point::max());
}

TEST_F(TakesADeadline, AddAt) {
  runs_at([&](Deadline deadline, bool& ran) { return timer.add([&ran] { ran = true; }, deadline); });
}

TEST_F(TakesADeadline, AddAtOfAScope) {
  TimeoutScope scope(timer);
  runs_at([&](Deadline deadline, bool& ran) { return scope.add([&ran] { ran = true; }, deadline); });
}

TEST_F(TakesADeadline, RescheduleAt) {
  runs_at([&](Deadline deadline, bool& ran) {
    Timeout timeout = timer.new_timeout([&ran] { ran = true; }, 1s);
    EXPECT_TRUE(timeout.reschedule(deadline));
    return timeout;
  });
}

TEST_F(TakesADeadline, StopAfter) {
  runs_at([&](Deadline deadline, bool& ran) {
    auto limit = std::make_unique<hwt::StopAfter>(timer, deadline);
    auto on_stop = std::make_unique<std::stop_callback<std::function<void()>>>(limit->token(), [&ran] { ran = true; });
    return std::pair(std::move(limit), std::move(on_stop));
  });
}

TEST_F(TakesADeadline, StopAfterWithAParent) {
  std::stop_source parent;
  const hwt::StopAfter limit(timer, Deadline::never(), parent.get_token());
  parent.request_stop();
  EXPECT_TRUE(limit.token().stop_requested());
  EXPECT_FALSE(limit.timed_out());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_F(TakesADeadline, SleepUntil) {
  std::stop_source ends;
  runs_at([&](Deadline deadline, bool& ran) {
    [](Timer& its_timer, Deadline until, std::stop_token stop, bool& done) -> test::Detached {
      if (co_await sleep_until(its_timer, until, std::move(stop)) == Wake::Expired) done = true;
    }(timer, deadline, ends.get_token(), ran);
    return 0;
  });
  ends.request_stop();
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(Deadline, ReadsEachUnitOfGrpc) {
  const std::array<std::pair<const char*, nanoseconds>, 9> texts = {{{"250m", 250ms},
                                                                     {"1H", 1h},
                                                                     {"2M", 2min},
                                                                     {"3S", 3s},
                                                                     {"4u", 4us},
                                                                     {"5n", 5ns},
                                                                     {"0n", 0ns},
                                                                     {"00000001S", 1s},
                                                                     {"99999999m", 99'999'999ms}}};
  for (const auto& [text, budget] : texts) {
    EXPECT_EQ(Deadline::from_grpc_timeout(text, kNow), Deadline(kNow + budget)) << text;
    EXPECT_EQ(Deadline::try_from_grpc_timeout(text, kNow), Deadline(kNow + budget)) << text;
  }
}

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
  EXPECT_EQ(message.substr(0, 29), "Deadline: grpc-timeout: \"a?bx");
  EXPECT_LT(message.size(), 150u);
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

TEST(Deadline, OfMillisecondsKnowsNever) {
  EXPECT_TRUE(Deadline::from_milliseconds(-1, kNow).is_never());
  EXPECT_EQ(Deadline::never().to_milliseconds(kNow), -1);
  EXPECT_EQ(Deadline(kNow + 1999us).to_milliseconds(kNow), 1);
  EXPECT_EQ(Deadline(kNow - 5s).to_milliseconds(kNow), 0);
  EXPECT_EQ(Deadline::from_milliseconds(250, kNow), Deadline(kNow + 250ms));
}

}  // namespace
}  // namespace hwt
