// Schedules whose times are centuries away, or are missed by as much, and a schedule whose timer is stopped by a run.

#include <limits>

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "tests/support/system_clock.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

using std::chrono::nanoseconds;

class FarTimes : public ::testing::Test {
 protected:
  static constexpr std::chrono::hours kYear{24 * 365};

  Schedule every(calendar::Rule rule) {
    return Schedule::calendar(std::move(rule), CatchUp::Skip,
                              [this] { return system_clock_at(timer_.now().time_since_epoch() + offset_); });
  }
  Schedule hourly() {
    return every([](WallTime after) { return std::chrono::floor<std::chrono::hours>(after) + 1h; });
  }
  auto start(Schedule planned) {
    return schedule(timer_, std::move(planned), [this] { ++runs_; });
  }

  nanoseconds offset_{};
  int runs_ = 0;
  ManualTimer timer_{1ms, steady_clock::time_point()};
};

TEST_F(FarTimes, AClockThatIsSetForwardByCenturiesGivesOneRun) {
  offset_ = -200 * kYear;
  const auto task = start(hourly());
  offset_ = 200 * kYear;
  timer_.advance(1min);
  EXPECT_EQ(runs_, 1);
  timer_.advance(2h);
  EXPECT_EQ(runs_, 3);
}

TEST_F(FarTimes, AClockThatIsSetBackDuringAnEndlessJitterDoesNotMakeTheRunDue) {
  offset_ = 30min;
  const auto task = start(hourly().jitter([](nanoseconds) { return nanoseconds::max(); }));
  timer_.advance(1min);
  offset_ = 15min;  // the wait for the same occurrence is longer now
  timer_.advance(10min);
  EXPECT_EQ(runs_, 0);
  EXPECT_FALSE(task->done());
}

TEST_F(FarTimes, AnOccurrenceThatPassedCenturiesAgoIsDueHoweverEarlyJitterMadeIt) {
  offset_ = -200 * kYear;
  const calendar::Rule rare = [](WallTime after) { return after + std::chrono::seconds(150 * kYear); };
  const auto task = start(every(rare).jitter([](nanoseconds) { return 10min; }));
  timer_.advance(1min);
  EXPECT_EQ(runs_, 0);
  offset_ = 200 * kYear;
  timer_.advance(1min);
  EXPECT_EQ(runs_, 1);
}

TEST_F(FarTimes, ACycleThatNeverEndsSkipsWhatHasPassed) {
  const auto task = start(Schedule::cycle({1ms, 1ms, nanoseconds::max()}));
  timer_.advance_to(steady_clock::time_point(10ms));
  EXPECT_EQ(runs_, 1);
  timer_.advance(1h);
  EXPECT_EQ(runs_, 1) << "the next one is never due";
  EXPECT_FALSE(task->done());
}

/// The executor's thread may stop the timer; the worker may not.
TEST(ScheduleOnAnExecutor, ARunThatStopsTheTimerIsTheLastOneOfABurst) {
  int runs = 0;
  JobQueue jobs;
  ManualTimer timer(Options{.tick_duration = 1ms, .executor = jobs.executor()}, steady_clock::time_point());
  const auto task = schedule(timer, Schedule::fixed_rate(0s, 1ms, CatchUp::Burst), [&] {
    ++runs;
    timer.stop();
  });
  timer.advance_to(steady_clock::time_point(100ms));
  jobs.run_all();
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(task->done());
}

}  // namespace
}  // namespace hwt::test
