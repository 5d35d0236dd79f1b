// Waits without Asio: AsyncWait and WaitGroup. Waits that are put off while there is no memory for the next one, or
// while another thread destroys the handler. Waits that are refused, or cancelled after their registry has gone. The
// ends of a group and of a registry.

#include "hashed_wheel_timer/detail/asio/async_wait.h"
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

/// A wait that calls a function when it completes, or another one when it is discarded. `complete` destroys it.
class Wait final : public AsyncWait {
 public:
  using Complete = std::function<void(Wait*, Result)>;

  explicit Wait(
      Complete complete, std::function<void()> abandon = [] {})
      : complete_(std::move(complete)), abandon_(std::move(abandon)) {}
  ~Wait() = default;

 private:
  void complete(Result end) override {
    const Complete complete = std::move(complete_);  // lives on when this is destroyed
    complete(this, end);
  }
  void abandon() noexcept override {
    abandon_();
    delete this;
  }

  Complete complete_;
  const std::function<void()> abandon_;
};

/// Makes a wait that notes how it ends.
Wait* noting(std::vector<Result>& ends, std::function<void()> before = [] {}) {
  return new Wait([&ends, before = std::move(before)](Wait* wait, Result end) {
    before();
    ends.push_back(end);
    delete wait;
  });
}

/// Makes a wait that stores its address when it completes. The test destroys it.
Wait* storing(std::atomic<Wait*>& completed) {
  return new Wait([&completed](Wait* wait, Result) { completed.store(wait, std::memory_order_release); });
}

/// A wait that was put off, and whose handler is yet to be called. Its timeout is in the wheel, where an earlier
/// deadline needs memory. The next wait found none.
class PutOffWithoutMemory : public ::testing::Test {
 protected:
  PutOffWithoutMemory() {
    ends_.reserve(10);
    auto* const first = new Wait([this](Wait* wait, Result end) {
      ends_.push_back(end);
      first_.reset(wait);
    });
    begin(first, kFar);
    timer_.advance(0ms);
    EXPECT_EQ(group_.cancel_for_next(), 1u);
    Wait* const next = noting(ends_);
    const Shortage shortage(0, Shortage::kAll);
    begin(next, kHalfWay);
    EXPECT_GT(shortage.failed(), 0);
  }
  ~PutOffWithoutMemory() override { EXPECT_EQ(timer_.pending_timeouts(), 0); }

  void begin(Wait* wait, std::chrono::nanoseconds delay) { group_.start(*wait, timer_.now() + delay, false); }
  void call_the_handler_of_the_first() { first_.reset(); }

  std::vector<Result> ends_;
  ManualTimer timer_{1ms};
  std::unique_ptr<Wait> first_;
  WaitRegistry registry_;
  WaitGroup group_{registry_, timer_};
};

TEST_F(PutOffWithoutMemory, TheNextResultsAtOnceAndTheOneAfterHasTheTimeout) {
  EXPECT_EQ(ends_, (std::vector{Result::Stopped, Result::NoMemory}));
  begin(noting(ends_), kHalfWay);
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

TEST(CancelledLate, ThereIsNothingToCancelOnceTheRegistryHasGoneWhileTheHandlerIsYetToBeCalled) {
  alignas(WaitRegistry) std::array<std::byte, sizeof(WaitRegistry)> memory;
  auto* const registry = ::new (memory.data()) WaitRegistry;
  std::atomic<Wait*> completed{nullptr};
  ManualTimer timer;
  storing(completed)->start(*registry, timer, Delay(1ms));
  timer.advance(1ms);
  registry->close();
  registry->~WaitRegistry();
  memory.fill(std::byte{0xff});
  const std::unique_ptr<Wait> wait(completed.load(std::memory_order_acquire));
  ASSERT_NE(wait, nullptr);
  EXPECT_NO_THROW(wait->cancel());
}

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
  for (std::size_t i = 0; i != kWaits; ++i) start(*noting(ends_), kFar);
  EXPECT_EQ(group_->cancel(kWaits), kWaits);
  ends_.clear();
  std::size_t begun = 0;
  for (; ends_.empty() && begun < kWaits; ++begun) {
    Wait* const wait = noting(ends_);
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
  Wait* const wait = noting(ends_, [kept] {});
  EXPECT_THROW(group.start(*wait, timer.now() + kFar, GetParam()), std::range_error);
  EXPECT_EQ(kept.use_count(), 1) << "the handler is still there";
  EXPECT_TRUE(ends_.empty());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST_P(Waits, AnEndedOneLeavesItsGroupWhenTheNextBegins) {
  constexpr int kWaits = 10'000;
  const auto expire = [&](int waits) {
    for (int i = 0; i < waits; ++i) {
      start(*noting(ends_), 1ms);
      timer_.advance(1ms);
      ASSERT_EQ(ends_, std::vector{Result::Ok});
      ends_.clear();
    }
  };
  expire(100);
  const Growth growth;
  expire(kWaits);
  EXPECT_LT(growth.now(), kWaits);
  start(*noting(ends_), kFar);
  group_.reset();
  EXPECT_EQ(ends_, std::vector{Result::Stopped}) << "the end of the group is that of its waits";
}

/// A wait that can be stopped leaves none, because another thread may find that wait.
TEST_P(Waits, ACancelledOneLeavesItsTimeoutForTheNextUnlessItCanBeStopped) {
  std::atomic<Wait*> completed{nullptr};
  start(*storing(completed), kFar);
  EXPECT_EQ(group_->cancel_for_next(), 1U);
  const std::unique_ptr<Wait> wait(completed.load(std::memory_order_acquire));
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
  start(*noting(ends_, slow), 1ms);
  std::jthread advancing([&] { timer_.advance(1ms); });
  ASSERT_TRUE(entered.wait());
  group_.reset();
  EXPECT_EQ(ends_, std::vector{Result::Ok});
}

/// The handler may use the context, so the end of the context waits until the handler is destroyed.
TEST(DiscardedWait, MakesTheEndOfItsContextWait) {
  std::atomic<bool> begun = false;
  std::atomic<bool> closing = false;
  std::atomic<bool> gone = false;
  const auto slow = [&] {
    begun = true;
    while (!closing) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);  // a close() that did not wait would be done by then
    gone = true;
  };
  ManualTimer timer(1ms);
  WaitRegistry registry;
  auto* const discarded = new Wait([](Wait*, Result) { ADD_FAILURE() << "completed although it was discarded"; }, slow);
  Timeout wait = discarded->start(registry, timer, timer.now() + kFar);
  std::jthread discarding([&] { AsyncWait::discard(std::exchange(wait, {})); });
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  closing = true;
  registry.close();
  EXPECT_TRUE(gone);
}

/// A handler that owns a WheelTimer owns a group. If its strand has gone, Asio destroys the handler on the thread that
/// ends the wait. The destructor of the group locks the registry. So close() must not keep that lock while it waits.
TEST(EndingWait, MayDestroyAGroupOfTheContextThatGoes) {
  std::vector<Result> ends;
  std::atomic<bool> entered = false;
  std::atomic<bool> closing = false;
  ManualTimer timer(1ms);
  WaitRegistry registry;
  Wait* const wait = noting(ends, [&, group = std::make_shared<WaitGroup>(registry, timer)] {
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
