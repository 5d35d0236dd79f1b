// RepeatedTimer when hooks throw and when its Timer refuses: nothing is lost silently, and the triggers go on as long
// as they can.

#include "tests/support/repeated_timer_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

using Texts = std::vector<std::string>;

class RepeatedTimerErrors : public RepeatedTimerFixture {
 protected:
  RepeatedTimerErrors() : RepeatedTimerFixture(true) {}

  void let_adjust_throw() {
    when_asked_ = [](auto) -> std::chrono::nanoseconds { throw std::runtime_error("from adjust_timeout"); };
  }

  /// Running with one timeout, which is due in 50 ms.
  void expect_armed() {
    EXPECT_TRUE(timer_->running());
    EXPECT_EQ(clock_.pending_timeouts(), 1);
    const std::size_t before = triggers_.size();
    clock_.advance(49ms);
    EXPECT_EQ(triggers_.size(), before);
    clock_.advance(1ms);
    EXPECT_EQ(triggers_.size(), before + 1);
  }
};

TEST_F(RepeatedTimerErrors, AThrowingHookIsReportedAndTheTriggersGoOn) {
  struct Row {
    bool trigger, adjust;
    const char* text;
  };
  Texts expected;
  for (const auto& [trigger, adjust, text] :
       {Row{true, false, "from on_trigger"}, Row{false, true, "from adjust_timeout"},
        Row{true, true, "RepeatedTimer test: on_trigger: from on_trigger; adjust_timeout: from adjust_timeout"}}) {
    SCOPED_TRACE(text);
    throws_ = false;
    when_asked_ = nullptr;
    timer_->restart();
    triggers_.clear();
    throws_ = trigger;
    if (adjust) let_adjust_throw();
    clock_.advance(1s);
    EXPECT_EQ(triggers_.size(), 20U);
    expected.insert(expected.end(), 20, text);
    EXPECT_EQ(errors_.errors(), expected);
  }
}

TEST_F(RepeatedTimerErrors, AnExceptionOfAdjustLeavesTheCallThatArmsButTheTimerIsArmed) {
  let_adjust_throw();
  for (const auto& arm : std::vector<std::function<void()>>{
           [this] { timer_->start(); }, [this] { timer_->restart(); }, [this] { timer_->reset(); },
           [this] { timer_->reset(50ms); }, [this] { timer_->stop(), timer_->restart(); }}) {
    EXPECT_EQ(message_of<std::runtime_error>(arm), "from adjust_timeout");
    expect_armed();
  }
}

TEST_F(RepeatedTimerErrors, AnExceptionOfATriggerLeavesRunOnceNowButTheTimerIsArmed) {
  timer_->start();
  throws_ = true;
  EXPECT_EQ(message_of<std::runtime_error>([&] { timer_->run_once_now(); }), "from on_trigger");
  EXPECT_EQ(triggers_.size(), 1U);
  EXPECT_TRUE(errors_.errors().empty()) << "the caller knows";
  throws_ = false;
  expect_armed();
}

TEST_F(RepeatedTimerErrors, AnExceptionOfOnDestroyLeavesDestroyAndIsReportedAfterATrigger) {
  const auto throwing = [] { throw std::runtime_error("from on_destroy"); };
  when_destroyed_ = throwing;
  EXPECT_EQ(message_of<std::runtime_error>([&] { timer_->destroy(); }), "from on_destroy");
  timer_->destroy();
  EXPECT_EQ(destroyed_, 1);
  make();
  when_destroyed_ = throwing;
  during_ = [this] { timer_->destroy(); };
  timer_->start();
  clock_.advance(1s);
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(errors_.errors(), Texts{"from on_destroy"});
}

TEST_F(RepeatedTimerErrors, AnExceptionOfOnDestroyInTheDestructorGoesToStderr) {
  when_destroyed_ = [] { throw std::runtime_error("from on_destroy"); };
  ::testing::internal::CaptureStderr();
  timer_.reset();
  const std::string line = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(line, "from on_destroy")) << line;
  EXPECT_EQ(count_of(line, "\n"), 1) << line;
}

// --- The Timer refuses -----------------------------------------------------------------------------------------------

TEST_F(RepeatedTimerErrors, StoppingTheTimerDuringAWaitEndsTheTriggers) {
  timer_->start();
  clock_.stop();
  EXPECT_FALSE(timer_->running());
  EXPECT_EQ(timer_->describe(), "RepeatedTimer(test, timeout: 50000000 ns, stopped)");
  EXPECT_FALSE(timer_->run_once_now());
  timer_->reset();
  timer_->reset(20ms);
  EXPECT_THROW(timer_->start(), IllegalState);
  EXPECT_THROW(timer_->restart(), IllegalState);
  EXPECT_FALSE(timer_->running());
  timer_->stop();
  clock_.advance(1s);
  EXPECT_TRUE(triggers_.empty());
  timer_->destroy();
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(RepeatedTimerErrors, StoppingTheTimerDuringATriggerIsReportedWithTheExceptionOfTheTrigger) {
  std::thread stopping;
  throws_ = true;
  during_ = [&] {
    stopping = std::thread([this] { clock_.stop(); });
    wait_until_refusing(clock_);
    EXPECT_TRUE(timer_->running());
  };
  timer_->start();
  clock_.advance(50ms);
  stopping.join();
  EXPECT_EQ(triggers_.size(), 1U);
  EXPECT_FALSE(timer_->running());
  ASSERT_EQ(errors_.errors().size(), 1U);
  EXPECT_TRUE(contains(errors_.errors()[0], "on_trigger: from on_trigger; arming: ")) << errors_.errors()[0];
  EXPECT_TRUE(contains(errors_.errors()[0], "stop")) << errors_.errors()[0];
}

/// On a timer that takes one timeout and no more.
class RepeatedTimerAtTheLimit : public ::testing::Test {
 protected:
  ErrorLog errors_;
  HashedWheelTimer wheel_{{.tick_duration = 1ms, .max_pending_timeouts = 1, .on_task_error = errors_.handler()}};
  std::function<void()> during_;
  RepeatedTimer timer_{"limited", 1ms, wheel_, {.on_trigger = [this] {
                         if (during_) during_();
                       }}};
};

TEST_F(RepeatedTimerAtTheLimit, StartThrowsAndIsStopped) {
  Timeout other = wheel_.new_timeout([] {}, kFar);
  EXPECT_EQ(message_of<RejectedExecution>([&] { timer_.start(); }),
            "RepeatedTimer limited: max_pending_timeouts: 1 timeouts are pending already");
  EXPECT_FALSE(timer_.running());
  EXPECT_THROW(timer_.restart(), RejectedExecution);
  EXPECT_FALSE(timer_.running());
  other.cancel();
  timer_.start();
  EXPECT_TRUE(timer_.running());
}

TEST_F(RepeatedTimerAtTheLimit, ARefusalAfterATriggerIsReportedAndStartTriesAgain) {
  Timeout other;
  during_ = [&] { other = wheel_.new_timeout([] {}, kFar); };
  timer_.start();
  ASSERT_TRUE(errors_.wait_for(1));
  EXPECT_FALSE(timer_.running());
  EXPECT_EQ(errors_.errors()[0], "RepeatedTimer limited: max_pending_timeouts: 1 timeouts are pending already");
  Latch triggered;
  during_ = [&] {
    triggered.count_down();
    timer_.stop();
  };
  EXPECT_TRUE(other.cancel());
  timer_.start();
  EXPECT_TRUE(triggered.wait());
  timer_.destroy();
}

}  // namespace
}  // namespace hwt
