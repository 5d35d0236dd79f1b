// Waits without Asio: AsyncWait and WaitGroup. Waits that are put off while there is no memory for the next one, or
// while another thread destroys the handler. Waits that are refused, or cancelled after their registry has gone. The
// ends of a group and of a registry.

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/detail/asio/async_wait.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using detail::AsyncWait;
using detail::Result;
using detail::WaitGroup;
using detail::WaitRegistry;

constexpr std::chrono::minutes kHalfWay{30};  // to kFar

/// A wait that was put off, and whose handler is yet to be called. Its timeout is in the wheel, where an earlier
/// deadline needs memory. The next wait found none.
class PutOffWithoutMemory : public ::testing::Test {
 protected:
  PutOffWithoutMemory() {
    ends_.reserve(10);
    begin(kFar);
    timer_.advance(0ms);
    EXPECT_EQ(group_.cancel_for_next(), 1u);
    auto* const next = new Wait(*this);
    const Shortage shortage(0, Shortage::kAll);
    begin(*next, kHalfWay);
    EXPECT_GT(shortage.failed(), 0);
  }
  ~PutOffWithoutMemory() override { EXPECT_EQ(timer_.pending_timeouts(), 0); }

  void begin(std::chrono::nanoseconds delay) { begin(*new Wait(*this), delay); }
  void call_the_handler_of_the_first() { first_.reset(); }

  std::vector<Result> ends_;
  ManualTimer timer_{1ms};

 private:
  class Wait final : public AsyncWait {
   public:
    explicit Wait(PutOffWithoutMemory& of) : of_(of) {}
    ~Wait() = default;

   private:
    void complete(Result end) override {
      of_.ends_.push_back(end);
      if (of_.ends_.size() == 1) {
        of_.first_.reset(this);
      } else {
        delete this;
      }
    }
    void abandon() noexcept override { delete this; }

    PutOffWithoutMemory& of_;
  };

  void begin(Wait& wait, std::chrono::nanoseconds delay) { group_.start(wait, timer_.now() + delay, false); }

  std::unique_ptr<Wait> first_;
  WaitRegistry registry_;
  WaitGroup group_{registry_, timer_};
};

TEST_F(PutOffWithoutMemory, TheNextResultsAtOnceAndTheOneAfterHasTheTimeout) {
  EXPECT_EQ(ends_, (std::vector{Result::Stopped, Result::NoMemory}));
  begin(kHalfWay);
  EXPECT_EQ(timer_.pending_timeouts(), 1);
  call_the_handler_of_the_first();
  timer_.advance(kHalfWay + 1ms);
  EXPECT_EQ(ends_, (std::vector{Result::Stopped, Result::NoMemory, Result::Ok}));
}

TEST_F(PutOffWithoutMemory, TheTimeoutExpiresUnheardByItsOldDeadline) {
  EXPECT_EQ(timer_.advance(kHalfWay + 1ms), 0u);
  EXPECT_EQ(timer_.advance(kHalfWay), 1u);
  EXPECT_EQ(ends_, (std::vector{Result::Stopped, Result::NoMemory}));
}

TEST_F(PutOffWithoutMemory, TheTimeoutGoesWithTheHandlerOfTheFirst) {
  EXPECT_EQ(timer_.pending_timeouts(), 1);
  call_the_handler_of_the_first();
  EXPECT_EQ(timer_.pending_timeouts(), 0);
}

/// Stores its address when it completes. The test destroys it.
class GoesElsewhere final : public AsyncWait {
 public:
  explicit GoesElsewhere(std::atomic<GoesElsewhere*>& completed) : completed_(completed) {}
  ~GoesElsewhere() = default;

 private:
  void complete(Result) override { completed_.store(this, std::memory_order_release); }
  void abandon() noexcept override { delete this; }

  std::atomic<GoesElsewhere*>& completed_;
};

TEST(CancelledLate, ThereIsNothingToCancelOnceTheRegistryHasGoneWhileTheHandlerIsYetToBeCalled) {
  alignas(WaitRegistry) std::array<std::byte, sizeof(WaitRegistry)> memory;
  auto* const registry = ::new (memory.data()) WaitRegistry;
  std::atomic<GoesElsewhere*> completed{nullptr};
  ManualTimer timer;
  (new GoesElsewhere(completed))->start(*registry, timer, Delay(1ms));
  timer.advance(1ms);
  registry->close();
  registry->~WaitRegistry();
  memory.fill(std::byte{0xff});
  const std::unique_ptr<GoesElsewhere> wait(completed.load(std::memory_order_acquire));
  ASSERT_NE(wait, nullptr);
  EXPECT_NO_THROW(wait->cancel());
}

TEST(PutOffRaces, ThereIsNothingToCancelHoweverTheHandlerOfTheLastGoes) {
  constexpr int kRounds = 10'000;
  std::atomic<GoesElsewhere*> completed{nullptr};
  std::atomic<int> gone{0};
  ManualTimer timer;
  WaitRegistry registry;
  WaitGroup group(registry, timer);
  std::jthread handlers([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      if (GoesElsewhere* const wait = completed.exchange(nullptr, std::memory_order_acquire)) {
        delete wait;
        ++gone;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::mt19937 random(1);
  for (int round = 1; round <= kRounds; ++round) {
    group.start(*new GoesElsewhere(completed), timer.now() + kFar, false);
    ASSERT_EQ(group.cancel_for_next(), 1u);
    for (auto spin = random() % 256; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    ASSERT_EQ(group.cancel(1), 0u);
    while (gone != round) std::this_thread::yield();
  }
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// Notes how it ends.
class Noting final : public AsyncWait {
 public:
  explicit Noting(
      std::vector<Result>& ends, std::function<void()> before = [] {})
      : ends_(ends), before_(std::move(before)) {}
  ~Noting() = default;

 private:
  void complete(Result end) override {
    before_();
    ends_.push_back(end);
    delete this;
  }
  void abandon() noexcept override { delete this; }

  std::vector<Result>& ends_;
  const std::function<void()> before_;
};

/// Waits of a group, of the kind that can be stopped and of the other.
class Waits : public ::testing::TestWithParam<bool> {
 protected:
  void start(AsyncWait& wait, std::chrono::nanoseconds delay) { group_->start(wait, timer_.now() + delay, GetParam()); }

  std::vector<Result> ends_;
  ManualTimer timer_{1ms};
  WaitRegistry registry_;
  std::unique_ptr<WaitGroup> group_ = std::make_unique<WaitGroup>(registry_, timer_);
};
INSTANTIATE_TEST_SUITE_P(Stoppable, Waits, ::testing::Bool(), ::testing::PrintToStringParamName());

/// A wait that finds no place in the queue has a node and a task already. The timer tells the task, but start() alone
/// completes the wait, because it knows the reason.
TEST_P(Waits, ARefusedOneEndsOnceWithTheReasonWithoutMemoryForItsPlaceInTheQueue) {
  constexpr std::size_t kWaits = 1000;
  ends_.reserve(kWaits);
  // The group has memory for all afterwards.
  for (std::size_t i = 0; i != kWaits; ++i) start(*new Noting(ends_), kFar);
  EXPECT_EQ(group_->cancel(kWaits), kWaits);
  ends_.clear();
  std::size_t begun = 0;
  for (; ends_.empty() && begun < kWaits; ++begun) {
    auto* const wait = new Noting(ends_);
    const Shortage shortage(0, Shortage::kAll);
    start(*wait, kFar);
  }
  EXPECT_EQ(ends_, std::vector{Result::NoMemory});
  EXPECT_EQ(timer_.pending_timeouts(), static_cast<std::int64_t>(begun - 1));
  EXPECT_EQ(group_->cancel(kWaits), begun - 1);
  EXPECT_EQ(ends_.size(), begun);
  group_.reset();
  EXPECT_TRUE(is_balanced(timer_.stats()));
}

TEST_P(Waits, ARefusedOneDestroysItsHandlerIfTheTimerCannotStart) {
  HashedWheelTimer timer({.thread_factory = [](auto) -> std::thread { throw std::range_error("no threads today"); }});
  WaitGroup group(registry_, timer);
  const auto kept = std::make_shared<int>();
  auto* const wait = new Noting(ends_, [kept] {});
  EXPECT_THROW(group.start(*wait, timer.now() + kFar, GetParam()), std::range_error);
  EXPECT_EQ(kept.use_count(), 1) << "the handler is still there";
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_P(Waits, AnEndedOneLeavesItsGroupWhenTheNextBegins) {
  constexpr int kWaits = 10'000;
  const auto expire = [&](int waits) {
    for (int i = 0; i < waits; ++i) {
      start(*new Noting(ends_), 1ms);
      timer_.advance(1ms);
      ASSERT_EQ(ends_, std::vector{Result::Ok});
      ends_.clear();
    }
  };
  expire(100);
  const Growth growth;
  expire(kWaits);
  EXPECT_LT(growth.now(), kWaits);
  start(*new Noting(ends_), kFar);
  group_.reset();
  EXPECT_EQ(ends_, std::vector{Result::Stopped}) << "the end of the group is that of its waits";
}

/// A wait that can be stopped leaves none, because another thread may find that wait.
TEST_P(Waits, ACancelledOneLeavesItsTimeoutForTheNextUnlessItCanBeStopped) {
  std::atomic<GoesElsewhere*> completed{nullptr};
  start(*new GoesElsewhere(completed), kFar);
  EXPECT_EQ(group_->cancel_for_next(), 1U);
  const std::unique_ptr<GoesElsewhere> wait(completed.load(std::memory_order_acquire));
  ASSERT_NE(wait, nullptr);
  EXPECT_EQ(timer_.pending_timeouts(), GetParam() ? 0 : 1);
}

/// The handler may use the context, so the destructor waits for the handler.
TEST_P(Waits, AnEndingOneMakesTheDestructorOfItsGroupWait) {
  Latch entered;
  const auto slow = [&] {
    entered.count_down();
    std::this_thread::sleep_for(20ms);  // a destructor that did not wait would be done by then
  };
  start(*new Noting(ends_, slow), 1ms);
  std::jthread advancing([&] { timer_.advance(1ms); });
  ASSERT_TRUE(entered.wait());
  group_.reset();
  EXPECT_EQ(ends_, std::vector{Result::Ok});
}

/// Is slow to destroy its handler.
class SlowToGo final : public AsyncWait {
 public:
  struct Flags {
    std::atomic<bool> begun = false;
    std::atomic<bool> closing = false;
    std::atomic<bool> gone = false;
  };
  explicit SlowToGo(Flags& flags) : flags_(flags) {}
  ~SlowToGo() = default;

 private:
  void complete(Result) override {
    ADD_FAILURE() << "completed although it was discarded";
    delete this;
  }
  void abandon() noexcept override {
    flags_.begun = true;
    while (!flags_.closing) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);  // a close() that did not wait would be done by then
    flags_.gone = true;
    delete this;
  }

  Flags& flags_;
};

/// The handler may use the context, so the end of the context waits until the handler is destroyed.
TEST(DiscardedWait, MakesTheEndOfItsContextWait) {
  SlowToGo::Flags flags;
  ManualTimer timer(1ms);
  WaitRegistry registry;
  Timeout wait = (new SlowToGo(flags))->start(registry, timer, timer.now() + kFar);
  std::jthread discarding([&] { AsyncWait::discard(std::exchange(wait, {})); });
  ASSERT_TRUE(eventually([&] { return flags.begun.load(); }));
  flags.closing = true;
  registry.close();
  EXPECT_TRUE(flags.gone);
}

/// A handler that owns a WheelTimer owns a group. If its strand has gone, Asio destroys the handler on the thread that
/// ends the wait. The destructor of the group locks the registry. So close() must not keep that lock while it waits.
TEST(EndingWait, MayDestroyAGroupOfTheContextThatGoes) {
  std::vector<Result> ends;
  std::atomic<bool> entered = false;
  std::atomic<bool> closing = false;
  ManualTimer timer(1ms);
  WaitRegistry registry;
  auto* const wait = new Noting(ends, [&, group = std::make_shared<WaitGroup>(registry, timer)] {
    entered = true;
    while (!closing) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);  // until close() waits
  });
  wait->start(registry, timer, timer.now() + 1ms);
  std::jthread advancing([&] { timer.advance(1ms); });
  ASSERT_TRUE(eventually([&] { return entered.load(); }));
  closing = true;
  registry.close();
  EXPECT_EQ(ends, std::vector{Result::Ok});
}

}  // namespace
}  // namespace hwt
