// Timeout::reschedule(): a test for each promise. For its races there are tests/oracle and a model in tests/models.

#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

/// Waits until all timeouts that are due within `delay` from now have run.
void pass(Timer& timer, std::chrono::milliseconds delay) {
  Latch passed;
  timer.new_timeout([&] { passed.count_down(); }, delay + 1ms);
  EXPECT_TRUE(passed.wait());
}

enum class Where { InTheQueue, InTheWheel };

/// One timeout, while the worker is held: it has taken the timeout into the wheel, or has not yet.
class Reschedule : public ::testing::TestWithParam<Where> {
 protected:
  Reschedule() = default;
  ~Reschedule() override { let_go(); }

  void schedule(std::chrono::nanoseconds delay) {
    const bool in_the_wheel = GetParam() == Where::InTheWheel;
    if (in_the_wheel) timer_.new_timeout([this] { hold_(); }, 0ns);
    timeout_ = timer_.new_timeout([this] { run_(); }, delay);
    if (in_the_wheel) {
      gate_->open();
      ASSERT_TRUE(hold_.wait_until_entered());
      ASSERT_EQ(timer_.stats().backlog, 0);
    }
  }

  /// Reschedules it and checks the handle.
  void move_to(std::chrono::nanoseconds delay) {
    const std::chrono::nanoseconds expected = std::max<std::chrono::nanoseconds>(delay, 0ns);
    const auto before = timer_.now();
    EXPECT_TRUE(timeout_.reschedule(delay));
    EXPECT_GE(timeout_.deadline(), before + expected);
    EXPECT_LE(timeout_.deadline(), timer_.now() + expected + kClockIsAhead);
  }
  void move_to(steady_clock::time_point deadline) {
    EXPECT_TRUE(timeout_.reschedule(deadline));
    EXPECT_EQ(timeout_.deadline(), deadline);
  }

  void let_go() {
    gate_->open();
    hold_.let_go();
  }
  void expect_it_runs_once() {
    let_go();
    ASSERT_TRUE(run_.wait());
    EXPECT_GE(run_.started(), timeout_.deadline());
    EXPECT_LT(run_.started() - timeout_.deadline(), 30s) << "a revolution late";
    EXPECT_TRUE(timeout_.is_expired());
    pass(timer_, 30ms);
    EXPECT_EQ(timer_.pending_timeouts(), 0);
    EXPECT_TRUE(timer_.stop().empty());
    EXPECT_EQ(run_.count(), 1);
    EXPECT_TRUE(is_balanced(timer_.stats()));
  }

  RunLog run_;
  Hold hold_;
  HashedWheelTimer timer_{1ms, 1 << 15};
  std::optional<Gate> gate_{timer_};
  Timeout timeout_;
};

INSTANTIATE_TEST_SUITE_P(When, Reschedule, ::testing::Values(Where::InTheQueue, Where::InTheWheel),
                         [](const auto& info) { return info.param == Where::InTheQueue ? "Queued" : "InTheWheel"; });

TEST_P(Reschedule, ManyTimesToEarlierAndToLaterAsTheSameTimeout) {
  schedule(kFar);
  const TimerStats before = timer_.stats();
  for (int i = 0; i < 1000; ++i) move_to(kFar - i * 1s);
  for (int i = 0; i < 200; ++i) move_to(i % 2 == 0 ? 10ms + i * 10us : 2 * kFar + i * 1ms);
  for (int i = 0; i < 100; ++i) move_to(timer_.now() + (i % 2 == 0 ? 1h + i * 1s : 5ms + i * 10us));
  const TimerStats after = timer_.stats();
  EXPECT_EQ(after.scheduled, before.scheduled);
  EXPECT_EQ(after.pending, before.pending);
  EXPECT_EQ(after.cancelled, 0);
  move_to(10ms);
  move_to(30ms);
  expect_it_runs_once();
}

TEST_P(Reschedule, ATimeoutThatStopReturnedIsRefused) {
  schedule(kFar);
  move_to(2 * kFar);
  move_to(kFar);
  std::vector<Timeout> unprocessed;
  std::jthread stopper([&] { unprocessed = timer_.stop(); });
  wait_until_refusing(timer_);
  move_to(3 * kFar);
  move_to(2 * kFar);
  let_go();
  stopper.join();
  ASSERT_EQ(unprocessed, std::vector<Timeout>{timeout_});
  const auto deadline = timeout_.deadline();
  EXPECT_FALSE(timeout_.reschedule(1ms));
  EXPECT_FALSE(timeout_.reschedule(4 * kFar));
  EXPECT_EQ(timeout_.deadline(), deadline);
  EXPECT_EQ(run_.count(), 0);
  EXPECT_TRUE(is_balanced(timer_.stats()));
}

TEST_P(Reschedule, ToLaterOrToTheSameTakesNoMemoryAndNoPlaceInTheQueue) {
  schedule(10ms);
  const std::int64_t backlog = timer_.stats().backlog;
  const std::int64_t bytes = bytes_in_use;
  Shortage shortage(0, Shortage::kAll);
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(timeout_.reschedule(20ms + i * 1us));
  EXPECT_TRUE(timeout_.reschedule(timeout_.deadline()));
  shortage.end();
  EXPECT_EQ(shortage.failed(), 0);
  EXPECT_EQ(bytes_in_use - bytes, 0);
  EXPECT_EQ(timer_.stats().backlog, backlog);
  expect_it_runs_once();
}

/// Without memory to tell the worker, the old deadline stays in force.
TEST_P(Reschedule, ToEarlierWithoutMemoryChangesNothing) {
  schedule(kFar);
  // Returns whether the move was refused.
  const auto move_without_memory = [&](When when) {
    const auto deadline = timeout_.deadline();
    bool moved = false;
    const bool refused = with_failing(0, [&] { moved = timeout_.reschedule(when); }, Shortage::kAll).bad_alloc;
    EXPECT_NE(refused, moved);
    EXPECT_TRUE(moved || timeout_.deadline() == deadline);
    return refused;
  };
  // A thread that is new to the timer, and has to ask for memory.
  std::jthread([&] {
    EXPECT_TRUE(move_without_memory(kFar - 1min) || GetParam() == Where::InTheQueue);
    EXPECT_TRUE(move_without_memory(timeout_.deadline() - 1min) || GetParam() == Where::InTheQueue);
  }).join();
  EXPECT_TRUE(timeout_.reschedule(2 * kFar));
  // A thread that has room for some.
  bool refused = false;
  for (int i = 0; i < 1000 && !refused; ++i) {
    refused = move_without_memory(i % 2 == 0 ? When(2 * kFar - i * 1s) : When(timeout_.deadline() - i * 1s));
  }
  EXPECT_TRUE(refused || GetParam() == Where::InTheQueue);
  EXPECT_TRUE(timeout_.is_pending());
  move_to(5ms);
  expect_it_runs_once();
}

/// The worker takes the recheck request after the timeout has run, and skips it.
TEST(RescheduleOf, AnotherThatRunsNextInTheSameTick) {
  int runs = 0;
  ManualTimer timer(1ms, steady_clock::time_point(1h));
  Timeout other;
  timer.new_timeout([&] { EXPECT_TRUE(other.reschedule(other.deadline() - 1us)); }, 1ms);
  other = timer.new_timeout([&] { ++runs; }, 1ms);
  EXPECT_EQ(timer.advance(1ms), 2U);
  EXPECT_EQ(runs, 1);
  EXPECT_TRUE(other.is_expired());
  // The wheel and the handle's node are as sound as before.
  const Timeout last = timer.new_timeout([&] { ++runs; }, 1ms);
  EXPECT_NE(last, other);
  EXPECT_EQ(timer.next_wakeup(), last.deadline());
  EXPECT_EQ(timer.advance(1ms), 1U);
  EXPECT_EQ(runs, 2);
  EXPECT_TRUE(other.is_expired());
}

TEST(RescheduleOf, ATimeoutUnderALimitKeepsItsOnePlace) {
  ManualTimer timer{Options{.tick_duration = 1ms, .max_pending_timeouts = 2}};
  Timeout timeout = timer.new_timeout([] {}, kFar);
  timer.advance(1ms);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(timeout.reschedule(i % 2 == 0 ? 2 * kFar : kFar));
  EXPECT_EQ(timer.pending_timeouts(), 1);
  Timeout other = timer.new_timeout([] {}, kFar);
  EXPECT_THROW(timer.new_timeout([] {}, kFar), RejectedExecution);
  EXPECT_TRUE(timeout.reschedule(2ms)) << "it has its place already";
  EXPECT_EQ(timer.advance(2ms), 1U);
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_TRUE(other.cancel());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// To a tick of the same bucket, a multiple of 64 revolutions earlier.
TEST(RescheduleAcrossRevolutions, ToEarlierIsInTime) {
  constexpr auto kRevolutions = 64 * 8 * 1ms;
  HashedWheelTimer timer(1ms, 8);
  expect_in_time(10, [&](int) {
    RunLog run;
    Timeout timeout = timer.new_timeout([&] { run(); }, 5000 * kRevolutions + 50ms);
    await_transfer(timer);
    EXPECT_TRUE(timeout.reschedule(timeout.deadline() - 5000 * kRevolutions));
    return run.lateness(timeout);
  });
}

/// To a later tick whose bucket has no room, while there is no memory. The timeout may be late, but it is not lost.
TEST(RescheduleWithoutMemoryOnTheWorker, ToLaterStillComes) {
  RunLog run;
  HashedWheelTimer timer(1ms, 512);
  std::optional<Gate> gate(timer);
  Hold hold;
  timer.new_timeout([&] { hold(); }, 0ns);
  Timeout timeout = timer.new_timeout([&] { run(); }, 10ms);
  // Each in a bucket of its own: they take all places that there are, and some of them wait for more.
  for (int i = 0; i < 200; ++i) timer.new_timeout([] {}, 1min + i * 10ms);
  {
    Shortage shortage(0, Shortage::kAll, Shortage::Of::OtherThreads);
    gate.reset();
    EXPECT_TRUE(hold.wait_until_entered());
    const std::int64_t ticks = timer.stats().ticks;
    EXPECT_TRUE(timeout.reschedule(40ms));
    hold.let_go();
    EXPECT_TRUE(eventually([&] { return timer.stats().ticks >= ticks + 2; })) << "the worker comes to the old deadline";
    EXPECT_GE(shortage.failed(), 1);
  }
  EXPECT_TRUE(run.wait());
  EXPECT_GE(run.started(), timeout.deadline());
  timer.stop();
  EXPECT_EQ(run.count(), 1);
}

/// A worker that has read the deadline before it was changed must read it again.
TEST(RescheduleOf, ATimeoutInTheWheelMarksItsWord) {
  using internal::Node;
  ManualTimer timer(1ms);  // no worker, which would clear the mark
  Timeout timeout = timer.new_timeout([] {}, kFar);
  timer.advance(1ms);
  const Node& node = *Node::of(timeout);
  ASSERT_EQ(Node::state_of(node.word), internal::NodeState::InWheel);
  for (const auto delay : {2 * kFar, 3 * kFar, kFar / 2, kFar / 4}) {
    Node::of(timeout)->word &= ~Node::kMoved;
    EXPECT_TRUE(timeout.reschedule(delay));
    EXPECT_NE(node.word & Node::kMoved, 0U);
    EXPECT_EQ(Node::state_of(node.word), internal::NodeState::InWheel);
  }
}

}  // namespace
}  // namespace hwt::test
