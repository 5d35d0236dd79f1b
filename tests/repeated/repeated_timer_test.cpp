// RepeatedTimer beyond the random calls of tests/fuzz/timers.cpp: threads, what happens in the middle of a hook,
// lifetime, messages, and the executor.

#include "tests/support/repeated_timer_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

static_assert(!std::is_copy_constructible_v<RepeatedTimer> && !std::is_move_constructible_v<RepeatedTimer>);

class RepeatedTimerIdle : public RepeatedTimerFixture {};

TEST_F(RepeatedTimerIdle, RunOnceNowTriggersOnThisThreadAndArmsFromThen) {
  timer_->start();
  clock_.advance(30ms);
  on_another_thread([this] {
    during_ = [caller = std::this_thread::get_id()] { EXPECT_EQ(std::this_thread::get_id(), caller); };
    EXPECT_TRUE(timer_->run_once_now());
  });
  during_ = nullptr;
  EXPECT_EQ(clock_.pending_timeouts(), 1);
  clock_.advance(100ms);
  EXPECT_EQ(triggers_, (Times{30ms, 80ms, 130ms}));
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

class RepeatedTimerAdjusting : public RepeatedTimerFixture {
 protected:
  RepeatedTimerAdjusting() : RepeatedTimerFixture(true) {}
};

TEST_F(RepeatedTimerAdjusting, ZeroOrLessIsTheNextTickAndTheLargestIsNever) {
  for (const auto adjusted : {0ns, -1ns, std::chrono::nanoseconds::min(), std::chrono::nanoseconds::max()}) {
    when_asked_ = [adjusted](auto) { return adjusted; };
    timer_->restart();
    triggers_.clear();
    const bool never = adjusted > 0ns;
    clock_.advance(never ? 24h : 5ms);
    EXPECT_EQ(triggers_.size(), never ? 0U : 5U) << adjusted.count();
    EXPECT_TRUE(timer_->running());
  }
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

TEST_F(RepeatedTimerAdjusting, StopAndDestroyDuringItLeaveNothingArmed) {
  when_asked_ = [this](auto timeout) {
    on_another_thread([this] { timer_->stop(); });
    return timeout;
  };
  timer_->start();
  EXPECT_FALSE(timer_->running());
  EXPECT_EQ(clock_.pending_timeouts(), 0);
  clock_.advance(1s);
  EXPECT_TRUE(triggers_.empty());
  when_asked_ = [this](auto timeout) {
    on_another_thread([this] { timer_->destroy(); });
    EXPECT_EQ(destroyed_, 0) << "on_destroy runs after it";
    return timeout;
  };
  timer_->start();
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(clock_.pending_timeouts(), 0);
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

TEST_F(RepeatedTimerAdjusting, MayBeDestroyedInsideEachHook) {
  const auto in_trigger = [this] {
    during_ = [this] {
      timer_.reset();
      EXPECT_EQ(destroyed_, 0) << "on_destroy runs after the trigger";
    };
    timer_->start();
  };
  for (const auto& destroy :
       std::vector<std::function<void()>>{[&] { in_trigger(), clock_.advance(1s); },
                                          [&] {
                                            in_trigger();
                                            EXPECT_TRUE(timer_->run_once_now());
                                          },
                                          [&] {
                                            when_asked_ = [this](auto timeout) { return timer_.reset(), timeout; };
                                            timer_->start();
                                          },
                                          [&] {
                                            when_destroyed_ = [this] { timer_->destroy(), timer_.reset(); };
                                            timer_->destroy();
                                          }}) {
    if (timer_ == nullptr) make();
    destroy();
    EXPECT_EQ(timer_, nullptr);
    EXPECT_EQ(destroyed_, 1);
    EXPECT_EQ(clock_.pending_timeouts(), 0);
  }
  EXPECT_EQ(triggers_.size(), 2U);
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

TEST_F(RepeatedTimerIdle, RefusesATimeoutThatIsNotPositiveAndAnEmptyOnTrigger) {
  const auto refusal_of = [](auto f) { return message_of<std::invalid_argument>(f); };
  timer_->start();
  clock_.advance(10ms);
  for (const auto bad : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
    const std::string range =
        std::to_string(std::chrono::nanoseconds(Delay(bad)).count()) + " ns (expected: 1 ns or more)";
    EXPECT_EQ(
        refusal_of([&] { RepeatedTimer("bad", bad, clock_, {.on_trigger = [] {}, .on_destroy = [] { FAIL(); }}); }),
        "RepeatedTimer: timeout: " + range);
    EXPECT_EQ(refusal_of([&] { timer_->reset(bad); }), "RepeatedTimer: timeout: " + range);
  }
  EXPECT_EQ(refusal_of([&] { RepeatedTimer("bad", 1ms, clock_, {.on_trigger = nullptr}); }),
            "RepeatedTimer: on_trigger: null (expected: a callable)");
  EXPECT_EQ(timer_->timeout(), 50ms);
  clock_.advance(40ms);
  EXPECT_EQ(triggers_, (Times{50ms})) << "nothing changed";
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

/// The timeout was claimed, but its job waits in the executor while the call is made.
TEST(RepeatedTimer, AClaimedTimeoutLosesAgainstEachCall) {
  using Owned = std::unique_ptr<RepeatedTimer>;
  struct Rival {
    const char* name;
    std::function<void(Owned&)> call;
    int triggers;  // after the executor has run the job
    int pending;
  };
  for (const auto& [name, call, expected_triggers, pending] :
       {Rival{"reset", [](Owned& timer) { timer->reset(); }, 0, 1},
        Rival{"restart", [](Owned& timer) { timer->restart(); }, 0, 1},
        Rival{"stop", [](Owned& timer) { timer->stop(); }, 0, 0},
        Rival{"stop and start", [](Owned& timer) { timer->stop(), timer->start(); }, 0, 1},
        Rival{"run_once_now", [](Owned& timer) { EXPECT_TRUE(timer->run_once_now()); }, 1, 1},
        Rival{"the destructor", [](Owned& timer) { timer.reset(); }, 0, 0}}) {
    SCOPED_TRACE(name);
    JobQueue jobs;
    int triggers = 0;
    bool armed = false;
    HashedWheelTimer wheel({.tick_duration = 1ms, .executor = jobs.executor()});
    const auto only_the_first = [&](std::chrono::nanoseconds timeout) {
      return std::exchange(armed, true) ? kFar : timeout;  // later timeouts stay in the wheel
    };
    auto timer = std::make_unique<RepeatedTimer>(
        "claimed", 1ms, wheel,
        RepeatedTimer::Hooks{.on_trigger = [&] { ++triggers; }, .adjust_timeout = only_the_first});
    timer->start();
    ASSERT_TRUE(jobs.wait_for(1));
    EXPECT_TRUE(timer->running());
    EXPECT_EQ(wheel.pending_timeouts(), 0);
    call(timer);
    EXPECT_EQ(jobs.run_all(), 1U);
    EXPECT_EQ(triggers, expected_triggers);
    EXPECT_EQ(wheel.pending_timeouts(), pending);
  }
}

}  // namespace
}  // namespace hwt
