#pragma once

#include "hashed_wheel_timer/repeated_timer.h"
#include "tests/support/test_support.h"

namespace hwt::test {

/// A RepeatedTimer of 50 ms on a ManualTimer. Records the calls of its hooks.
class RepeatedTimerFixture : public ::testing::Test {
 protected:
  using Times = std::vector<std::chrono::milliseconds>;

  explicit RepeatedTimerFixture(bool adjusts = false) : adjusts_(adjusts) { make(); }
  ~RepeatedTimerFixture() override {
    timer_.reset();
    EXPECT_EQ(destroyed_, 1) << "on_destroy runs exactly once, whatever happened";
  }

  /// Makes a new timer, whose hooks call no function of a test yet.
  void make() {
    during_ = when_destroyed_ = nullptr;
    when_asked_ = nullptr;
    destroyed_ = 0;
    RepeatedTimer::Hooks hooks{
        .on_trigger = [this] { trigger(); },
        .on_destroy =
            [this] {
              ++destroyed_;
              destroyed_on_ = std::this_thread::get_id();
              EXPECT_FALSE(in_trigger_) << "on_destroy while on_trigger runs";
              if (when_destroyed_) when_destroyed_();
            },
    };
    if (adjusts_) hooks.adjust_timeout = [this](auto timeout) { return adjust(timeout); };
    timer_ = std::make_unique<RepeatedTimer>("test", 50ms, clock_, std::move(hooks));
  }

  void trigger() {
    EXPECT_FALSE(in_trigger_) << "on_trigger overlaps itself";
    in_trigger_ = true;
    EXPECT_EQ(clock_.pending_timeouts(), 0) << "armed while it triggers";
    triggers_.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now()));
    if (const auto during = during_) during();  // a copy, because the call may assign to during_
    EXPECT_LE(clock_.pending_timeouts(), 1);
    in_trigger_ = false;
    if (throws_) throw std::runtime_error("from on_trigger");
  }

  std::chrono::nanoseconds adjust(std::chrono::nanoseconds timeout) {
    ++asked_;
    return when_asked_ ? when_asked_(timeout) : timeout;
  }

  std::chrono::nanoseconds now() const { return clock_.now().time_since_epoch(); }

  const bool adjusts_;
  ErrorLog errors_;
  ManualTimer clock_{1ms, {}, errors_.handler()};
  Times triggers_;
  int asked_ = 0, destroyed_ = 0;
  bool in_trigger_ = false, throws_ = false;
  std::thread::id destroyed_on_;
  std::function<void()> during_;
  std::function<void()> when_destroyed_;
  std::function<std::chrono::nanoseconds(std::chrono::nanoseconds)> when_asked_;
  std::unique_ptr<RepeatedTimer> timer_;
};

/// Runs f() on another thread and waits for its end. Hangs if f() waits for this thread.
template <class F>
void on_another_thread(F f) {
  std::thread(std::move(f)).join();
}

}  // namespace hwt::test
