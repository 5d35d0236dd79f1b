// Timeout::reschedule(): a test for each promise, then the races, in which each timeout ends exactly once and never
// before the deadline that it was promised last.

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <random>

#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// Returns when everything that was due `delay` from now at the latest has run.
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
    if (GetParam() == Where::InTheWheel) {
      timer_.new_timeout(
          [this] {
            entered_.count_down();
            EXPECT_TRUE(released_.wait());
          },
          0ns);
    }
    timeout_ = timer_.new_timeout([this] { run_(); }, delay);
    if (GetParam() == Where::InTheWheel) {
      gate_->open();
      ASSERT_TRUE(entered_.wait());
      ASSERT_EQ(timer_.stats().backlog, 0);
    }
  }

  /// Reschedules it and checks the handle.
  void move_to(std::chrono::nanoseconds delay) {
    const auto before = timer_.now();
    EXPECT_TRUE(timeout_.reschedule(delay));
    const auto after = timer_.now();
    EXPECT_GE(timeout_.deadline(), before + std::max<std::chrono::nanoseconds>(delay, 0ns));
    EXPECT_LE(timeout_.deadline(), after + std::max<std::chrono::nanoseconds>(delay, 0ns) + test::kClockIsAhead);
  }

  void move_to(steady_clock::time_point deadline) {
    EXPECT_TRUE(timeout_.reschedule(deadline));
    EXPECT_EQ(timeout_.deadline(), deadline);
  }

  void let_go() {
    gate_->open();
    released_.count_down();
  }

  void to_earlier_without_memory(bool by_deadline);
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
  Latch entered_, released_;
  HashedWheelTimer timer_{1ms, 1 << 15};
  std::optional<Gate> gate_{timer_};
  Timeout timeout_;
};

INSTANTIATE_TEST_SUITE_P(When, Reschedule, ::testing::Values(Where::InTheQueue, Where::InTheWheel),
                         [](const auto& info) { return info.param == Where::InTheQueue ? "Queued" : "InTheWheel"; });

TEST_P(Reschedule, ManyTimesToLater) {
  schedule(15ms);
  for (int i = 0; i < 1000; ++i) move_to(20ms + i * 20us);
  EXPECT_EQ(timer_.stats().scheduled, GetParam() == Where::InTheWheel ? 3 : 2);
  expect_it_runs_once();
}

TEST_P(Reschedule, ManyTimesToEarlier) {
  schedule(kFar);
  for (int i = 0; i < 1000; ++i) move_to(kFar - i * 1s);
  move_to(10ms);
  expect_it_runs_once();
}

TEST_P(Reschedule, ToEarlierAndToLaterInTurns) {
  schedule(kFar);
  for (int i = 0; i < 200; ++i) move_to(i % 2 == 0 ? 10ms + i * 10us : 2 * kFar + i * 1ms);
  move_to(10ms);
  move_to(30ms);
  expect_it_runs_once();
}

TEST_P(Reschedule, ToWhereItAlreadyIs) {
  schedule(20ms);
  for (int i = 0; i < 50; ++i) move_to(20ms);
  expect_it_runs_once();
}

TEST_P(Reschedule, ANegativeDelayIsDueNow) {
  schedule(kFar);
  move_to(-1h);
  expect_it_runs_once();
}

TEST_P(Reschedule, BeyondTheClockIsNeverButMayComeBack) {
  using Seconds = std::chrono::duration<double>;
  schedule(5ms);
  EXPECT_TRUE(timeout_.reschedule(std::chrono::hours::max()));
  EXPECT_EQ(timeout_.deadline(), steady_clock::time_point::max());
  EXPECT_TRUE(timeout_.reschedule(Seconds(std::numeric_limits<double>::infinity())));
  EXPECT_EQ(timeout_.deadline(), steady_clock::time_point::max());
  let_go();
  pass(timer_, 20ms);
  EXPECT_EQ(run_.count(), 0);
  EXPECT_EQ(timer_.pending_timeouts(), 1);
  move_to(5ms);
  expect_it_runs_once();
}

TEST_P(Reschedule, ToADeadlineLaterAndEarlierInTurns) {
  schedule(10ms);
  for (int i = 0; i < 100; ++i) move_to(timer_.now() + (i % 2 == 0 ? 1h + i * 1s : 5ms + i * 10us));
  expect_it_runs_once();
}

TEST_P(Reschedule, ToADeadlineInThePastIsDueNow) {
  schedule(kFar);
  move_to(timer_.now() - 1h);
  move_to(timer_.now() - 1ms);  // later, but in the past as well
  let_go();
  ASSERT_TRUE(run_.wait());
  EXPECT_GE(run_.started(), timeout_.deadline());
}

TEST_P(Reschedule, ToTheEndOfTimeAndBack) {
  schedule(10ms);
  move_to(steady_clock::time_point::max());
  move_to(steady_clock::time_point::min());
  move_to(steady_clock::time_point::max());
  let_go();
  pass(timer_, 30ms);
  EXPECT_EQ(run_.count(), 0);
  move_to(timer_.now() + 5ms);
  expect_it_runs_once();
}

TEST_P(Reschedule, NaNIsRefusedAndChangesNothing) {
  schedule(10ms);
  const auto deadline = timeout_.deadline();
  EXPECT_EQ(message_of<std::invalid_argument>([&] { timeout_.reschedule(kNanDelay); }),
            "reschedule: delay: NaN (expected: a number)");
  EXPECT_EQ(timeout_.deadline(), deadline);
  expect_it_runs_once();
}

TEST_P(Reschedule, ThroughAnyHandle) {
  schedule(kFar);
  Timeout copy = timeout_;
  EXPECT_TRUE(copy.reschedule(5ms));
  EXPECT_EQ(copy.deadline(), timeout_.deadline());
  copy = {};
  expect_it_runs_once();
}

TEST_P(Reschedule, OnAnotherThread) {
  schedule(kFar);
  std::jthread([&] {
    move_to(2 * kFar);
    move_to(5ms);
  }).join();
  expect_it_runs_once();
}

TEST_P(Reschedule, ThenCancel) {
  for (const std::chrono::nanoseconds delay : {std::chrono::nanoseconds(2 * kFar), std::chrono::nanoseconds(1ms)}) {
    if (!timeout_) schedule(kFar);
    move_to(delay);
  }
  const auto deadline = timeout_.deadline();
  EXPECT_TRUE(timeout_.cancel());
  EXPECT_FALSE(timeout_.reschedule(1ms));
  EXPECT_FALSE(timeout_.reschedule(2 * kFar));
  EXPECT_EQ(timeout_.deadline(), deadline);
  EXPECT_TRUE(timeout_.is_cancelled());
  EXPECT_FALSE(timeout_.cancel());
  let_go();
  pass(timer_, 10ms);
  EXPECT_EQ(run_.count(), 0);
  EXPECT_EQ(timer_.pending_timeouts(), 0);
  EXPECT_TRUE(timer_.stop().empty());
  EXPECT_TRUE(is_balanced(timer_.stats()));
  EXPECT_EQ(timer_.stats().cancelled, 1);
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

TEST_P(Reschedule, PendingIsUnaffected) {
  schedule(kFar);
  const TimerStats before = timer_.stats();
  for (int i = 0; i < 100; ++i) move_to(kFar + (i % 2 == 0 ? i : -i) * 1s);
  const TimerStats after = timer_.stats();
  EXPECT_EQ(after.scheduled, before.scheduled);
  EXPECT_EQ(after.pending, before.pending);
  EXPECT_EQ(after.cancelled, 0);
  move_to(1ms);
  expect_it_runs_once();
}

/// Without memory to tell the worker, the old deadline stays in force.
TEST_P(Reschedule, ToEarlierWithoutMemoryChangesNothing) { to_earlier_without_memory(false); }
TEST_P(Reschedule, ToAnEarlierDeadlineWithoutMemoryChangesNothing) { to_earlier_without_memory(true); }

void Reschedule::to_earlier_without_memory(bool by_deadline) {
  schedule(kFar);
  std::jthread([&] {  // a thread that is new to the timer, and has to ask for memory
    const auto deadline = timeout_.deadline();
    const auto move = [&] {
      EXPECT_TRUE(by_deadline ? timeout_.reschedule(deadline - 1min) : timeout_.reschedule(kFar - 1min));
    };
    const bool refused = with_failing(0, move, Shortage::kAll).bad_alloc;
    EXPECT_TRUE(refused || GetParam() == Where::InTheQueue);
    if (refused) {
      EXPECT_EQ(timeout_.deadline(), deadline);
    }
  })
      .join();
  EXPECT_TRUE(timeout_.reschedule(2 * kFar));
  // A thread that has room for some.
  bool refused = false;
  for (int i = 0; i < 1000 && !refused; ++i) {
    const auto deadline = timeout_.deadline();
    const Shortage shortage(0, Shortage::kAll);
    try {
      by_deadline ? timeout_.reschedule(deadline - i * 1s) : timeout_.reschedule(2 * kFar - i * 1s);
    } catch (const std::bad_alloc&) {
      refused = true;
      EXPECT_EQ(timeout_.deadline(), deadline);
    }
  }
  EXPECT_TRUE(refused || GetParam() == Where::InTheQueue);
  EXPECT_FALSE(timeout_.is_cancelled() || timeout_.is_expired());
  move_to(5ms);
  expect_it_runs_once();
}

TEST(RescheduleOf, ANullHandleIsRefused) {
  Timeout null;
  EXPECT_FALSE(null.reschedule(1ms));
  EXPECT_FALSE(null.reschedule(-1ms));
}

TEST(RescheduleOf, AnExpiredTimeoutIsRefused) {
  RunLog run;
  HashedWheelTimer timer(1ms);
  Timeout timeout = timer.new_timeout([&] { run(); }, 0ms);
  ASSERT_TRUE(run.wait());
  const auto deadline = timeout.deadline();
  EXPECT_FALSE(timeout.reschedule(1ms));
  EXPECT_FALSE(timeout.reschedule(kFar));
  EXPECT_EQ(timeout.deadline(), deadline);
  pass(timer, 10ms);
  EXPECT_EQ(run.count(), 1);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(RescheduleOf, ItselfInsideItsTaskIsRefused) {
  std::atomic<int> runs = 0;
  std::atomic<int> accepted = 0;
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&](Timeout& self) {
    ++runs;
    accepted += self.reschedule(1ms) ? 1 : 0;
    accepted += self.reschedule(-1ms) ? 1 : 0;
  }));
  pass(timer, 10ms);
  EXPECT_EQ(accepted, 0);
  EXPECT_EQ(runs, 1);
}

TEST(RescheduleOf, AnotherInsideATask) {
  RunLog earlier, later;
  std::atomic<int> accepted = 0;
  HashedWheelTimer timer(1ms);
  Timeout far = timer.new_timeout([&] { earlier(); }, kFar);
  Timeout near;
  {
    const Gate gate(timer);
    timer.new_timeout([&] { accepted += (far.reschedule(3ms) ? 1 : 0) + (near.reschedule(25ms) ? 1 : 0); }, 0ms);
    near = timer.new_timeout([&] { later(); }, 2ms);
  }
  ASSERT_TRUE(earlier.wait());
  ASSERT_TRUE(later.wait());
  EXPECT_EQ(accepted, 2);
  EXPECT_GE(earlier.started(), far.deadline());
  EXPECT_GE(later.started(), near.deadline());
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

TEST(RescheduleOf, ATimeoutWhoseTimerIsGoneIsRefused) {
  Timeout timeout;
  {
    HashedWheelTimer timer(1ms);
    timeout = timer.new_timeout([] {}, kFar);
  }
  EXPECT_FALSE(timeout.reschedule(1ms));
  EXPECT_FALSE(timeout.reschedule(2 * kFar));
}

TEST(RescheduleOf, ATimerTaskRunsOrIsCancelledOnce) {
  const auto later = std::make_shared<RecordingTask>();
  const auto earlier = std::make_shared<RecordingTask>();
  const auto cancelled = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1ms);
  for (const bool queued : {false, true}) {
    std::optional<Gate> gate;
    if (queued) gate.emplace(timer);
    Timeout first = timer.new_timeout(later, 2s);
    Timeout second = timer.new_timeout(earlier, kFar);
    Timeout third = timer.new_timeout(cancelled, kFar);
    if (!queued) gate.emplace(timer);
    EXPECT_TRUE(first.reschedule(3s));
    EXPECT_TRUE(first.reschedule(20ms));
    EXPECT_TRUE(first.reschedule(30ms));
    EXPECT_TRUE(second.reschedule(5ms));
    EXPECT_TRUE(third.reschedule(2 * kFar));
    EXPECT_TRUE(third.reschedule(1ms));
    EXPECT_TRUE(third.cancel());
    EXPECT_FALSE(third.reschedule(1ms));
    gate.reset();
    ASSERT_TRUE(eventually([&] { return first.is_expired() && second.is_expired(); }));
    pass(timer, 10ms);
  }
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_EQ(later->runs, 2);
  EXPECT_EQ(later->cancellations, 0);
  EXPECT_EQ(earlier->runs, 2);
  EXPECT_EQ(cancelled->runs, 0);
  EXPECT_EQ(cancelled->cancellations, 2);
  EXPECT_EQ(later.use_count() + earlier.use_count() + cancelled.use_count(), 3);
}

TEST(RescheduleOf, ATimeoutUnderALimitKeepsItsOnePlace) {
  RunLog run;
  HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 2}};
  Timeout timeout = timer.new_timeout([&] { run(); }, kFar);
  await_transfer(timer);
  ASSERT_TRUE(eventually([&] { return timer.pending_timeouts() == 1; }));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(timeout.reschedule(i % 2 == 0 ? 2 * kFar : kFar));
  EXPECT_EQ(timer.pending_timeouts(), 1);
  Timeout other = timer.new_timeout([] {}, kFar);
  EXPECT_THROW(timer.new_timeout([] {}, kFar), RejectedExecution);
  EXPECT_TRUE(timeout.reschedule(2ms)) << "it has its place already";
  ASSERT_TRUE(run.wait());
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_TRUE(other.cancel());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(RescheduleOf, ATimeoutThatWaitsInTheExecutorIsRefused) {
  JobQueue jobs;
  std::atomic<int> runs = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = jobs.executor()}};
  Timeout timeout = timer.new_timeout([&] { ++runs; }, kFar);
  EXPECT_TRUE(timeout.reschedule(2 * kFar));
  EXPECT_TRUE(timeout.reschedule(3ms));
  ASSERT_TRUE(jobs.wait_for(1));
  EXPECT_GE(steady_clock::now(), timeout.deadline());
  EXPECT_FALSE(timeout.reschedule(1ms));
  EXPECT_FALSE(timeout.reschedule(kFar));
  jobs.run_all();
  timer.new_timeout([] {}, 5ms);
  ASSERT_TRUE(jobs.wait_for(2));
  jobs.run_all();
  EXPECT_EQ(runs, 1);
}

/// Waits until the timeouts of this thread are in the wheel and the worker sleeps.
void let_it_sleep(HashedWheelTimer& timer) {
  await_transfer(timer);
  come_to_rest(timer);
}

TEST(RescheduleWhileTheWorkerSleeps, ToLaterWakesNoThread) {
  HashedWheelTimer timer(1ms, 1 << 17);  // no bucket comes up again while the test runs
  std::vector<Timeout> timeouts;
  for (int i = 0; i < 1000; ++i) timeouts.push_back(timer.new_timeout([] {}, kFar));
  let_it_sleep(timer);
  int later = 0;
  // Tries again if the worker was still on its way to sleep.
  EXPECT_TRUE(eventually([&] {
    const std::int64_t before = timer.stats().wakeups;
    for (int round = 0; round < 10; ++round) {
      later += 1;
      for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.reschedule(kFar + later * 1min));
    }
    EXPECT_EQ(timer.stats().backlog, 0);
    std::this_thread::sleep_for(50ms);
    return timer.stats().wakeups == before;
  }));
}

TEST(RescheduleWhileTheWorkerSleeps, ToEarlierWakesIt) {
  HashedWheelTimer timer(1ms, 1 << 17);
  for (int round = 0; round < 5; ++round) {
    RunLog in_the_wheel, queued;
    Timeout timeout = timer.new_timeout([&] { in_the_wheel(); }, kFar);
    let_it_sleep(timer);
    EXPECT_TRUE(timeout.reschedule(5ms));
    ASSERT_TRUE(in_the_wheel.wait());
    EXPECT_GE(in_the_wheel.started(), timeout.deadline());
    EXPECT_LT(in_the_wheel.started() - timeout.deadline(), 30s);
    Timeout first = timer.new_timeout([] {}, kFar);
    let_it_sleep(timer);
    // Due later than `first`, so it does not wake the worker, and stays in the queue.
    Timeout other = timer.new_timeout([&] { queued(); }, 2 * kFar);
    EXPECT_TRUE(other.reschedule(5ms));
    ASSERT_TRUE(queued.wait());
    EXPECT_GE(queued.started(), other.deadline());
    EXPECT_LT(queued.started() - other.deadline(), 30s);
    EXPECT_TRUE(first.cancel());
  }
}

TEST(RescheduleWhileTheWorkerSleeps, ToEarlierOfOneThatIsStillQueued) {
  HashedWheelTimer timer(1ms, 1 << 17);
  timer.new_timeout([] {}, kFar);
  let_it_sleep(timer);
  RunLog run;
  Timeout timeout = timer.new_timeout([&] { run(); }, 2 * kFar);
  EXPECT_EQ(timer.stats().backlog, 1) << "it was to stay in the queue";
  EXPECT_TRUE(timeout.reschedule(5ms));
  ASSERT_TRUE(run.wait());
  EXPECT_GE(run.started(), timeout.deadline());
}

/// However many, and although none is early enough to wake the worker.
TEST(RescheduleWhileTheWorkerSleeps, AFloodOfEarlierOnesDoesNotPileUp) {
  constexpr int kFlood = 300'000;
  HashedWheelTimer timer(1ms, 1 << 17);
  timer.new_timeout([] {}, kFar);
  Timeout timeout = timer.new_timeout([] {}, 2 * kFar);
  let_it_sleep(timer);
  for (int i = 0; i < kFlood; ++i) {
    ASSERT_TRUE(timeout.reschedule(4 * kFar));
    ASSERT_TRUE(timeout.reschedule(3 * kFar - i * 1ms));
  }
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog < kFlood / 4; })) << timer.stats().backlog;
}

/// To a tick of the same bucket, a multiple of 64 revolutions earlier.
TEST(RescheduleAcrossRevolutions, ToEarlierIsInTime) {
  constexpr auto kRevolutions = 64 * 8 * 1ms;
  auto best = std::chrono::nanoseconds::max();
  HashedWheelTimer timer(1ms, 8);
  for (int round = 0; round < 10; ++round) {
    RunLog run;
    Timeout timeout = timer.new_timeout([&] { run(); }, 5000 * kRevolutions + 50ms);
    await_transfer(timer);
    EXPECT_TRUE(timeout.reschedule(timeout.deadline() - 5000 * kRevolutions - timer.now()));
    ASSERT_TRUE(run.wait());
    EXPECT_GE(run.started(), timeout.deadline());
    best = std::min<std::chrono::nanoseconds>(best, run.started() - timeout.deadline());
  }
  EXPECT_LT(best, kRevolutions / 2);
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

// Races.

constexpr auto kHunt = 700ms;

/// One timeout of a race.
struct Subject {
  Timeout timeout;
  std::atomic<int> runs = 0;
  std::atomic<int> cancels = 0;
  std::atomic<int> returns = 0;
  std::atomic<steady_clock::rep> started = 0;
  std::atomic<steady_clock::rep> promised = 0;  // the earliest start, by the last reschedule() that was true

  void schedule(Timer& timer, std::chrono::nanoseconds delay) {
    timeout = timer.new_timeout(
        [this] {
          started = steady_clock::now().time_since_epoch().count();
          ++runs;
        },
        delay);
    promised = timeout.deadline().time_since_epoch().count();
  }
  /// Reschedules the timeout. One thread at a time calls it, so that `promised` is the latest promise.
  bool move(std::chrono::nanoseconds delay) {
    if (!timeout.reschedule(delay)) return false;
    promised = timeout.deadline().time_since_epoch().count();
    return true;
  }
  int fates() const { return runs + cancels + returns; }
  bool ended() const { return fates() > 0; }
  bool early() const { return runs > 0 && started < promised; }
};

using Subjects = std::vector<Subject>;

void expect_one_end_each(const Subjects& subjects) {
  int wrong = 0;
  int early = 0;
  for (const Subject& subject : subjects) {
    wrong += subject.fates() == 1 ? 0 : 1;
    early += subject.early() ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0) << "of " << subjects.size() << " timeouts have ended not at all or twice";
  EXPECT_EQ(early, 0) << "of " << subjects.size() << " timeouts started before their last deadline";
}

[[nodiscard]] bool wait_for_all(const Subjects& subjects) {
  return eventually(
      [&] { return std::all_of(subjects.begin(), subjects.end(), [](const Subject& s) { return s.ended(); }); });
}

/// At the moment when the worker claims them.
TEST(RescheduleRaces, ToLaterAgainstExpiry) {
  constexpr int kThreads = 2;
  constexpr int kBatch = 400;
  for (const Deadline end(kHunt); !end.passed();) {
    Subjects subjects(kBatch);
    std::atomic<int> refused = 0;
    std::atomic<int> refused_and_not_expired = 0;
    HashedWheelTimer timer(1ms, 8);
    const auto due = steady_clock::now() + 3ms;
    for (Subject& subject : subjects) subject.schedule(timer, due - steady_clock::now());
    run_together(kThreads, [&](int thread) {
      std::this_thread::sleep_until(due + 200us);
      for (int i = thread; i < kBatch; i += kThreads) {
        Subject& subject = subjects[static_cast<std::size_t>(thread == 0 ? i : kBatch - i)];
        if (subject.move(2ms)) continue;
        ++refused;
        refused_and_not_expired += subject.timeout.is_expired() ? 0 : 1;
      }
    });
    ASSERT_TRUE(wait_for_all(subjects));
    EXPECT_TRUE(timer.stop().empty());
    expect_one_end_each(subjects);
    EXPECT_EQ(refused_and_not_expired, 0);
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
}

/// Kept alive for a while, then no longer: the deadlines come while they are put off.
TEST(RescheduleRaces, KeepAlive) {
  constexpr int kThreads = 3;
  constexpr int kEach = 100;
  HashedWheelTimer timer(1ms, 8);
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (const Deadline end(kHunt); !end.passed();) {
      Subjects subjects(kEach);
      for (Subject& subject : subjects) subject.schedule(timer, (random() % 3000) * 1us);
      for (int round = 0; round < 50; ++round) {
        for (Subject& subject : subjects) {
          const bool moved = subject.move((random() % 3000) * 1us);
          if (!moved && !subject.timeout.is_expired()) ADD_FAILURE() << "refused, and has not expired";
        }
      }
      if (!wait_for_all(subjects)) ADD_FAILURE() << "lost";
      expect_one_end_each(subjects);
    }
  });
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// To earlier, while the worker takes it into the wheel by the old deadline: it must learn of the new one.
TEST(RescheduleRaces, ToEarlierWhileItIsTransferred) {
  constexpr int kThreads = 2;
  constexpr int kEach = 500;
  HashedWheelTimer timer(1ms);
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (const Deadline end(2 * kHunt); !end.passed() && !::testing::Test::HasFailure();) {
      Subjects subjects(kEach);
      for (std::size_t i = 0; i < kEach; ++i) {
        subjects[i].schedule(timer, kFar);
        Subject& subject = subjects[i - random() % std::min<std::size_t>(i + 1, 8)];
        subject.move((random() % 2000) * 1us);
      }
      for (Subject& subject : subjects) subject.move((random() % 1000) * 1us);
      if (!wait_for_all(subjects)) {
        ADD_FAILURE() << "lost";
        for (Subject& subject : subjects) subject.cancels += subject.timeout.cancel() ? 1 : 0;
      }
      expect_one_end_each(subjects);
    }
  });
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// With a worker that is always at its queue, and producers that are always a step ahead of it.
TEST(RescheduleRaces, OneThreadSchedulesAndAnotherReschedulesAtOnce) {
  constexpr int kBatch = 20'000;
  HashedWheelTimer timer(1ms);
  for (const Deadline end(2 * kHunt); !end.passed() && !HasFailure();) {
    Subjects subjects(kBatch);
    std::atomic<int> scheduled = 0;
    run_together(2, [&](int thread) {
      for (int i = 0; i < kBatch; ++i) {
        if (thread == 0) {
          subjects[static_cast<std::size_t>(i)].schedule(timer, kFar);
          scheduled.store(i + 1, std::memory_order_release);
          if (i % 64 == 0) timer.new_timeout([] {}, 0ns);
        } else {
          while (scheduled.load(std::memory_order_acquire) <= i) std::this_thread::yield();
          EXPECT_TRUE(subjects[static_cast<std::size_t>(i)].move(1ms));
        }
      }
    });
    if (!wait_for_all(subjects)) {
      ADD_FAILURE() << "lost";
      for (Subject& subject : subjects) subject.cancels += subject.timeout.cancel() ? 1 : 0;
    }
    expect_one_end_each(subjects);
  }
}

TEST(RescheduleRaces, AgainstCancel) {
  constexpr int kBatch = 300;
  for (const Deadline end(kHunt); !end.passed();) {
    Subjects subjects(kBatch);
    std::vector<Timeout> copies;
    std::atomic<int> contradictions = 0;
    HashedWheelTimer timer(1ms, 8);
    for (int i = 0; i < kBatch; ++i) {
      Subject& subject = subjects[static_cast<std::size_t>(i)];
      subject.schedule(timer, i % 3 == 0 ? 2ms : std::chrono::milliseconds(kFar));
      copies.push_back(subject.timeout);
    }
    run_together(2, [&](int thread) {
      for (int i = 0; i < kBatch; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (thread == 0) {
          subjects[at].cancels += copies[at].cancel() ? 1 : 0;
        } else if (!subjects[at].move(i % 2 == 0 ? 1ms : 4ms)) {
          contradictions += subjects[at].timeout.is_cancelled() || subjects[at].timeout.is_expired() ? 0 : 1;
        }
      }
    });
    ASSERT_TRUE(wait_for_all(subjects));
    pass(timer, 8ms);
    EXPECT_EQ(contradictions, 0);
    int cancels = 0;
    for (int i = 0; i < kBatch; ++i) {
      const Subject& subject = subjects[static_cast<std::size_t>(i)];
      EXPECT_EQ(subject.timeout.is_cancelled(), subject.cancels == 1);
      cancels += subject.cancels;
    }
    expect_one_end_each(subjects);
    EXPECT_EQ(timer.stats().cancelled, cancels);
    EXPECT_TRUE(timer.stop().empty());
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
}

TEST(RescheduleRaces, AgainstStop) {
  constexpr int kThreads = 2;
  constexpr int kEach = 200;
  std::minstd_rand random(1);
  for (const Deadline end(kHunt); !end.passed();) {
    std::array<Subjects, kThreads> subjects{Subjects(kEach), Subjects(kEach)};
    std::vector<Timeout> returned;
    std::atomic<bool> stopped = false;
    std::atomic<int> refused_and_pending = 0;
    HashedWheelTimer timer(1ms, 8);
    timer.start();
    const auto pause = (random() % 1500) * 1us;
    run_together(kThreads + 1, [&](int thread) {
      if (thread == kThreads) {
        std::this_thread::sleep_for(pause);
        returned = timer.stop();
        stopped = true;
        return;
      }
      std::minstd_rand mine(static_cast<unsigned>(thread) + 1);
      Subjects& all = subjects[static_cast<std::size_t>(thread)];
      std::size_t accepted = 0;
      try {
        for (; accepted < kEach; ++accepted) all[accepted].schedule(timer, kFar);
      } catch (const IllegalState&) {
      }
      for (bool last = false; !last;) {
        last = stopped;
        for (std::size_t i = 0; i < accepted; ++i) {
          const bool moved = all[i].move((mine() % 4000) * 1us);
          if (!moved && !all[i].timeout.is_cancelled() && !all[i].timeout.is_expired()) ++refused_and_pending;
          if (moved && last) ADD_FAILURE() << "rescheduled after stop()";
        }
      }
      while (all.size() > accepted) all.pop_back();
    });
    EXPECT_EQ(refused_and_pending, 0);
    std::size_t cancelled = 0;
    for (Subjects& all : subjects) {
      for (Subject& subject : all) {
        cancelled += subject.timeout.is_cancelled() ? 1 : 0;
        subject.returns += subject.timeout.is_cancelled() ? 1 : 0;
      }
      expect_one_end_each(all);
    }
    EXPECT_EQ(returned.size(), cancelled);
    EXPECT_EQ(timer.stats().unprocessed, static_cast<std::int64_t>(returned.size()));
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
}

/// Everything at once, on nodes that are used again and again.
TEST(RescheduleRaces, RandomMixture) {
  constexpr int kThreads = 3;
  constexpr int kEach = 64;
  HashedWheelTimer timer(1ms, 16);
  std::atomic<std::int64_t> ended = 0;
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 7);
    const auto delay = [&]() -> std::chrono::nanoseconds {
      switch (random() % 5) {
        case 0:
          return kFar;
        case 1:
          return -1ms;
        case 2:
          return (random() % 100) * 1ms;
        default:
          return (random() % 3000) * 1us;
      }
    };
    for (const Deadline end(2 * kHunt); !end.passed() && !::testing::Test::HasFailure();) {
      Subjects subjects(kEach);
      for (Subject& subject : subjects) {
        subject.schedule(timer, delay());
        if (random() % 4 == 0) subject.move(delay());
        if (random() % 4 == 0) subject.cancels += subject.timeout.cancel() ? 1 : 0;
      }
      for (int step = 0; step < 4 * kEach; ++step) {
        Subject& subject = subjects[random() % kEach];
        if (random() % 8 == 0) {
          subject.cancels += subject.timeout.cancel() ? 1 : 0;
        } else {
          const bool moved = subject.move(delay());
          EXPECT_TRUE(moved || subject.timeout.is_expired() || subject.timeout.is_cancelled());
        }
      }
      if (random() % 2 == 0) {  // by another thread, to which the nodes do not belong
        std::jthread([&] {
          for (Subject& subject : subjects) {
            if (!subject.move((random() % 1000) * 1us)) continue;
            if (random() % 2 == 0) subject.cancels += subject.timeout.cancel() ? 1 : 0;
          }
        }).join();
      } else {
        for (Subject& subject : subjects) subject.move((random() % 1000) * 1us);
      }
      if (!wait_for_all(subjects)) {
        ADD_FAILURE() << "lost";
        for (Subject& subject : subjects) subject.cancels += subject.timeout.cancel() ? 1 : 0;
      }
      expect_one_end_each(subjects);
      ended += kEach;
    }
  });
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(timer.stats().scheduled, ended);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

}  // namespace
}  // namespace hwt
