// RepeatedTimer: a thread stands still inside a call, as if the system had preempted it. The worker does not wait for
// it, and the call takes effect when the thread goes on.

#include "hashed_wheel_timer/internal/recurring/conductor.h"
#include "tests/support/held_timer.h"
#include "tests/support/repeated_timer_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

class RepeatedTimerHeld : public ::testing::Test {
 protected:
  /// Holds a thread in this call until release().
  void hold_in(HeldTimer::At at, std::function<void(RepeatedTimer&)> call) {
    timer_.hold_next(at);
    holder_ = std::jthread([this, call] { call(repeated_); });
    ASSERT_TRUE(timer_.wait_until_held());
  }
  void release() {
    timer_.go_on();
    holder_.join();
  }
  void expect_triggers() {
    const int before = triggers_;
    EXPECT_TRUE(eventually([&] { return triggers_ > before; }));
    EXPECT_LE(timer_.pending_timeouts(), 1);
  }

  std::atomic<int> triggers_ = 0;
  ErrorLog errors_;
  HeldTimer timer_{{.tick_duration = 1ms, .on_task_error = errors_.handler()}};
  RepeatedTimer repeated_{"held", 3ms, timer_, {.on_trigger = [this] { ++triggers_; }}};
  std::jthread holder_;
};

// The timeout expires before start() gets its handle.
TEST_F(RepeatedTimerHeld, ExpiriesAndQueriesDoNotWaitForTheThreadThatHasArmed) {
  hold_in(HeldTimer::At::Exit, [](RepeatedTimer& repeated) { repeated.start(); });
  EXPECT_TRUE(none_pending(timer_)) << "it has expired";
  expect_others_run(timer_);
  EXPECT_EQ(triggers_, 0);
  EXPECT_TRUE(repeated_.running());
  EXPECT_EQ(repeated_.timeout(), 3ms);
  EXPECT_EQ(repeated_.describe(), "RepeatedTimer(held, timeout: 3000000 ns, running)");
  release();
  expect_triggers();
  EXPECT_TRUE(errors_.errors().empty());
}

TEST_F(RepeatedTimerHeld, OthersDoNotWaitForAThreadThatIsAboutToArm) {
  hold_in(HeldTimer::At::Entry, [](RepeatedTimer& repeated) { repeated.restart(); });
  expect_others_run(timer_);
  release();
  expect_triggers();
}

/// A start() comes while new_timeout() of another start() is held. That one then throws this error, unless it is null.
class StartMeetsAStart : public RepeatedTimerHeld, public ::testing::WithParamInterface<std::exception_ptr> {};
INSTANTIATE_TEST_SUITE_P(Errors, StartMeetsAStart,
                         ::testing::Values(nullptr, std::make_exception_ptr(RejectedExecution("refused")),
                                           std::make_exception_ptr(std::bad_alloc())));

TEST_P(StartMeetsAStart, TheSecondReturnsWhenItIsStartedAndArmsItselfIfTheFirstFails) {
  const std::exception_ptr refusal = GetParam();
  std::exception_ptr first_error;
  if (refusal) timer_.hold_and_refuse_next(refusal);
  hold_in(refusal ? HeldTimer::At::Entry : HeldTimer::At::Exit, [&](RepeatedTimer& repeated) {
    try {
      repeated.start();
    } catch (...) {
      first_error = std::current_exception();
    }
  });
  Latch returned;
  std::jthread second([&] {
    EXPECT_NO_THROW(repeated_.start());
    returned.count_down();
  });
  EXPECT_FALSE(returned.wait(5ms)) << "the first start() has not ended";
  release();
  second.join();
  EXPECT_EQ(first_error, refusal);
  EXPECT_TRUE(repeated_.running()) << "the second start() has returned without an error";
  expect_triggers();
}

TEST_F(RepeatedTimerHeld, BothStartsThatMeetThrowIfTheTimerIsStopped) {
  hold_in(HeldTimer::At::Entry,
          [](RepeatedTimer& repeated) { EXPECT_THROW(repeated.start(), IllegalState) << "the first"; });
  std::jthread second([this] { EXPECT_THROW(repeated_.start(), IllegalState) << "the second"; });
  timer_.stop();
  release();
  second.join();
  EXPECT_FALSE(repeated_.running());
}

// A call must not wait for a hook of another thread, so the thread that runs the hook gets the error.
TEST_F(RepeatedTimerHeld, AStartDuringAHookReturnsAndTheRefusalReachesTheThreadOfTheHook) {
  std::optional<RepeatedTimer> repeated;
  RepeatedTimer::Hooks hooks{.on_trigger = [] {}};
  hooks.adjust_timeout = [&](auto timeout) {
    on_another_thread([&] { EXPECT_NO_THROW(repeated->start()); });
    timer_.hold_and_refuse_next(std::make_exception_ptr(RejectedExecution("refused")));
    timer_.go_on();
    return timeout;
  };
  repeated.emplace("hooked", 3ms, timer_, std::move(hooks));
  EXPECT_THROW(repeated->start(), RejectedExecution);
  EXPECT_FALSE(repeated->running());
}

// The later call decides.
TEST_F(RepeatedTimerHeld, AStopTakesEffectAfterTheHeldStart) {
  hold_in(HeldTimer::At::Exit, [](RepeatedTimer& repeated) { repeated.start(); });
  EXPECT_TRUE(none_pending(timer_));
  std::jthread stopping([&] { repeated_.stop(); });
  release();
  stopping.join();
  const int triggers = triggers_;
  EXPECT_FALSE(repeated_.running());
  Latch later;
  timer_.new_timeout([&] { later.count_down(); }, 10ms);
  EXPECT_TRUE(later.wait());
  EXPECT_LE(triggers_, triggers + 1) << "one may have been running";
  EXPECT_TRUE(none_pending(timer_));
}

// A thread of the executor is held when it arms again after a trigger. The timeout expires on another thread.
TEST(RepeatedTimerHeldInExecutor, AnExpiryDoesNotWaitForTheTriggerThatHasArmedIt) {
  ThreadPerJob threads;
  HeldTimer timer({.tick_duration = 1ms, .executor = threads.executor()});
  std::atomic<int> triggers = 0;
  RepeatedTimer repeated("held", 2ms, timer, {.on_trigger = [&] {
                           if (++triggers == 1) timer.hold_next(HeldTimer::At::Exit);
                         }});
  repeated.start();
  ASSERT_TRUE(timer.wait_until_held());
  EXPECT_TRUE(none_pending(timer));
  expect_others_run(timer);
  EXPECT_TRUE(repeated.running());
  EXPECT_EQ(triggers, 1);
  timer.go_on();
  EXPECT_TRUE(eventually([&] { return triggers > 2; }));
  repeated.stop();
  EXPECT_TRUE(none_pending(timer));
}

// --- The conductor, whose races are in tests/models/conducting_model.cpp ------------------------------------------

TEST(Conductor, AnExpiryOfTheArmedTimeoutTriggersOnce) {
  using internal::Conductor;
  Conductor conductor;
  ASSERT_TRUE(conductor.enter([](Conductor::Word word) { return word & ~Conductor::kStopped; }));
  conductor.set_disarmed();
  const Conductor::Word armed = conductor.arming();
  conductor.set_armed();
  ASSERT_TRUE(conductor.leave());
  EXPECT_FALSE(conductor.enter_expired(armed - 1)) << "an old one";
  EXPECT_TRUE(conductor.enter_expired(armed));
  EXPECT_FALSE(conductor.enter_expired(armed)) << "once";
  conductor.begin_hook(Conductor::kTriggering);
  EXPECT_FALSE(conductor.enter([](Conductor::Word word) { return word | Conductor::kStopped; })) << "during the hook";
  EXPECT_FALSE(conductor.wanted()) << "the request is noted";
  conductor.end_hook();
  EXPECT_TRUE(conductor.leave());
}

}  // namespace
}  // namespace hwt
