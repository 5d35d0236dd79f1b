// RepeatedTimer: a thread stands still inside a call, as if the system had preempted it. The worker does not wait for
// it, and the call takes effect when the thread goes on.

#include "hashed_wheel_timer/internal/recurring/conductor.h"
#include "hashed_wheel_timer/repeated_timer.h"
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
TEST_F(RepeatedTimerHeld, AnExpiryDoesNotWaitForTheThreadThatHasArmedIt) {
  hold_in(HeldTimer::At::Exit, [](RepeatedTimer& repeated) { repeated.start(); });
  EXPECT_TRUE(eventually([&] { return timer_.pending_timeouts() == 0; })) << "it has expired";
  expect_others_run(timer_);
  EXPECT_EQ(triggers_, 0);
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

TEST_F(RepeatedTimerHeld, QueriesDoNotWait) {
  hold_in(HeldTimer::At::Exit, [](RepeatedTimer& repeated) { repeated.start(); });
  EXPECT_TRUE(repeated_.running());
  EXPECT_EQ(repeated_.timeout(), 3ms);
  EXPECT_EQ(repeated_.describe(), "RepeatedTimer(held, timeout: 3000000 ns, running)");
  release();
  expect_triggers();
}

/// A start() comes while new_timeout() of another start() is held. That new_timeout() may then fail.
class StartMeetsAStart : public RepeatedTimerHeld {
 protected:
  /// Makes both calls and waits for them. `refusal`: the error of the held new_timeout(), or null.
  void meet(std::exception_ptr refusal) {
    if (refusal) timer_.hold_and_refuse_next(refusal);
    hold_in(refusal ? HeldTimer::At::Entry : HeldTimer::At::Exit, [this](RepeatedTimer& repeated) {
      try {
        repeated.start();
      } catch (...) {
        first_error_ = std::current_exception();
      }
    });
    second_ = std::jthread([this] {
      try {
        repeated_.start();
      } catch (...) {
        second_error_ = std::current_exception();
      }
      returned_.count_down();
    });
    EXPECT_FALSE(returned_.wait(5ms)) << "the first start() has not ended";
    release();
    second_.join();
  }

  std::exception_ptr first_error_, second_error_;
  Latch returned_;
  std::jthread second_;
};

TEST_F(StartMeetsAStart, ReturnsWhenItIsStarted) {
  meet(nullptr);
  EXPECT_EQ(first_error_, nullptr);
  EXPECT_EQ(second_error_, nullptr);
  EXPECT_TRUE(repeated_.running());
  expect_triggers();
}

TEST_F(StartMeetsAStart, ArmsItselfIfTheOtherIsRefused) {
  meet(std::make_exception_ptr(RejectedExecution("refused")));
  EXPECT_THROW(std::rethrow_exception(first_error_), RejectedExecution);
  EXPECT_EQ(second_error_, nullptr);
  EXPECT_TRUE(repeated_.running()) << "the second start() has returned without an error";
  expect_triggers();
}

TEST_F(StartMeetsAStart, ArmsItselfIfTheOtherFindsNoMemory) {
  meet(std::make_exception_ptr(std::bad_alloc()));
  EXPECT_THROW(std::rethrow_exception(first_error_), std::bad_alloc);
  EXPECT_EQ(second_error_, nullptr);
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
  EXPECT_TRUE(eventually([&] { return timer_.pending_timeouts() == 0; }));
  std::jthread stopping([&] { repeated_.stop(); });
  release();
  stopping.join();
  const int triggers = triggers_;
  EXPECT_FALSE(repeated_.running());
  Latch later;
  timer_.new_timeout([&] { later.count_down(); }, 10ms);
  EXPECT_TRUE(later.wait());
  EXPECT_LE(triggers_, triggers + 1) << "one may have been running";
  EXPECT_TRUE(eventually([&] { return timer_.pending_timeouts() == 0; }));
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
  EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
  expect_others_run(timer);
  EXPECT_TRUE(repeated.running());
  EXPECT_EQ(triggers, 1);
  timer.go_on();
  EXPECT_TRUE(eventually([&] { return triggers > 2; }));
  repeated.stop();
  EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
}

// --- The conductor -----------------------------------------------------------------------------------------------

using internal::Conductor;

class ConductorWord : public ::testing::Test {
 protected:
  static Conductor::Word started(Conductor::Word word) { return word & ~Conductor::kStopped; }
  static Conductor::Word stopped(Conductor::Word word) { return word | Conductor::kStopped; }

  /// Leaves the word armed and without a conductor.
  void arm() {
    ASSERT_TRUE(conductor_.enter(started));
    conductor_.set_disarmed();
    armed_ = conductor_.arming();
    conductor_.set_armed();
    ASSERT_TRUE(conductor_.leave());
  }

  Conductor conductor_;
  Conductor::Word armed_ = 0;
};

TEST_F(ConductorWord, AnExpiryOfTheArmedTimeoutTriggers) {
  arm();
  EXPECT_FALSE(conductor_.enter_expired(armed_ - 1)) << "an old one";
  EXPECT_TRUE(conductor_.enter_expired(armed_));
  EXPECT_FALSE(conductor_.enter_expired(armed_)) << "once";
  conductor_.begin_hook(Conductor::kTriggering);
  EXPECT_FALSE(conductor_.enter(stopped)) << "noted, during the hook";
  EXPECT_FALSE(conductor_.wanted());
  conductor_.end_hook();
  EXPECT_TRUE(conductor_.leave());
}

TEST_F(ConductorWord, LeaveReportsExpiriesThatCameMeanwhile) {
  arm();
  ASSERT_TRUE(conductor_.enter(started));
  EXPECT_FALSE(conductor_.enter_expired(armed_));
  EXPECT_FALSE(conductor_.enter_expired(armed_));
  EXPECT_FALSE(conductor_.leave());
  EXPECT_TRUE(conductor_.leave()) << "told once";
}

TEST_F(ConductorWord, LeaveReportsAnExpiryDuringAHook) {
  arm();
  ASSERT_TRUE(conductor_.enter(started));
  conductor_.begin_hook(0);
  EXPECT_FALSE(conductor_.enter_expired(armed_));
  conductor_.end_hook();
  EXPECT_FALSE(conductor_.leave());
  EXPECT_TRUE(conductor_.leave());
}

TEST_F(ConductorWord, AWaitingCallNotesItsRequestWhenAHookBegins) {
  ASSERT_TRUE(conductor_.enter(started));
  std::jthread other([this] { EXPECT_FALSE(conductor_.enter(stopped)); });
  std::this_thread::sleep_for(5ms);  // so that the call sleeps, and must be woken
  conductor_.begin_hook(0);
  other.join();
  conductor_.end_hook();
  EXPECT_FALSE(conductor_.wanted());
  EXPECT_TRUE(conductor_.leave());
}

TEST_F(ConductorWord, AWaitingCallIsTheNextConductor) {
  ASSERT_TRUE(conductor_.enter(started));
  std::atomic<bool> left = false;
  std::jthread other([&] {
    EXPECT_TRUE(conductor_.enter(stopped));
    EXPECT_TRUE(left);
    EXPECT_TRUE(conductor_.leave());
  });
  std::this_thread::sleep_for(5ms);  // a call that did not wait would have entered by then
  left = true;
  EXPECT_TRUE(conductor_.leave());
}

}  // namespace
}  // namespace hwt
