// The rules of schedule.h. The tests use a ManualTimer, or a HashedWheelTimer if they need threads.

#include "hashed_wheel_timer/schedule.h"

#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using time_point = steady_clock::time_point;
using Times = std::vector<milliseconds>;

/// A timer and when the jobs made here have run, in milliseconds since its start.
struct Journal {
  std::function<void()> job() {
    return [this] { times.push_back(since_start()); };
  }
  milliseconds since_start() const { return std::chrono::duration_cast<milliseconds>(timer.now().time_since_epoch()); }
  std::optional<milliseconds> next(const ScheduledTask& task) const {
    if (!task.next()) return {};
    return std::chrono::duration_cast<milliseconds>(task.next()->time_since_epoch());
  }

  Times times;
  ErrorLog errors;
  ManualTimer timer{1ms, {}, errors.handler()};
};

TEST(ScheduleKinds, RunAtTheirTimes) {
  struct Row {
    const char* name;
    Schedule plan;
    Times times;  // up to 50 ms
    bool done;
  };
  const auto early = [](nanoseconds wait) { return wait - 4ms; };
  const auto negative = [](nanoseconds) { return -1h; };
  for (const auto& [name, plan, times, done] :
       {Row{"once", Schedule::once(10ms), {10ms}, true},
        Row{"a fixed rate keeps to its grid", Schedule::fixed_rate(5ms, 10ms), {5ms, 15ms, 25ms, 35ms, 45ms}, false},
        Row{"a sequence runs after each gap", Schedule::sequence({1ms, 4ms, 5ms, 40ms}), {1ms, 5ms, 10ms, 50ms}, true},
        Row{"a cycle begins again after its last gap",
            Schedule::cycle({1ms, 20ms, 3ms}),
            {1ms, 21ms, 24ms, 25ms, 45ms, 48ms, 49ms},
            false},
        Row{"a cycle of one gap is a fixed rate", Schedule::cycle({15ms}), {15ms, 30ms, 45ms}, false},
        Row{"a run that jitter brings forward does not repeat its occurrence",
            Schedule::fixed_rate(10ms, 10ms).jitter(early),
            {6ms, 16ms, 26ms, 36ms, 46ms},
            false},
        Row{"a negative wait is the next tick",
            Schedule::fixed_delay(10ms, 10ms).jitter(negative).limit(3),
            {1ms, 2ms, 3ms},
            true},
        Row{"limit ends a fixed delay", Schedule::fixed_delay(1ms, 1ms).limit(3), {1ms, 2ms, 3ms}, true},
        Row{"limit ends a fixed rate", Schedule::fixed_rate(1ms, 1ms).limit(3), {1ms, 2ms, 3ms}, true},
        Row{"limit ends a cycle", Schedule::cycle({1ms, 2ms}).limit(3), {1ms, 3ms, 4ms}, true},
        Row{"limit ends a sequence", Schedule::sequence({1ms, 1ms, 1ms, 1ms}).limit(3), {1ms, 2ms, 3ms}, true}}) {
    SCOPED_TRACE(name);
    Journal journal;
    const auto task = schedule(journal.timer, plan, journal.job());
    journal.timer.advance(times.front() - 1ms);
    EXPECT_EQ(journal.times, Times());
    EXPECT_FALSE(task->done());
    journal.timer.advance(51ms - times.front());
    EXPECT_EQ(journal.times, times);
    EXPECT_EQ(task->runs(), times.size());
    EXPECT_EQ(task->done(), done);
    EXPECT_EQ(task->next() == std::nullopt, done);
    EXPECT_EQ(journal.timer.pending_timeouts(), done ? 0 : 1);
  }
}

TEST(ScheduleKinds, AGapBeyondTheClockIsNever) {
  constexpr nanoseconds kMax = (nanoseconds::max)();
  constexpr auto kHours = (std::chrono::hours::max)();
  Journal journal;
  journal.timer.advance(1s);
  const auto task = schedule(journal.timer, Schedule::sequence({1ms, kMax, kMax}), journal.job());
  journal.timer.advance_to(time_point(24h * 365 * 100));
  EXPECT_EQ(task->runs(), 1U);
  EXPECT_EQ(task->next(), (time_point::max)());
  for (const Schedule& plan :
       {Schedule::fixed_rate(kMax, kMax), Schedule::once(kHours), Schedule::once(std::chrono::years(600)),
        Schedule::fixed_rate(kHours, 1s), Schedule::fixed_delay(kHours, kHours),
        Schedule::once(1ms).jitter([](nanoseconds) { return (nanoseconds::max)(); })}) {
    const auto never = schedule(journal.timer, plan, [] {});
    EXPECT_EQ(never->next(), (time_point::max)());
    ManualTimer before_zero(1ms, time_point(-1h));
    EXPECT_EQ(schedule(before_zero, plan, [] {})->next(), (time_point::max)());
    EXPECT_TRUE(never->cancel());
  }
  EXPECT_EQ(message_of<std::invalid_argument>([] { Schedule::once((std::chrono::hours::min)()); }),
            "Schedule: delay: -9223372036854775807 ns (expected: 0 ns or more)");
}

TEST(ScheduleCatchUp, AfterAStall) {
  struct Stall {
    milliseconds begin;
    milliseconds end;
    milliseconds test_ends;
  };
  constexpr Stall kBetweenRuns{10ms, 57ms, 72ms};  // 20 was waited for, and 30, 40 and 50 have passed
  constexpr Stall kOfTenRuns{0ms, 105ms, 1s};
  constexpr Stall kOfManyCycles{0ms, 6003ms, 6012ms};  // 1,000 of them, and then 1 and 3 ms
  constexpr Stall kOverTheEnd{0ms, 1s, 2s};
  const Times three{105ms, 110ms, 120ms};
  const Times in_phase{6003ms, 6006ms, 6007ms, 6009ms, 6012ms};
  const auto rate = [](CatchUp catch_up) { return Schedule::fixed_rate(10ms, 10ms, catch_up); };
  const auto cycle = [](CatchUp catch_up) { return Schedule::cycle({1ms, 2ms, 3ms}, catch_up); };
  const auto five = [](CatchUp catch_up) { return Schedule::sequence(std::vector<nanoseconds>(5, 10ms), catch_up); };
  const auto expect = [](const char* name, const Stall& stall, const Schedule& plan, const Times& times, bool done) {
    SCOPED_TRACE(name);
    Journal journal;
    const auto task = schedule(journal.timer, plan, journal.job());
    journal.timer.advance(stall.begin);
    journal.timer.advance_to(time_point(stall.end));
    journal.timer.advance(stall.test_ends - stall.end);
    EXPECT_EQ(journal.times, times);
    EXPECT_EQ(task->done(), done);
  };
  expect("Skip drops all but the awaited", kBetweenRuns, rate(CatchUp::Skip), {10ms, 57ms, 60ms, 70ms}, false);
  expect("Once gives one run for all", kBetweenRuns, rate(CatchUp::Once), {10ms, 57ms, 60ms, 70ms}, false);
  expect("Burst runs each", kBetweenRuns, rate(CatchUp::Burst), {10ms, 57ms, 57ms, 57ms, 57ms, 60ms, 70ms}, false);
  expect("the limit ignores those that Skip drops", kOfTenRuns, rate(CatchUp::Skip).limit(3), three, true);
  expect("the limit ignores those that Once drops", kOfTenRuns, rate(CatchUp::Once).limit(3), three, true);
  expect("Skip keeps the phase of a cycle", kOfManyCycles, cycle(CatchUp::Skip), in_phase, false);
  expect("Once keeps the phase of a cycle", kOfManyCycles, cycle(CatchUp::Once), in_phase, false);
  expect("never again", {0ms, 10ms, 1h}, Schedule::cycle({1ms, 1ms, nanoseconds::max()}), {10ms}, false);
  expect("Skip drops the end of a sequence", kOverTheEnd, five(CatchUp::Skip), {1s}, true);
  expect("Once gives one run for the end of a sequence", kOverTheEnd, five(CatchUp::Once), {1s}, true);
  expect("Burst runs the whole sequence", kOverTheEnd, five(CatchUp::Burst), Times(5, 1s), true);
}

// On a ManualTimer no number depends on the real clock.
TEST(ScheduleCatchUp, ABurstOfSlowRunsIsAsLongAsOneOfFastRuns) {
  for (const auto length : {0us, 100us}) {
    ManualTimer timer(1ms, time_point());
    const auto task = schedule(timer, Schedule::fixed_rate(1ms, 1ms, CatchUp::Burst), [length] {
      for (const auto end = steady_clock::now() + length; steady_clock::now() < end;) {
      }
    });
    timer.advance_to(time_point(1s));
    EXPECT_EQ(task->runs(), 1000U);
  }
}

TEST(ScheduleCatchUp, OtherTimeoutsRunDuringABurst) {
  ManualTimer timer(1ms, time_point());
  const auto task = schedule(timer, Schedule::fixed_rate(1ns, 1ns, CatchUp::Burst), [] {});
  bool others = false;
  timer.advance_to(time_point(999ms));
  timer.new_timeout([&] { others = true; }, 1ms);
  timer.advance_to(time_point(1s));
  EXPECT_TRUE(others);
  EXPECT_EQ(task->runs(), 200'000U) << "a burst gives way after 100,000 runs";
  EXPECT_LT(task->next().value(), timer.now()) << "the next run is late";
}

TEST(ScheduleCatchUp, EachRunOfABurstReportsItsErrorAndTheNextOneKeepsItsTime) {
  Journal journal;
  const auto task = schedule(journal.timer, Schedule::fixed_rate(10ms, 10ms, CatchUp::Burst),
                             [] { throw std::runtime_error("again"); });
  journal.timer.advance_to(time_point(45ms), 1);
  EXPECT_EQ(task->runs(), 4U);
  EXPECT_EQ(journal.errors.errors(), std::vector<std::string>(4, "again"));
  EXPECT_EQ(journal.next(*task), 50ms);
}

TEST(ScheduleCatchUp, AStallOfYearsCostsNoTime) {
  for (const CatchUp catch_up : {CatchUp::Skip, CatchUp::Once}) {
    ManualTimer timer(1ms, time_point());
    const auto task = schedule(timer, Schedule::cycle({1ns, 2ns}, catch_up), [] {});
    timer.advance_to(time_point(24h * 365 * 50));
    EXPECT_EQ(task->runs(), 1U);
    EXPECT_GT(*task->next(), timer.now());
  }
}

TEST(ScheduleCatchUp, NothingRunsAfterTheEndOfTime) {
  for (const Schedule& schedule_of :
       {Schedule::fixed_rate(1s, 1s), Schedule::fixed_rate(1s, 1s, CatchUp::Once), Schedule::cycle({1s, 2s}),
        Schedule::cycle({1s, 2s}, CatchUp::Once), Schedule::fixed_delay(1s, 1s)}) {
    ManualTimer timer(1ms, time_point());
    const auto task = schedule(timer, schedule_of, [] {});
    timer.advance_to((time_point::max)());
    EXPECT_GE(task->runs(), 1U);
    EXPECT_LE(task->runs(), 2U) << "the passed occurrences cause one more run, or none";
    EXPECT_EQ(task->next(), (time_point::max)());
    EXPECT_FALSE(task->done());
    EXPECT_TRUE(task->cancel());
  }
}

// A clock that begins so far below zero that a distance is beyond nanoseconds: the grid must not move.
TEST(ScheduleCatchUp, AStallOfFourHundredYearsKeepsTheGrid) {
  constexpr time_point kStart(nanoseconds(-6'000'000'000'000'000'000));
  for (const CatchUp catch_up : {CatchUp::Skip, CatchUp::Once}) {
    ManualTimer timer(1ms, kStart);
    const auto task = schedule(timer, Schedule::fixed_rate(3s, 7s, catch_up), [] {});
    timer.advance_to(time_point(nanoseconds(6'000'000'000'000'000'000)));
    ASSERT_TRUE(task->next());
    const std::uint64_t from_start = static_cast<std::uint64_t>(task->next()->time_since_epoch().count()) -
                                     static_cast<std::uint64_t>(kStart.time_since_epoch().count());
    EXPECT_EQ(from_start % 7'000'000'000U, 3'000'000'000U);
    EXPECT_LT(*task->next() - timer.now(), 7s);
  }
}

// A run that its jitter has brought forward ends two centuries before the next one is due.
TEST(ScheduleCatchUp, AWaitBeyondTheRangeOfNanosecondsIsNever) {
  ManualTimer timer(1ms, time_point(-24h * 365 * 250));
  const auto early = [](nanoseconds) { return 1s; };
  const auto task = schedule(timer, Schedule::fixed_rate(24h * 365 * 200, 24h * 365 * 200).jitter(early), [] {});
  timer.advance(2s);
  EXPECT_GE(task->runs(), 1U);
  EXPECT_GE(*task->next(), timer.now());
  EXPECT_TRUE(task->cancel());
}

/// A thread of an executor makes the first run, from 10 ms to `ended`, while the clock goes on.
TEST(ScheduleCatchUp, ARunLongerThanThreePeriods) {
  const auto expect = [](const Schedule& plan, nanoseconds ended, nanoseconds next,
                         const std::vector<nanoseconds>& runs) {
    std::vector<nanoseconds> ran;
    JobQueue jobs;
    ManualTimer timer(Options{.tick_duration = 1ms, .executor = jobs.executor()}, time_point());
    const auto task = schedule(timer, plan, [&] {
      ran.push_back(timer.now().time_since_epoch());
      if (ran.size() == 1) timer.advance_to(time_point(ended));
    });
    timer.advance(10ms);
    jobs.run_all();
    EXPECT_EQ(task->next(), time_point(next));
    for (int ms = 0; ms < 20; ++ms) {
      timer.advance(1ms);
      jobs.run_all();
      if (ran.size() >= runs.size()) break;
    }
    EXPECT_EQ(ran, runs);
  };
  expect(Schedule::fixed_rate(10ms, 10ms, CatchUp::Skip), 45ms, 50ms, {10ms, 50ms});
  expect(Schedule::fixed_rate(10ms, 10ms, CatchUp::Once), 45ms, 40ms, {10ms, 46ms, 50ms});  // for 20, 30 and 40
  // The first run was longer than the 5 ms of a burst, so the others wait for a tick.
  expect(Schedule::fixed_rate(10ms, 10ms, CatchUp::Burst), 45ms, 20ms, {10ms, 46ms, 46ms, 46ms, 50ms});
  expect(Schedule::fixed_delay(10ms, 10ms), 45ms, 55ms, {10ms, 55ms});
  // Of 10, 30, 60 and 70, the last that has passed is that of the end of the run, to the nanosecond.
  expect(Schedule::cycle({10ms, 20ms, 30ms}, CatchUp::Once), 60ms, 60ms, {10ms, 61ms, 70ms});
  // However many have passed, none is counted.
  expect(Schedule::fixed_rate(10ms, 1ns, CatchUp::Once), 24h, 24h, {10ms, 24h + 1ms});
}

TEST(ScheduleCancel, TheJobMayCancelItselfAndNothingRunsAfterwards) {
  for (const CatchUp catch_up : {CatchUp::Skip, CatchUp::Burst}) {
    ManualTimer timer;
    std::shared_ptr<ScheduledTask> task, dropped;
    int others = 0;
    dropped = schedule(timer, Schedule::fixed_rate(1ms, 1ms).limit(5), [&] { ++others, dropped.reset(); });
    task = schedule(timer, Schedule::fixed_rate(1ms, 1ms, catch_up), [&] {
      EXPECT_EQ(task->next(), std::nullopt) << "nothing during a run";
      if (task->runs() < 3) return;
      EXPECT_TRUE(task->cancel());
      EXPECT_TRUE(task->done());
      EXPECT_FALSE(task->cancel()) << "true once only";
    });
    timer.advance_to(timer.now() + 1s);  // three runs of a burst
    timer.advance(1s);
    EXPECT_EQ(task->runs(), 3U);
    EXPECT_TRUE(task->done());
    EXPECT_EQ(task->next(), std::nullopt);
    EXPECT_EQ(others, 5) << "a job that drops its handle goes on";
    EXPECT_EQ(timer.pending_timeouts(), 0);
  }
}

TEST(ScheduleCancel, IsFalseDuringARunOnAnotherThreadWhichIsTheLast) {
  Hold hold;
  HashedWheelTimer timer(1ms);
  const auto token = std::make_shared<int>();
  auto task = schedule(timer, Schedule::fixed_rate(0ms, 1ms), [&, copy = token] {
    hold();
    EXPECT_EQ(copy.use_count(), 2) << "the job must not be destroyed while it runs";
  });
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_FALSE(task->cancel());
  EXPECT_TRUE(task->done());
  EXPECT_EQ(task->next(), std::nullopt);
  hold.let_go();
  EXPECT_TRUE(eventually([&] { return token.use_count() == 1; })) << "the job is destroyed after its last run";
  EXPECT_EQ(task->runs(), 1U);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// Returns a jitter that holds the thread that computes the second wait.
auto holding_the_second_wait(Hold& hold) {
  return [&hold, waits = 0](nanoseconds wait) mutable {
    if (++waits == 2) hold();
    return wait;
  };
}

// The run is over, so cancel() is true although the timer's thread is still at work on the next wait.
TEST(ScheduleCancel, IsTrueWhileTheNextWaitIsComputed) {
  Hold hold;
  HashedWheelTimer timer(1ms);
  const auto task = schedule(timer, Schedule::fixed_rate(0ms, 1ms).jitter(holding_the_second_wait(hold)), [] {});
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_TRUE(task->cancel());
  EXPECT_TRUE(task->done());
  hold.let_go();
  timer.stop();
  EXPECT_EQ(task->runs(), 1U);
}

TEST(ScheduleCancel, OneOfManyThreadsWins) {
  for (int round = 0; round < 50; ++round) {
    ManualTimer timer;
    const auto task = schedule(timer, Schedule::fixed_rate(1h, 1h), [] {});
    std::atomic<int> won = 0;
    run_together(3, [&](int) { won += task->cancel() ? 1 : 0; });
    EXPECT_EQ(won, 1);
  }
}

TEST(ScheduleErrors, AnExceptionIsReportedAndTheScheduleGoesOn) {
  Journal journal;
  const auto task = schedule(journal.timer, Schedule::fixed_rate(1ms, 1ms).limit(5), [&] {
    journal.times.push_back(journal.since_start());
    if (journal.times.size() == 2) throw std::runtime_error("second run");
    if (journal.times.size() == 3) throw 7;
    if (journal.times.size() == 5) throw std::runtime_error("last run");
  });
  journal.timer.advance(6ms);
  EXPECT_EQ(journal.times, Times({1ms, 2ms, 3ms, 4ms, 5ms}));
  EXPECT_EQ(journal.errors.errors(), std::vector<std::string>({"second run", "7", "last run"}));
  EXPECT_EQ(task->runs(), 5U);
  EXPECT_TRUE(task->done());
}

TEST(ScheduleErrors, ARefusedWaitIsReportedWithTheJobsExceptionInsideAndEndsTheSchedule) {
  for (const bool job_throws : {false, true}) {
    SCOPED_TRACE(job_throws ? "the job throws" : "the job returns");
    std::vector<std::string> texts;
    Latch reported;
    Timeout filler;
    HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 1, .on_task_error = [&](auto error, auto&) {
                              try {
                                std::rethrow_exception(std::move(error));
                              } catch (const std::exception& outer) {
                                texts.emplace_back(outer.what());
                                try {
                                  std::rethrow_if_nested(outer);
                                } catch (const std::exception& inner) {
                                  texts.emplace_back(inner.what());
                                }
                              }
                              reported.count_down();
                            }}};
    const auto task = schedule(timer, Schedule::fixed_rate(0ms, 1ms), [&] {
      filler = timer.new_timeout([] {}, kFar);
      if (job_throws) throw std::runtime_error("the job's");
    });
    ASSERT_TRUE(reported.wait());
    std::vector<std::string> expected{"schedule: max_pending_timeouts: 1 timeouts are pending already"};
    if (job_throws) expected.emplace_back("the job's");
    EXPECT_EQ(texts, expected);
    EXPECT_TRUE(eventually([&] { return task->done(); }));
    EXPECT_EQ(task->runs(), 1U);
  }
}

TEST(ScheduleErrors, ScheduleRefusesAsNewTimeoutDoes) {
  HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 1}};
  const auto token = std::make_shared<int>();
  Timeout filler = timer.new_timeout([] {}, kFar);
  EXPECT_THROW(schedule(timer, Schedule::once(1ms), [token] {}), RejectedExecution);
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_EQ(token.use_count(), 1);
  timer.stop();
  EXPECT_THROW(schedule(timer, Schedule::once(1ms), [token] {}), IllegalState);
  EXPECT_EQ(token.use_count(), 1);
}

TEST(ScheduleErrors, BadArgumentsAreNamedWithTheirRange) {
  ManualTimer timer;
  const auto expect = [](const char* message, const std::function<void()>& f) {
    EXPECT_EQ(message_of<std::invalid_argument>(f), message);
  };
  expect("Schedule: delay: -1 ns (expected: 0 ns or more)", [] { Schedule::once(-1ns); });
  expect("Schedule: initial: -2 ns (expected: 0 ns or more)", [] { Schedule::fixed_delay(-2ns, 1ns); });
  expect("Schedule: delay: 0 ns (expected: 1 ns or more)", [] { Schedule::fixed_delay(0ns, 0ns); });
  expect("Schedule: initial: -3 ns (expected: 0 ns or more)", [] { Schedule::fixed_rate(-3ns, 1ns); });
  expect("Schedule: period: -4 ns (expected: 1 ns or more)", [] { Schedule::fixed_rate(0ns, -4ns); });
  expect("Schedule: gaps: none (expected: at least one)", [] { Schedule::sequence({}); });
  expect("Schedule: gaps[1]: 0 ns (expected: 1 ns or more)", [] { Schedule::sequence({1ns, 0ns}); });
  expect("Schedule: gaps: none (expected: at least one)", [] { Schedule::cycle({}); });
  expect("Schedule: gaps[0]: -9223372036854775808 ns (expected: 1 ns or more)",
         [] { Schedule::cycle({nanoseconds::min()}); });
  expect("Schedule: rule: null (expected: a function)", [] { Schedule::calendar({}); });
  expect("Schedule: limit: 0 (expected: 1 or more)", [] { (void)Schedule::once(1ns).limit(0); });
  expect("Schedule: jitter: null (expected: a function)", [] { (void)Schedule::once(1ns).jitter({}); });
  expect("schedule: job: null (expected: a callable)", [&] { schedule(timer, Schedule::once(1ns), {}); });
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(ScheduleErrors, AMovedFromScheduleIsRefused) {
  const auto no_jitter = [](nanoseconds wait) { return wait; };
  const std::vector<std::function<Schedule(Schedule&)>> moves{
      [other = Schedule::once(1h)](Schedule& plan) mutable { return other = std::move(plan); },
      [](Schedule& plan) { return std::move(plan); }, [](Schedule& plan) { return std::move(plan).limit(1); },
      [&](Schedule& plan) { return std::move(plan).jitter(no_jitter); }};
  ManualTimer timer;
  for (const Schedule& kind :
       {Schedule::once(1s), Schedule::fixed_delay(1s, 1s), Schedule::fixed_rate(1s, 1s), Schedule::sequence({1s, 2s}),
        Schedule::cycle({1s, 2s}), Schedule::calendar([](WallTime after) { return after + 1s; })}) {
    for (const auto& move : moves) {
      Schedule plan = kind;
      Schedule moved = move(plan);
      const Schedule copy = plan;
      for (const Schedule& empty : {plan, copy}) {
        const auto expect_refused = [](const char* by, const std::function<void()>& use) {
          EXPECT_EQ(message_of<std::invalid_argument>(use),
                    std::string(by) + ": moved from (expected: a Schedule that has its times)");
        };
        expect_refused("schedule: plan", [&] { schedule(timer, empty, [] {}); });
        expect_refused("Schedule: limit", [&] { (void)empty.limit(1); });
        expect_refused("Schedule: jitter", [&] { (void)empty.jitter(no_jitter); });
      }
      EXPECT_EQ(timer.pending_timeouts(), 0);
      plan = std::move(moved);
      const auto task = schedule(timer, plan, [] {});
      EXPECT_FALSE(task->done());
      EXPECT_TRUE(task->cancel());
    }
  }
}

TEST(ScheduleKinds, LimitAndJitterOfANamedScheduleLeaveItAsItIs) {
  ManualTimer timer;
  int runs = 0;
  const Schedule plan = Schedule::fixed_rate(1s, 1s);
  schedule(timer, plan.limit(2), [&] { ++runs; });
  schedule(timer, plan.jitter([](nanoseconds wait) { return wait + 500ms; }).limit(1), [&] { runs += 10; });
  timer.advance(1s);
  EXPECT_EQ(runs, 1);
  timer.advance(9s);
  EXPECT_EQ(runs, 12);
  const auto unlimited = schedule(timer, plan, [&] { runs += 100; });
  timer.advance(9s);
  EXPECT_EQ(runs, 912);
}

TEST(ScheduleJitter, AnExceptionIsReportedAndTheWaitIsUsedAsItIs) {
  Journal journal;
  int calls = 0;
  const auto jitter = [&](nanoseconds wait) {
    if (++calls == 2) throw std::runtime_error("jitter");
    return wait;
  };
  schedule(journal.timer, Schedule::fixed_rate(10ms, 10ms).jitter(jitter), journal.job());
  journal.timer.advance(30ms);
  EXPECT_EQ(journal.times, Times({10ms, 20ms, 30ms}));
  EXPECT_EQ(journal.errors.errors(), std::vector<std::string>({"jitter"}));
}

TEST(ScheduleJitter, AnExceptionForTheFirstWaitReachesTheCaller) {
  ManualTimer timer;
  const auto token = std::make_shared<int>();
  EXPECT_THROW(schedule(timer, Schedule::once(1ms).jitter([](nanoseconds) -> nanoseconds { throw 1; }), [token] {}),
               int);
  EXPECT_EQ(token.use_count(), 1);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(ScheduleOwnership, TheJobTheRuleAndTheJitterAreDestroyedAfterTheLastRunAndByCancel) {
  ManualTimer timer;
  const auto token = std::make_shared<int>();
  const auto start = [&](Schedule plan) {
    return schedule(timer, std::move(plan).jitter([token](nanoseconds wait) { return wait; }), [token] {});
  };
  const auto once = start(Schedule::once(1ms));
  EXPECT_GE(token.use_count(), 3);
  timer.advance(1ms);
  EXPECT_EQ(token.use_count(), 1);
  const auto endless = start(Schedule::calendar([token](WallTime after) { return after + 1h; }));
  EXPECT_GE(token.use_count(), 4);
  endless->cancel();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(ScheduleOwnership, DestructorsOfTheJobMayUseTheHandle) {
  ManualTimer timer;
  std::shared_ptr<ScheduledTask> task;
  int asked = 0;
  const auto job = [&] {
    const auto ask = [&](const int* number) {
      delete number;
      EXPECT_FALSE(task->cancel());
      EXPECT_EQ(task->next(), std::nullopt);
      ++asked;
    };
    return [captured = std::shared_ptr<int>(new int, ask)] {};
  };
  task = schedule(timer, Schedule::fixed_rate(1ms, 1ms), job());
  EXPECT_TRUE(task->cancel());
  EXPECT_EQ(asked, 1);
}

TEST(ScheduleOwnership, AfterTheEndOfTheTimerTheHandleIsTheLastOwner) {
  for (const bool destroyed : {false, true}) {
    SCOPED_TRACE(destroyed ? "destroyed" : "not destroyed");
    for (const bool cancel : {false, true}) {
      SCOPED_TRACE(cancel ? "cancels" : "does not cancel");
      const auto token = std::make_shared<int>(), of_timer = std::make_shared<int>();
      std::optional<ManualTimer> timer(
          Options{.tick_duration = 1ms, .on_task_error = [of_timer](std::exception_ptr, const Timeout&) {}});
      auto task = schedule(*timer, Schedule::fixed_rate(1ms, 1ms), [token] {});
      schedule(*timer, Schedule::fixed_rate(1ms, 1ms), [token] {});
      timer->advance(3ms);
      if (destroyed) {
        timer.reset();
      } else {
        std::vector<Timeout> returned = timer->stop();
        EXPECT_EQ(token.use_count(), 3) << "both jobs";
      }
      EXPECT_TRUE(task->done());
      EXPECT_EQ(task->next(), std::nullopt);
      EXPECT_EQ(task->runs(), 3U);
      EXPECT_EQ(token.use_count(), 2) << "the job without a handle";
      if (cancel) {
        EXPECT_TRUE(task->cancel()) << "no call can run it by hand any more";
        EXPECT_EQ(of_timer.use_count(), destroyed ? 1 : 2) << "a cancelled schedule keeps nothing of its timer";
      } else {
        task.reset();
      }
      EXPECT_EQ(token.use_count(), 1);
    }
  }
}

TEST(ScheduleOwnership, AReturnedTimeoutThatIsRunByHandRunsTheJobOnce) {
  for (const bool timer_gone : {false, true}) {
    SCOPED_TRACE(timer_gone ? "the timer is gone" : "the timer is there");
    int runs = 0;
    auto timer = std::make_unique<ManualTimer>();
    std::shared_ptr<ScheduledTask> task;
    task = schedule(*timer, Schedule::fixed_rate(1ms, 1ms), [&] {
      ++runs;
      EXPECT_TRUE(task->done()) << "once done, always done";
      EXPECT_EQ(task->next(), std::nullopt);
    });
    std::vector<Timeout> returned = timer->stop();
    EXPECT_TRUE(task->done());
    ASSERT_EQ(returned.size(), 1U);
    if (timer_gone) timer.reset();
    returned[0].task().run(returned[0]);
    returned[0].task().run(returned[0]);
    EXPECT_EQ(runs, 1);
    EXPECT_TRUE(task->done());
  }
}

TEST(ScheduleOwnership, TheJobMayDestroyTheTimer) {
  auto timer = std::make_shared<ManualTimer>();
  int runs = 0;
  const auto task = schedule(*timer, Schedule::fixed_rate(1ms, 1ms), [&] {
    ++runs;
    timer.reset();
  });
  ManualTimer& borrowed = *timer;
  borrowed.advance(5ms);
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(task->done());
}

TEST(ScheduleThreads, StoppingTheTimerDuringARunEndsTheScheduleQuietly) {
  ErrorLog errors;
  Hold hold;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = errors.handler()}};
  const auto task = schedule(timer, Schedule::fixed_rate(0ms, 1ms), [&] { hold(); });
  ASSERT_TRUE(hold.wait_until_entered());
  std::jthread stopper([&] { EXPECT_TRUE(timer.stop().empty()); });
  wait_until_refusing(timer);
  hold.let_go();
  stopper.join();
  EXPECT_TRUE(task->done());
  EXPECT_EQ(task->runs(), 1U);
  EXPECT_TRUE(errors.errors().empty());
}

// The destructor of a timer does not wait for jobs in an executor. So the end of a run checks whether the timer exists.
TEST(ScheduleThreads, TheTimerMayBeDestroyedWhileARunEndsInTheExecutor) {
  Hold hold;
  ThreadPerJob threads;
  auto timer = std::make_unique<HashedWheelTimer>(Options{.tick_duration = 1ms, .executor = threads.executor()});
  const auto task = schedule(*timer, Schedule::fixed_rate(0ms, 1ms).jitter(holding_the_second_wait(hold)), [] {});
  ASSERT_TRUE(hold.wait_until_entered());
  timer.reset();
  hold.let_go();
  EXPECT_TRUE(eventually([&] { return task->done(); }));
  EXPECT_EQ(task->runs(), 1U);
}

/// The executor's thread may stop the timer; the worker may not.
TEST(ScheduleThreads, ARunThatStopsTheTimerIsTheLastOneOfABurst) {
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
