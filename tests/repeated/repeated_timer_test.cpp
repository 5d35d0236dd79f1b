// RepeatedTimer beyond the random calls of tests/fuzz/timers.cpp: threads, what happens in the middle of a hook,
// lifetime, messages, and the executor.

#include <type_traits>

#include "tests/support/repeated_timer_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

static_assert(!std::is_copy_constructible_v<RepeatedTimer> && !std::is_move_constructible_v<RepeatedTimer>);

class RepeatedTimerIdle : public RepeatedTimerFixture {};

TEST_F(RepeatedTimerIdle, RunOnceNowTriggersOnThisThreadAndArmsFromThen) {
  timer_->start();
  clock_.advance(30ms);
  std::thread::id triggered_on;
  during_ = [&] { triggered_on = std::this_thread::get_id(); };
  std::thread::id caller;
  on_another_thread([&] {
    caller = std::this_thread::get_id();
    EXPECT_TRUE(timer_->run_once_now());
  });
  EXPECT_EQ(triggered_on, caller);
  EXPECT_EQ(clock_.pending_timeouts(), 1);
  clock_.advance(100ms);
  EXPECT_EQ(triggers_, (Times{30ms, 80ms, 130ms}));
}

TEST_F(RepeatedTimerIdle, DestroyRunsOnDestroyAtOnceAndOnce) {
  timer_->start();
  clock_.advance(60ms);
  when_destroyed_ = [&] { timer_->destroy(); };
  timer_->destroy();
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(destroyed_on_, std::this_thread::get_id());
  EXPECT_EQ(clock_.pending_timeouts(), 0);
  timer_->destroy();
  EXPECT_EQ(destroyed_, 1);
  clock_.advance(1s);
  EXPECT_EQ(triggers_, (Times{50ms}));
}

TEST_F(RepeatedTimerIdle, SeveralShareATimerThatTheyNeverStop) {
  int others = 0;
  RepeatedTimer other("other", 20ms, clock_, {.on_trigger = [&] { ++others; }});
  other.start();
  clock_.advance(100ms);
  timer_->destroy();
  timer_->destroy();
  timer_.reset();
  clock_.advance(100ms);
  EXPECT_EQ(others, 10);
}

TEST_F(RepeatedTimerIdle, DestroyDuringATriggerLeavesOnDestroyToTheThreadOfTheTrigger) {
  during_ = [this] {
    on_another_thread([this] { timer_->destroy(); });
    EXPECT_EQ(destroyed_, 0);
  };
  timer_->start();
  on_another_thread([this] {
    EXPECT_TRUE(timer_->run_once_now());
    EXPECT_EQ(destroyed_, 1);
    EXPECT_EQ(destroyed_on_, std::this_thread::get_id());
  });
}

TEST_F(RepeatedTimerIdle, TheTimeoutCountsFromTheEndOfATrigger) {
  HashedWheelTimer wheel(1ms);
  std::vector<std::pair<steady_clock::time_point, steady_clock::time_point>> runs;
  Latch enough(5);
  RepeatedTimer slow("slow", 3ms, wheel, {.on_trigger = [&] {
                       const auto start = wheel.now();
                       while (wheel.now() < start + 5ms) std::this_thread::yield();
                       runs.emplace_back(start, wheel.now());
                       enough.count_down();
                     }});
  slow.start();
  ASSERT_TRUE(enough.wait());
  slow.stop();
  wheel.stop();
  for (std::size_t i = 1; i < runs.size(); ++i) EXPECT_GE(runs[i].first - runs[i - 1].second, 3ms);
}

// --- adjust_timeout --------------------------------------------------------------------------------------------------

class RepeatedTimerAdjusting : public RepeatedTimerFixture {
 protected:
  RepeatedTimerAdjusting() : RepeatedTimerFixture(true) {}
};

TEST_F(RepeatedTimerAdjusting, ZeroOrLessIsTheNextTick) {
  for (const auto adjusted : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
    when_asked_ = [adjusted](auto) { return adjusted; };
    timer_->restart();
    triggers_.clear();
    clock_.advance(5ms);
    EXPECT_EQ(triggers_.size(), 5U) << adjusted.count();
  }
}

TEST_F(RepeatedTimerAdjusting, TheLargestIsNever) {
  when_asked_ = [](auto) { return std::chrono::nanoseconds::max(); };
  timer_->start();
  clock_.advance(24h);
  EXPECT_TRUE(triggers_.empty());
  EXPECT_TRUE(timer_->running());
}

TEST_F(RepeatedTimerAdjusting, RunsWithoutALockAndCallsDuringItArmOnce) {
  for (const auto& call : std::vector<std::function<void()>>{
           [this] { timer_->start(); },
           [this] { timer_->restart(); },
           [this] { timer_->reset(); },
           [this] { timer_->stop(), timer_->start(); },
       }) {
    int calls = 0;
    when_asked_ = [&](auto timeout) {
      EXPECT_LE(clock_.pending_timeouts(), 1);
      ++calls;
      call();
      on_another_thread(call);
      EXPECT_LE(clock_.pending_timeouts(), 1);
      return timeout;
    };
    triggers_.clear();
    timer_->restart();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(clock_.pending_timeouts(), 1);
    clock_.advance(1s);
    EXPECT_EQ(triggers_.size(), 20U);
  }
}

TEST_F(RepeatedTimerAdjusting, StopDuringItLeavesNothingArmed) {
  when_asked_ = [this](auto timeout) {
    on_another_thread([this] { timer_->stop(); });
    return timeout;
  };
  timer_->start();
  EXPECT_FALSE(timer_->running());
  EXPECT_EQ(clock_.pending_timeouts(), 0);
  clock_.advance(1s);
  EXPECT_TRUE(triggers_.empty());
}

TEST_F(RepeatedTimerAdjusting, ANewTimeoutDuringItIsAskedAbout) {
  when_asked_ = [this](auto timeout) {
    if (timeout == 50ms) on_another_thread([this] { timer_->reset(20ms); });
    return timeout + 1ms;
  };
  timer_->start();
  EXPECT_EQ(asked_, 2);
  clock_.advance(42ms);
  EXPECT_EQ(triggers_, (Times{21ms, 42ms}));
}

TEST_F(RepeatedTimerAdjusting, AResetInsideItCountsForTheNextArming) {
  when_asked_ = [this](auto timeout) {
    if (asked_ == 100) throw std::runtime_error("asked again and again");
    timer_->reset(2 * timeout);
    return timeout;
  };
  timer_->start();
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(timer_->timeout(), 100ms);
  clock_.advance(350ms);
  EXPECT_EQ(triggers_, (Times{50ms, 150ms, 350ms}));
  EXPECT_EQ(asked_, 4);
  timer_->restart();
  EXPECT_EQ(asked_, 5);
  EXPECT_EQ(timer_->timeout(), 1600ms);
  EXPECT_EQ(errors_.errors(), std::vector<std::string>());
}

TEST_F(RepeatedTimerAdjusting, AResetOfAnotherThreadAfterOneInsideItIsAskedAbout) {
  when_asked_ = [this](auto timeout) {
    timer_->reset(70ms);
    if (timeout == 50ms) on_another_thread([this] { timer_->reset(20ms); });
    return timeout;
  };
  timer_->start();
  EXPECT_EQ(asked_, 2);
  clock_.advance(90ms);
  EXPECT_EQ(triggers_, (Times{20ms, 90ms}));
}

TEST_F(RepeatedTimerAdjusting, NoTriggerDuringIt) {
  timer_->start();
  when_asked_ = [this](auto timeout) {
    on_another_thread([this] {
      EXPECT_FALSE(timer_->run_once_now());
      clock_.advance(60ms);  // the armed timeout expires
    });
    return timeout;
  };
  timer_->restart();
  when_asked_ = nullptr;
  EXPECT_TRUE(triggers_.empty()) << "restart() has won";
  EXPECT_EQ(clock_.pending_timeouts(), 1);
  clock_.advance(100ms);
  EXPECT_EQ(triggers_, (Times{110ms, 160ms}));
}

TEST_F(RepeatedTimerAdjusting, DestroyDuringItRunsOnDestroyAfterIt) {
  when_asked_ = [this](auto timeout) {
    on_another_thread([this] { timer_->destroy(); });
    EXPECT_EQ(destroyed_, 0);
    return timeout;
  };
  timer_->start();
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(clock_.pending_timeouts(), 0);
}

// --- Lifetime --------------------------------------------------------------------------------------------------------

TEST_F(RepeatedTimerIdle, MayBeDestroyedInsideItsTrigger) {
  during_ = [this] {
    timer_.reset();
    EXPECT_EQ(destroyed_, 0);
  };
  timer_->start();
  clock_.advance(1s);
  EXPECT_EQ(triggers_.size(), 1U);
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(RepeatedTimerIdle, MayBeDestroyedInsideItsTriggerByRunOnceNow) {
  during_ = [this] { timer_.reset(); };
  timer_->start();
  EXPECT_TRUE(timer_->run_once_now());
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(clock_.pending_timeouts(), 0);
}

TEST_F(RepeatedTimerIdle, MayBeDestroyedInsideOnDestroy) {
  when_destroyed_ = [this] { timer_.reset(); };
  timer_->destroy();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(RepeatedTimerAdjusting, MayBeDestroyedInsideAdjustTimeout) {
  when_asked_ = [this](auto timeout) {
    timer_.reset();
    return timeout;
  };
  timer_->start();
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(clock_.pending_timeouts(), 0);
}

TEST_F(RepeatedTimerIdle, TheDestructorWaitsForATriggerAndOnDestroy) {
  Latch entered;
  std::atomic<bool> finished = false;
  during_ = [&] {
    entered.count_down();
    std::this_thread::sleep_for(20ms);  // a destructor that did not wait would be done by then
  };
  when_destroyed_ = [&] { finished = true; };
  timer_->start();
  const std::jthread advancing([this] { clock_.advance(50ms); });
  ASSERT_TRUE(entered.wait());
  timer_.reset();
  EXPECT_TRUE(finished);
}

TEST(RepeatedTimer, HooksAreReleasedAfterOnDestroy) {
  ManualTimer clock;
  const auto held = std::make_shared<int>();
  RepeatedTimer timer("holder", 1ms, clock,
                      {.on_trigger = [held] {},
                       .adjust_timeout = [held](auto timeout) { return timeout; },
                       .on_destroy = [held] { EXPECT_GT(held.use_count(), 1); }});
  timer.start();
  clock.advance(3ms);
  timer.destroy();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(RepeatedTimer, AHookMayOwnTheRepeatedTimer) {
  ManualTimer clock;
  struct Owner {
    std::optional<RepeatedTimer> timer;
  };
  auto owner = std::make_shared<Owner>();
  const std::weak_ptr<Owner> watched = owner;
  owner->timer.emplace("owned", 1ms, clock, RepeatedTimer::Hooks{.on_trigger = [owner] { owner->timer->destroy(); }});
  owner->timer->start();
  owner.reset();
  EXPECT_FALSE(watched.expired());
  clock.advance(1ms);
  EXPECT_TRUE(watched.expired()) << "destroyed with the hooks, by its own trigger";
}

TEST(RepeatedTimer, DoesNotKeepAReturnedTimeoutAlive) {
  const auto held = std::make_shared<int>();
  ManualTimer clock;
  {
    RepeatedTimer timer("returned", 1ms, clock, {.on_trigger = [held] {}});
    timer.start();
    EXPECT_EQ(clock.stop().size(), 1U);
  }
  EXPECT_EQ(held.use_count(), 1);
}

// --- Arguments and messages ------------------------------------------------------------------------------------------

TEST_F(RepeatedTimerIdle, RefusesATimeoutThatIsNotPositive) {
  timer_->start();
  clock_.advance(10ms);
  for (const auto bad : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
    const std::string range =
        std::to_string(std::chrono::nanoseconds(Delay(bad)).count()) + " ns (expected: 1 ns or more)";
    EXPECT_EQ(message_of<std::invalid_argument>(
                  [&] { RepeatedTimer("bad", bad, clock_, {.on_trigger = [] {}, .on_destroy = [] { FAIL(); }}); }),
              "RepeatedTimer: timeout: " + range);
    EXPECT_EQ(message_of<std::invalid_argument>([&] { timer_->reset(bad); }), "RepeatedTimer: timeout: " + range);
  }
  EXPECT_EQ(timer_->timeout(), 50ms);
  clock_.advance(40ms);
  EXPECT_EQ(triggers_, (Times{50ms})) << "nothing changed";
}

TEST_F(RepeatedTimerIdle, RefusesAnEmptyOnTrigger) {
  EXPECT_EQ(message_of<std::invalid_argument>([&] { RepeatedTimer("bad", 1ms, clock_, {.on_trigger = nullptr}); }),
            "RepeatedTimer: on_trigger: null (expected: a callable)");
}

TEST_F(RepeatedTimerIdle, DescribeIsOneLineWithNameTimeoutAndState) {
  EXPECT_EQ(timer_->describe(), "RepeatedTimer(test, timeout: 50000000 ns, stopped)");
  timer_->start();
  EXPECT_EQ(timer_->describe(), "RepeatedTimer(test, timeout: 50000000 ns, running)");
  during_ = [this] {
    EXPECT_EQ(timer_->describe(), "RepeatedTimer(test, timeout: 50000000 ns, running, triggering)");
    timer_->stop();
    EXPECT_EQ(timer_->describe(), "RepeatedTimer(test, timeout: 50000000 ns, stopped, triggering)");
    timer_->destroy();
    EXPECT_EQ(timer_->describe(), "RepeatedTimer(test, timeout: 50000000 ns, destroyed, triggering)");
  };
  clock_.advance(50ms);
  EXPECT_EQ(timer_->describe(), "RepeatedTimer(test, timeout: 50000000 ns, destroyed)");
  const RepeatedTimer odd("two\nlines", 1ns, clock_, {.on_trigger = [] {}});
  EXPECT_EQ(odd.describe(), "RepeatedTimer(two?lines, timeout: 1 ns, stopped)");
}

// --- With an executor ------------------------------------------------------------------------------------------------

using Owned = std::unique_ptr<RepeatedTimer>;

/// A call that is made while the claimed timeout waits in the executor, and the triggers and pending timeouts after the
/// executor has run it.
struct Rival {
  const char* name;
  void (*call)(Owned&);
  int triggers;
  int pending;
};

/// A timeout that was claimed but has not run yet, because its job waits in the executor.
class RepeatedTimerClaimed : public ::testing::TestWithParam<Rival> {
 protected:
  RepeatedTimerClaimed() {
    timer_->start();
    EXPECT_TRUE(jobs_.wait_for(1));
    claimed_ = jobs_.take();
    EXPECT_EQ(claimed_.size(), 1U);
    EXPECT_TRUE(timer_->running());
    EXPECT_EQ(wheel_.pending_timeouts(), 0);
  }

  // Later timeouts stay in the wheel.
  std::chrono::nanoseconds first_or_far(std::chrono::nanoseconds timeout) {
    return std::exchange(armed_, true) ? kFar : timeout;
  }

  JobQueue jobs_;
  int triggers_ = 0;
  HashedWheelTimer wheel_{{.tick_duration = 1ms, .executor = jobs_.executor()}};
  bool armed_ = false;
  RepeatedTimer::Hooks hooks_{.on_trigger = [this] { ++triggers_; },
                              .adjust_timeout = [this](auto timeout) { return first_or_far(timeout); }};
  Owned timer_ = std::make_unique<RepeatedTimer>("claimed", 1ms, wheel_, hooks_);
  std::vector<std::function<void()>> claimed_;
};

TEST_P(RepeatedTimerClaimed, Loses) {
  GetParam().call(timer_);
  for (const auto& job : claimed_) job();
  EXPECT_EQ(triggers_, GetParam().triggers);
  EXPECT_EQ(wheel_.pending_timeouts(), GetParam().pending);
}

INSTANTIATE_TEST_SUITE_P(
    Against, RepeatedTimerClaimed,
    ::testing::Values(Rival{"Reset", [](Owned& timer) { timer->reset(); }, 0, 1},
                      Rival{"Restart", [](Owned& timer) { timer->restart(); }, 0, 1},
                      Rival{"Stop", [](Owned& timer) { timer->stop(); }, 0, 0},
                      Rival{"StopAndStart", [](Owned& timer) { timer->stop(), timer->start(); }, 0, 1},
                      Rival{"RunOnceNow", [](Owned& timer) { EXPECT_TRUE(timer->run_once_now()); }, 1, 1},
                      Rival{"TheDestructor", [](Owned& timer) { timer.reset(); }, 0, 0}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(RepeatedTimer, TriggersOnTheExecutorWithoutOverlap) {
  static thread_local bool is_job = false;
  ThreadPerJob threads;
  const auto run = threads.executor();
  HashedWheelTimer wheel({.tick_duration = 1ms, .executor = [&](std::function<void()> job) {
                            run([job = std::move(job)] {
                              is_job = true;
                              job();
                            });
                          }});
  std::atomic<int> inside = 0;
  Latch in_jobs(20);
  RepeatedTimer timer("executor", 1ms, wheel, {.on_trigger = [&] {
                        EXPECT_EQ(++inside, 1);
                        timer.restart();
                        std::this_thread::sleep_for(2ms);  // longer than the timeout
                        if (is_job) in_jobs.count_down();
                        --inside;
                      }});
  timer.start();
  const Deadline end(kGenerous);
  // Waits longer than the timeout, so that jobs trigger too.
  while (!in_jobs.wait(3ms) && !end.passed()) {
    timer.restart();
    timer.run_once_now();
  }
  EXPECT_TRUE(in_jobs.is_open());
  timer.destroy();
}

}  // namespace
}  // namespace hwt
