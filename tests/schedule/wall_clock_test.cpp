// Schedules that go by the wall clock: how they wait, and what happens when it is set.

#include "hashed_wheel_timer/schedule.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

using std::chrono::nanoseconds;
using std::chrono::system_clock;
using time_point = steady_clock::time_point;

/// A timer and a wall clock that goes with it, but can be set.
class WallClockTest : public ::testing::Test {
 protected:
  WallTime wall() const { return std::chrono::floor<std::chrono::seconds>(exact_wall()); }
  /// Rounds down, because system_clock counts microseconds with libc++.
  system_clock::time_point exact_wall() const {
    const nanoseconds since_epoch = timer_.now().time_since_epoch() + offset_;
    return system_clock::time_point(std::chrono::floor<system_clock::duration>(since_epoch));
  }
  static WallTime at(nanoseconds time) { return WallTime(std::chrono::floor<std::chrono::seconds>(time)); }

  static WallTime next_hour(WallTime after) { return std::chrono::floor<std::chrono::hours>(after) + 1h; }

  Schedule calendar(calendar::Rule rule, CatchUp catch_up = CatchUp::Skip) {
    return Schedule::calendar(std::move(rule), catch_up, [this] { return exact_wall(); });
  }
  Schedule hourly(CatchUp catch_up = CatchUp::Skip) { return calendar(next_hour, catch_up); }
  std::shared_ptr<ScheduledTask> start(Schedule planned) {
    return schedule(timer_, std::move(planned), [this] { runs_.push_back(wall()); });
  }

  nanoseconds offset_{};
  std::vector<WallTime> runs_;
  ErrorLog errors_;
  ManualTimer timer_{10ms, {}, errors_.handler()};
};

TEST_F(WallClockTest, EachOccurrenceRunsOnceAndNotEarlyAfterPiecesOfAtMostAMinute) {
  offset_ = 123456789ns;
  const auto task = start(hourly());
  timer_.advance(1h - 130ms);
  EXPECT_TRUE(runs_.empty());
  for (int minute = 0; minute < 180; ++minute) {
    ASSERT_LE(*timer_.next_wakeup() - timer_.now(), 60s);
    timer_.advance(1min);
  }
  EXPECT_EQ(runs_, std::vector<WallTime>({at(1h), at(2h), at(3h)}));
  EXPECT_EQ(std::chrono::round<std::chrono::seconds>(*task->next() - time_point()), 4h);
}

constexpr std::chrono::hours kYear{24 * 365};

TEST_F(WallClockTest, AClockThatIsSet) {
  struct Step {
    nanoseconds set_by, advance;
    std::size_t runs;  // in all
  };
  struct Row {
    const char* name;
    CatchUp catch_up;
    nanoseconds begin;  // by the wall clock
    std::vector<Step> steps;
    int late;  // runs that are not at a full hour
  };
  const std::vector<Step> back{{0h, 150min, 2}, {-90min, 110min, 2}, {0h, 1h, 3}};
  const auto ahead_for_a_moment = [](nanoseconds ahead) {
    return std::vector<Step>{{0h, 55min, 0}, {ahead, 10min, 2}, {-ahead, 1h, 3}, {0h, 2h, 5}};
  };
  for (const auto& [name, catch_up, begin, steps, late] :
       {Row{"forward, or a suspend", CatchUp::Skip, 0h, {{0h, 30min, 0}, {5h, 1min, 1}, {0h, 1h, 2}}, 1},
        Row{"centuries", CatchUp::Skip, -200 * kYear, {{200 * kYear, 0h, 0}, {200 * kYear, 1min, 1}, {0h, 2h, 3}}, 1},
        Row{"back over a run with Skip", CatchUp::Skip, 0h, back, 0},
        Row{"back over a run with Once", CatchUp::Once, 0h, back, 0},
        Row{"back over a run with Burst", CatchUp::Burst, 0h, back, 0},
        Row{"back before the first run", CatchUp::Skip, 10h, {{-9h - 30min, 1h, 1}}, 0},
        Row{"ahead for a moment", CatchUp::Skip, 0h, ahead_for_a_moment(2h), 1},
        Row{"ten years ahead for a moment", CatchUp::Skip, 0h, ahead_for_a_moment(10 * kYear), 1},
        Row{"ten years ahead at first", CatchUp::Skip, 10 * kYear, {{0h, 24h, 24}, {-10 * kYear, 2h, 26}}, 0}}) {
    SCOPED_TRACE(name);
    runs_.clear();
    offset_ = begin - timer_.now().time_since_epoch();
    const auto task = start(hourly(catch_up));
    for (const auto& [set_by, advance, runs] : steps) {
      offset_ += set_by;
      timer_.advance(advance);
      EXPECT_EQ(runs_.size(), runs);
    }
    const auto is_late = [](WallTime run) { return run != std::chrono::floor<std::chrono::hours>(run); };
    EXPECT_EQ(std::count_if(runs_.begin(), runs_.end(), is_late), late);
    EXPECT_TRUE(task->cancel());
  }
}

TEST_F(WallClockTest, AWallClockAtTheEndsOfItsRangeIsNoError) {
  for (const auto end : {(system_clock::time_point::min)(), (system_clock::time_point::max)()}) {
    const auto task = schedule(
        timer_, Schedule::calendar([](WallTime after) { return after + 1h; }, CatchUp::Skip, [&] { return end; }),
        [] { ADD_FAILURE() << "the clock stands still"; });
    timer_.advance(2min);
    EXPECT_NEAR(std::chrono::duration<double>(*task->next() - timer_.now()).count(), 3600, 1);
    EXPECT_TRUE(task->cancel());
  }
}

TEST_F(WallClockTest, AClockThatIsSlowerThanTheTimersIsNeverEarly) {
  start(hourly());
  for (int second = 0; second < 3700; ++second) {
    timer_.advance(1s);
    offset_ -= 500us;
  }
  ASSERT_EQ(runs_.size(), 1U);
  EXPECT_EQ(runs_[0], at(1h));
}

TEST_F(WallClockTest, ARuleThatEndsEndsTheSchedule) {
  for (const std::size_t minutes : {0U, 2U}) {
    runs_.clear();
    const auto task = start(calendar([&, end = wall() + minutes * 1min](WallTime after) {
      return after >= end ? std::nullopt : std::optional(after + 1min);
    }));
    EXPECT_EQ(task->done(), minutes == 0) << "without any occurrence it is done at once";
    timer_.advance(1h);
    EXPECT_EQ(runs_.size(), minutes);
    EXPECT_TRUE(task->done());
    EXPECT_EQ(timer_.pending_timeouts(), 0);
  }
}

TEST_F(WallClockTest, ARuleOrClockThatThrowsAfterARunOrAfterTheClockWasSetBackIsAskedAgain) {
  bool rule_throws = false, clock_throws = false;
  const auto rule = [&](WallTime after) {
    if (rule_throws) throw std::runtime_error("rule");
    return next_hour(after);
  };
  const auto clock = [&] {
    if (clock_throws) throw std::runtime_error("clock");
    return exact_wall();
  };
  const auto task = start(Schedule::calendar(rule, CatchUp::Skip, clock));
  const auto advance_while = [&](bool& throws) {
    throws = true;
    timer_.advance(1min);
    EXPECT_EQ(task->next(), std::nullopt);
    EXPECT_FALSE(task->done());
    throws = false;
  };
  timer_.advance(59min);
  advance_while(rule_throws);
  timer_.advance(1h);
  offset_ = -150min;
  advance_while(rule_throws);
  advance_while(clock_throws);
  EXPECT_EQ(errors_.errors(), std::vector<std::string>({"rule", "rule", "clock"}));
  timer_.advance(1h);
  EXPECT_EQ(runs_, std::vector<WallTime>({at(1h), at(2h), at(0h)}));
}

TEST_F(WallClockTest, AnOccurrenceThatPassesWhileTheRuleOrTheClockThrowsRunsLateForEachCatchUp) {
  std::size_t rounds = 0;
  for (const CatchUp catch_up : {CatchUp::Skip, CatchUp::Once, CatchUp::Burst})
    for (const bool by_rule : {true, false}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(catch_up)) + (by_rule ? ", rule" : ", clock"));
      bool throws = false;
      const auto rule = [&](WallTime after) {
        if (by_rule && std::exchange(throws, false)) throw std::runtime_error("rule");
        return std::chrono::floor<std::chrono::minutes>(after) + 1min;
      };
      const auto clock = [&] {
        if (!by_rule && std::exchange(throws, false)) throw std::runtime_error("clock");
        return exact_wall();
      };
      int runs = 0;
      const auto task = schedule(timer_, Schedule::calendar(rule, catch_up, clock), [&] { throws = ++runs == 1; });
      timer_.advance(5min + 1s);
      EXPECT_EQ(runs, 5);
      EXPECT_EQ(errors_.errors().size(), ++rounds);
      task->cancel();
    }
}

TEST_F(WallClockTest, NoOccurrenceIsLostIfTheRuleThrowsAfterTheClockWasSetBack) {
  bool throws = false;
  start(calendar(
      [&](WallTime after) {
        if (std::exchange(throws, false)) throw std::runtime_error("rule");
        return after + 1min;
      },
      CatchUp::Burst));
  timer_.advance(30s);
  offset_ = -2h;
  throws = true;
  timer_.advance(5min);
  EXPECT_EQ(runs_.size(), 4U) << "after 2, 3, 4 and 5 minutes";
  EXPECT_EQ(errors_.errors().size(), 1U);
}

// schedule() makes the first call of the clock. Each round lets one later call throw, at the end of a piece of the wait
// or after a run.
TEST_F(WallClockTest, AWallClockThatThrowsIsReportedAndAskedAgain) {
  std::size_t failures = 0;
  for (int failing = 2; errors_.errors().size() == failures; ++failing, ++failures) {
    runs_.clear();
    const WallTime before = wall();
    int calls = 0;
    const auto clock = [&] {
      if (++calls == failing) throw std::runtime_error("clock");
      return exact_wall();
    };
    const auto token = std::make_shared<int>();
    const auto task = schedule(timer_, Schedule::calendar(next_hour, CatchUp::Skip, clock),
                               [this, token] { runs_.push_back(wall()); });
    timer_.advance(2h + 1min);
    ASSERT_EQ(runs_.size(), 2U) << failing;
    for (int hour = 1; hour <= 2; ++hour) {
      const WallTime due = before + hour * 1h;
      EXPECT_GE(runs_[static_cast<std::size_t>(hour - 1)], due);
      EXPECT_LE(runs_[static_cast<std::size_t>(hour - 1)], due + 1min);
    }
    EXPECT_FALSE(task->done());
    EXPECT_TRUE(task->cancel());
    EXPECT_EQ(timer_.pending_timeouts(), 0);
    EXPECT_EQ(token.use_count(), 1);
    timer_.advance(59min);  // to the full hour
  }
  EXPECT_GT(failures, 120U) << "one in each minute";
  EXPECT_EQ(errors_.errors(), std::vector<std::string>(failures - 1, "clock")) << "the last round had no such call";
  EXPECT_THROW(schedule(timer_,
                        Schedule::calendar([](WallTime after) { return after + 1h; }, CatchUp::Skip,
                                           []() -> system_clock::time_point { throw 1; }),
                        [] {}),
               int);
}

TEST_F(WallClockTest, ARuleThatDoesNotAdvanceIsAnErrorAndNoEndlessLoop) {
  EXPECT_EQ(message_of<std::invalid_argument>([&] { start(calendar([](WallTime after) { return after; })); }),
            "Schedule: rule: returned 0 s since 1970 (expected: more than 0 s)");
  start(calendar([](WallTime) { return WallTime(1min); }));
  timer_.advance(5min + 1s);
  EXPECT_EQ(runs_.size(), 1U);
  EXPECT_EQ(errors_.errors().size(), 5U);
}

/// The clock is set forward over five occurrences while the timer waits for the first, and over two during each run.
TEST_F(WallClockTest, CatchUpDecidesAboutOccurrencesThatHavePassed) {
  const auto runs_with = [this](CatchUp catch_up) {
    runs_.clear();
    offset_ = -timer_.now().time_since_epoch();
    std::vector<nanoseconds> runs;
    const auto task = schedule(timer_, hourly(catch_up), [&] {
      runs.push_back(exact_wall().time_since_epoch());
      if (runs.size() == 1) offset_ += 2h;  // the first run takes so long
    });
    timer_.advance(30min);
    offset_ += 5h;
    timer_.advance(35min);
    task->cancel();
    for (nanoseconds& run : runs) run = std::chrono::round<std::chrono::minutes>(run);
    return runs;
  };
  const nanoseconds late = 5h + 31min;
  const nanoseconds later = late + 2h;
  EXPECT_EQ(runs_with(CatchUp::Skip), std::vector<nanoseconds>({late, 8h}));
  EXPECT_EQ(runs_with(CatchUp::Once), std::vector<nanoseconds>({late, later, 8h})) << "one for 6:00 and 7:00";
  EXPECT_EQ(runs_with(CatchUp::Burst), std::vector<nanoseconds>({late, later, later, later, later, later, later, 8h}))
      << "1:00 to 7:00";
}

TEST_F(WallClockTest, ABurstLeavesTheTimerToOthersAndEndsWithTheLimit) {
  const auto secondly = [](WallTime after) { return after + 1s; };
  const auto task = start(calendar(secondly, CatchUp::Burst));
  offset_ += 24h * 7;  // 604,800 occurrences, more than a burst takes
  std::vector<std::size_t> seen;
  for (int i = 0; i < 300; ++i) timer_.new_timeout([&] { seen.push_back(runs_.size()); }, i * 10ms);
  timer_.advance(3s);
  ASSERT_EQ(seen.size(), 300U);
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_LE(seen[i] - seen[i - 1], 100'001U);
  EXPECT_EQ(runs_.size(), task->runs());
  EXPECT_GE(runs_.size(), 604'802U);
  task->cancel();
  const auto limited = schedule(timer_, calendar(secondly, CatchUp::Burst).limit(5), [] {});
  offset_ += 1h;
  timer_.advance(2min);
  EXPECT_EQ(limited->runs(), 5U);
  EXPECT_TRUE(limited->done());
}

TEST_F(WallClockTest, JitterCountsForAnOverdueOccurrenceToo) {
  std::vector<nanoseconds> waits;
  const auto task = start(hourly(CatchUp::Burst).jitter([&](nanoseconds wait) {
    waits.push_back(wait);
    return wait + 7s;
  }));
  timer_.advance(30min);
  offset_ += 5h;
  timer_.advance(1min);
  const WallTime first = at(5h + 31min);
  EXPECT_EQ(runs_, std::vector<WallTime>({first})) << "1:00, whose jitter has passed with it";
  timer_.advance(29s);
  EXPECT_EQ(runs_, std::vector<WallTime>({first, first + 7s, first + 14s, first + 21s, first + 28s}));
  EXPECT_EQ(waits, std::vector<nanoseconds>({1h, 0s, 0s, 0s, 0s, 29min - 28s}));
}

TEST_F(WallClockTest, JitterMovesARunAndNotTheOccurrences) {
  int calls = 0;
  start(hourly().jitter([&](nanoseconds wait) {
    if (++calls == 3) throw std::runtime_error("jitter");
    return wait + (calls % 2 == 1 ? 7s : -9s);
  }));
  timer_.advance(5h + 30s);
  EXPECT_EQ(runs_, std::vector<WallTime>({at(1h + 7s), at(2h - 9s), at(3h), at(4h - 9s), at(5h + 7s)}));
  EXPECT_EQ(errors_.errors(), std::vector<std::string>({"jitter"})) << "the occurrence runs at its time";
  EXPECT_EQ(calls, 6) << "once for each occurrence";
}

TEST_F(WallClockTest, ADistantOccurrenceIsNever) {
  const auto task = start(calendar([](WallTime) { return (WallTime::max)(); }));
  const auto past = start(calendar([](WallTime) { return WallTime(std::chrono::years(150)); }).jitter([](nanoseconds) {
    return (nanoseconds::max)();
  }));
  timer_.advance(10min);
  EXPECT_TRUE(runs_.empty());
  EXPECT_FALSE(task->done());
  EXPECT_TRUE(task->cancel());
  EXPECT_TRUE(past->cancel());
}

// The moment between the expiry and the start of the job. A cancel at that moment wins.
TEST_F(WallClockTest, CancelWhileTheClockIsRead) {
  std::shared_ptr<ScheduledTask> task;
  bool cancelled = false;
  task = schedule(timer_,
                  Schedule::calendar([](WallTime after) { return after + 1s; }, CatchUp::Skip,
                                     [&] {
                                       if (task != nullptr) cancelled |= task->cancel();
                                       return exact_wall();
                                     }),
                  [] { ADD_FAILURE() << "it was cancelled"; });
  timer_.advance(1min);
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(task->done());
  EXPECT_EQ(task->runs(), 0U);
  EXPECT_EQ(timer_.pending_timeouts(), 0);
}

TEST_F(WallClockTest, AReturnedTimeoutThatIsRunByHandDoesNotWaitForTheClock) {
  const auto task = start(hourly());
  std::vector<Timeout> returned = timer_.stop();
  ASSERT_EQ(returned.size(), 1U);
  returned[0].task().run(returned[0]);
  EXPECT_EQ(runs_.size(), 1U);
  EXPECT_TRUE(task->done());
}

TEST_F(WallClockTest, AnOccurrenceThatJitterBringsForwardByMoreThanAnHourRunsOnce) {
  for (const CatchUp catch_up : {CatchUp::Skip, CatchUp::Once, CatchUp::Burst}) {
    int runs = 0;
    const auto daily = [](WallTime after) { return std::chrono::floor<std::chrono::days>(after - 3h) + 27h; };
    const auto early = [](nanoseconds wait) { return std::max<nanoseconds>(wait - 72min, 1min); };
    const auto task = schedule(timer_, calendar(daily, catch_up).jitter(early), [&] { ++runs; });
    for (int minute = 0; minute < 10 * 24 * 60; ++minute) timer_.advance(1min);
    EXPECT_NEAR(runs, 10, 1) << static_cast<int>(catch_up);
    task->cancel();
  }
}

TEST_F(WallClockTest, AClockSetBackALittleDoesNotRepeatARunThatJitterHasBroughtForward) {
  const auto task = start(calendar([](WallTime after) {
                            return std::chrono::floor<std::chrono::days>(after) + 24h;
                          }).jitter([](nanoseconds wait) { return wait > 50min ? wait - 50min : wait; }));
  timer_.advance(23h + 11min);
  ASSERT_EQ(runs_.size(), 1U);
  offset_ -= 20min;
  timer_.advance(3h);
  EXPECT_EQ(runs_.size(), 1U);
}

TEST_F(WallClockTest, AClockThatWasAheadForSecondsDelaysNoLaterRun) {
  const auto task = start(hourly(CatchUp::Burst).jitter([](nanoseconds wait) { return wait + 1min; }));
  timer_.advance(1h + 50s);
  offset_ += 5h;
  timer_.advance(20s);
  offset_ -= 5h;
  timer_.advance(2h + 5min);
  EXPECT_EQ(runs_, std::vector<WallTime>({at(6h + 1min), at(2h + 1min), at(3h + 1min)}));
}

TEST_F(WallClockTest, AClockThatIsSetBackInARunDelaysNoLaterRunOfTheOccurrence) {
  const auto daily = [](WallTime after) { return std::chrono::floor<std::chrono::days>(after) + 24h; };
  const auto task =
      schedule(timer_, calendar(daily, CatchUp::Burst).jitter([](nanoseconds wait) { return wait + 1min; }), [this] {
        runs_.push_back(wall());
        if (runs_.size() == 2) offset_ -= 70h;  // to before the second day
      });
  timer_.advance(23h);
  offset_ += 72h;
  while (runs_.size() < 2) timer_.advance(1s);
  EXPECT_EQ(exact_wall() + (*task->next() - timer_.now()), at(48h + 1min));
}

// A piece of the wait may still be in the executor when the timer is gone: the schedule ends, and nothing runs early.
TEST_F(WallClockTest, APieceThatOutlivesTheTimerRunsNothing) {
  JobQueue jobs;
  int runs = 0;
  system_clock::time_point wall(59min + 59s);
  auto timer = std::make_unique<HashedWheelTimer>(Options{.tick_duration = 1ms, .executor = jobs.executor()});
  const auto task =
      schedule(*timer, Schedule::calendar(next_hour, CatchUp::Skip, [&] { return wall; }), [&] { ++runs; });
  ASSERT_TRUE(jobs.wait_for(1));
  wall -= 30min;  // set back, so that this piece was not the last
  timer.reset();
  jobs.run_all();
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(task->runs(), 0U);
  EXPECT_TRUE(task->done());
}

TEST_F(WallClockTest, AClockThatIsSetBackDuringAnEndlessJitterDoesNotMakeTheRunDueNorAsksForAnotherJitter) {
  int calls = 0;
  offset_ = 30min;
  const auto task = start(hourly().jitter([&](nanoseconds) { return ++calls, nanoseconds::max(); }));
  timer_.advance(1min);
  offset_ = 15min;  // the wait for the same occurrence is longer now
  timer_.advance(10min);
  EXPECT_TRUE(runs_.empty());
  EXPECT_FALSE(task->done());
  EXPECT_EQ(calls, 1);
}

TEST_F(WallClockTest, AnOccurrenceThatPassedCenturiesAgoIsDueHoweverEarlyJitterMadeIt) {
  offset_ = -200 * kYear;
  const calendar::Rule rare = [](WallTime after) { return after + std::chrono::seconds(150 * kYear); };
  const auto task = start(calendar(rare).jitter([](nanoseconds) { return 10min; }));
  timer_.advance(1min);
  EXPECT_TRUE(runs_.empty());
  offset_ = 200 * kYear;
  timer_.advance(1min);
  EXPECT_EQ(runs_.size(), 1U);
}

TEST(ScheduleCalendar, TheRealWallClockIsUsed) {
  const WallTime begin = std::chrono::floor<std::chrono::seconds>(system_clock::now());
  const auto rule = [begin](WallTime after) {
    EXPECT_TRUE(after >= begin && after <= system_clock::now());
    return after + 1s;
  };
  std::atomic<bool> early = false;
  HashedWheelTimer timer(10ms);
  const auto task =
      schedule(timer, Schedule::calendar(rule).limit(1), [&] { early = system_clock::now() < begin + 1s; });
  EXPECT_TRUE(eventually([&] { return task->done(); }));
  EXPECT_EQ(task->runs(), 1U);
  EXPECT_FALSE(early);
}

}  // namespace
}  // namespace hwt::test
