// BatchExecutor and on(): one post for all tasks of a tick, and what ends a task that waits in a batch.

#include "hashed_wheel_timer/batch_executor.h"

#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

template <class Executor>
concept TakesATaskOf = requires(Executor&& executor) { on(std::forward<Executor>(executor), [] {}); };
static_assert(!TakesATaskOf<BatchExecutor> && !TakesATaskOf<const BatchExecutor>, "on() keeps a reference");

/// Time and batches by hand.
class Batches : public testing::Test {
 protected:
  std::function<void()> record(int number) {
    return [this, number] { ran.push_back(number); };
  }

  JobQueue posted;
  const BatchExecutor loop{posted.executor()};
  ManualTimer timer{1ms};
  std::vector<int> ran;
};

TEST_F(Batches, ATickIsOnePostHoweverManyAreDueAndALoopThatIsLateGetsOneForAllTicks) {
  for (int i = 0; i < 3000; ++i) timer.add(on(loop, record(i)), (1 + i / 500) * 1ms);
  for (const std::size_t ticks : {1, 1, 3, 1}) {
    const std::size_t before = ran.size();
    for (std::size_t i = 0; i < ticks; ++i) timer.advance(1ms);
    EXPECT_EQ(ran.size(), before) << "not on the worker";
    EXPECT_EQ(posted.run_all(), 1u);
    EXPECT_EQ(ran.size(), before + 500 * ticks);
  }
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(ran[i], i);
  timer.advance(1h);
  EXPECT_EQ(posted.run_all(), 0u);
  ManualTimer for_loop({.tick_duration = 1ms, .executor = loop});
  for (int i = 0; i < 1000; ++i) for_loop.add(record(i), 1ms);
  for_loop.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u) << "an executor of a timer posts once a tick too";
  EXPECT_EQ(ran.size(), 4000u);
}

TEST_F(Batches, EachLoopGetsItsOwnAndTheOthersRunOnTheWorker) {
  JobQueue other_posted;
  const BatchExecutor other(other_posted.executor());
  timer.add(on(loop, record(1)), 1ms);
  timer.add(on(other, record(2)), 1ms);
  timer.add(record(3), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(ran, std::vector{3});
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, (std::vector{3, 1}));
  other_posted.run_all();
  EXPECT_EQ(ran, (std::vector{3, 1, 2}));
}

TEST_F(Batches, CancelBeforeTheTickPostsNothingAndCancelAndWaitTakesATaskBack) {
  const auto captured = std::make_shared<int>();
  const TimeoutId cancelled = timer.add(on(loop, [captured] { must_not_run(); }), 1ms);
  EXPECT_EQ(timer.cancel(cancelled), CancelResult::Cancelled);
  EXPECT_EQ(captured.use_count(), 1);
  timer.advance(1ms);
  EXPECT_EQ(posted.run_all(), 0u);
  const TimeoutId taken_back = timer.add(on(loop, [captured] { must_not_run(); }), 1ms);
  timer.add(on(loop, record(1)), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(timer.cancel_and_wait(taken_back), CancelResult::Cancelled);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{1});
}

TEST_F(Batches, StopReturnsPendingTimeoutsAndNotTasksThatWaitInABatch) {
  timer.add(on(loop, record(1)), 1ms);
  timer.advance(1ms);
  timer.add(on(loop, record(2)), 1ms);
  std::vector<Timeout> pending = timer.stop();
  ASSERT_EQ(pending.size(), 1u);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{1});
  pending[0].task().run(pending[0]);
  EXPECT_EQ(ran, (std::vector{1, 2})) << "run by hand, it runs here";
}

TEST_F(Batches, OutliveTheirExecutorAndTheirTimer) {
  auto short_lived = std::make_unique<BatchExecutor>(posted.executor());
  auto gone = std::make_unique<ManualTimer>(1ms);
  gone->add(on(*short_lived, record(1)), 1ms);
  gone->advance(1ms);
  short_lived.reset();
  gone.reset();
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{1});
}

struct Told {
  void operator()() const { must_not_run(); }
  void will_not_run(detail::NotRun why) const { told->push_back(why); }
  std::vector<detail::NotRun>* told;
  std::shared_ptr<int> captured;
};

TEST_F(Batches, ABatchThatTheLoopDropsTellsAndDestroysItsTasksAndTheNextOneIsPosted) {
  using detail::NotRun;
  std::vector<NotRun> told;
  const auto captured = std::make_shared<int>();
  for (int i = 0; i < 3; ++i) timer.add(on(loop, Told{&told, captured}), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(posted.take().size(), 1u);
  EXPECT_EQ(told, std::vector(3, NotRun::Dropped));
  EXPECT_EQ(captured.use_count(), 1);
  timer.add(on(loop, record(1)), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{1});
  timer.add(on(loop, Told{&told, captured}), 1ms);
  timer.stop();
  EXPECT_EQ(told, (std::vector{NotRun::Dropped, NotRun::Dropped, NotRun::Dropped, NotRun::Stopped}));
}

TEST_F(Batches, ABatchRunsOnceHoweverOftenItIsCalled) {
  timer.add(on(loop, record(1)), 1ms);
  timer.advance(1ms);
  for (const auto& batch : posted.take()) {
    batch();
    timer.add(on(loop, record(2)), 1ms);
    timer.advance(1ms);
    batch();
    EXPECT_EQ(ran, std::vector{1});
  }
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, (std::vector{1, 2}));
}

TEST(BatchExecutor, ALoopThatThrowsLeavesTheTasksToTheWorkerAndATaskThatThrowsEndsNoBatch) {
  ErrorLog errors;
  bool full = true;
  JobQueue posted;
  const BatchExecutor loop([&](std::function<void()> batch) {
    if (full) throw std::runtime_error("full");
    posted.executor()(std::move(batch));
  });
  ManualTimer timer({.tick_duration = 1ms, .on_task_error = errors.handler()});
  int ran = 0;
  const auto add_two = [&](bool throws) {
    timer.add(on(loop, [&ran, throws] { throws ? throw std::runtime_error("task") : ++ran; }), 1ms);
    timer.add(on(loop, [&] { ++ran; }), 1ms);
    timer.advance(1ms);
  };
  add_two(false);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(errors.errors(), (std::vector<std::string>{"full", "full"}));
  full = false;
  add_two(true);
  EXPECT_EQ(ran, 2);
  posted.run_all();
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(errors.errors().back(), "task");
}

TEST(BatchExecutor, RefusesNull) {
  EXPECT_THROW(BatchExecutor{nullptr}, std::invalid_argument);
  const BatchExecutor loop([](std::function<void()> batch) { batch(); });
  EXPECT_EQ(message_of<std::invalid_argument>([&] { (void)on(loop, std::function<void()>()); }),
            "on: task: null (expected: a callable or a TimerTask)");
  ManualTimer timer;
  TimeoutScope scope(timer, loop);
  EXPECT_EQ(message_of<std::invalid_argument>([&] { scope.add(std::function<void()>(), 1ms); }),
            "add: task: null (expected: a callable or a TimerTask)");
  EXPECT_EQ(scope.size(), 0u);
}

TEST(BatchExecutorAlone, RunsTheJobsItselfWhenPostThrowsAndStillHasThemAfterAMove) {
  int ran = 0;
  const BatchExecutor refusing([](std::function<void()>) { throw std::runtime_error("full"); });
  EXPECT_THROW(refusing([&] { ++ran; }), std::runtime_error);
  EXPECT_EQ(std::exchange(ran, 0), 1);
  BatchExecutor executor([](const std::function<void()>& batch) { batch(); });
  const BatchExecutor taken = std::move(executor);
  executor([&] { ++ran; });  // NOLINT(bugprone-use-after-move): a move is a copy
  BatchExecutor other([](const std::function<void()>&) { ADD_FAILURE() << "it was replaced"; });
  other = std::move(executor);
  for (const BatchExecutor& each : {taken, other, executor}) each([&] { ++ran; });
  EXPECT_EQ(ran, 4);
}

// A TimeoutScope with an executor posts one batch until the loop takes it, and runs no task after its end.

/// A timer of each kind, and a loop whose batches the test runs.
template <class T>
class ScopeOnALoop : public testing::Test {
 protected:
  steady_clock::time_point soon() const { return timer->now() + 2ms; }
  /// Lets time pass until the worker has handed over all tasks that are due by then.
  void hand_over(steady_clock::time_point deadline) {
    std::atomic<bool> later = false;
    timer->add([&] { later = true; }, deadline + 1ms);
    ASSERT_TRUE(passes_until(*timer, [&] { return later.load(); }));
  }

  JobQueue posted;
  const BatchExecutor loop{posted.executor()};
  std::unique_ptr<T> timer = make_timer<T>();
};
TYPED_TEST_SUITE(ScopeOnALoop, AllTimers);

TYPED_TEST(ScopeOnALoop, RunsItsTasksOfAnySizeThereAndPostsOnceATick) {
  auto short_lived = std::make_unique<BatchExecutor>(this->posted.executor());
  TimeoutScope scope(*this->timer, *short_lived);
  short_lived.reset();
  int ran = 0;  // only this thread writes it
  for (int tick = 1; tick <= 3; ++tick) {
    const auto deadline = this->soon();
    for (int i = 0; i < 98; ++i) scope.add([&] { ++ran; }, deadline);
    scope.add([&, numbers = std::array<int, 20>{1}, none = std::make_unique<int>(0)] { ran += numbers[0] + *none; },
              deadline);
    scope.add([&](Timeout& self) { ran += self.is_expired() ? 1 : 0; }, deadline - 1ms, Leeway(1ms));
    this->hand_over(deadline);
    EXPECT_EQ(ran, 100 * (tick - 1));
    EXPECT_EQ(scope.size(), 100u);
    EXPECT_EQ(this->posted.run_all(), 1u);
    EXPECT_EQ(ran, 100 * tick);
    EXPECT_EQ(scope.size(), 0u);
  }
}

TYPED_TEST(ScopeOnALoop, TakesBackAtItsEndTasksThatItsLoopHasNotRunAlsoWhenItsTimerIsGone) {
  for (const bool gone : {false, true}) {
    const auto captured = std::make_shared<int>();
    std::optional<TimeoutScope> scope(std::in_place, *this->timer, this->loop);
    TimeoutScope other(*this->timer, this->loop);
    const auto deadline = this->soon();
    TimeoutId last;
    for (int i = 0; i < 100; ++i) last = scope->add([captured] { must_not_run(); }, deadline);
    int ran = 0;
    other.add([&] { ++ran; }, deadline);
    this->hand_over(deadline);
    if (gone) this->timer.reset();
    EXPECT_EQ(scope->size(), 100u);
    EXPECT_EQ(scope->cancel(last), CancelResult::Running);
    scope.reset();
    EXPECT_EQ(captured.use_count(), 1);
    EXPECT_EQ(this->posted.run_all(), 1u);
    EXPECT_EQ(ran, 1) << "of the other scope";
  }
}

TYPED_TEST(ScopeOnALoop, WaitsAtItsEndForATaskThatItsLoopRuns) {
  for (int round = 0; round < 20; ++round) {
    std::optional<TimeoutScope> scope(std::in_place, *this->timer, this->loop);
    Latch runs;
    std::atomic<bool> over = false;
    const auto deadline = this->soon();
    add_after(*scope, deadline, [&] {
      runs.count_down();
      std::this_thread::sleep_for(2ms);
      over = true;
    });
    scope->add(must_not_run, deadline + kFar);
    this->hand_over(deadline);
    const std::jthread runner([&] { EXPECT_EQ(this->posted.run_all(), 1u); });
    ASSERT_TRUE(runs.wait());
    scope.reset();
    EXPECT_TRUE(over);
  }
}

TYPED_TEST(ScopeOnALoop, CancelAllLeavesTheTasksThatItsLoopHas) {
  TimeoutScope scope(*this->timer, this->loop);
  const auto deadline = this->soon();
  int ran = 0;
  for (int i = 0; i < 3; ++i) scope.add([&] { ++ran; }, deadline);
  for (int i = 0; i < 5; ++i) scope.add(must_not_run, kFar);
  this->hand_over(deadline);
  EXPECT_EQ(scope.size(), 8u);
  EXPECT_EQ(scope.cancel_all(), 5u);
  EXPECT_EQ(scope.size(), 3u);
  EXPECT_EQ(this->posted.run_all(), 1u);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(scope.size(), 0u);
}

TYPED_TEST(ScopeOnALoop, MayEndInATaskBeforeTheOthersOfItsBatch) {
  auto scope = std::make_unique<TimeoutScope>(*this->timer, this->loop);
  const auto deadline = this->soon();
  scope->add([&] { scope.reset(); }, deadline);
  for (int i = 0; i < 10; ++i) scope->add(must_not_run, deadline);
  this->hand_over(deadline);
  EXPECT_EQ(this->posted.run_all(), 1u);
  EXPECT_EQ(scope, nullptr);
  EXPECT_EQ(this->timer->pending_timeouts(), 0);
}

TYPED_TEST(ScopeOnALoop, GoesBeforeTheExecutorOfTheTimerAndBehindThatOfTheTimeout) {
  JobQueue of_timer, of_timeout;
  const BatchExecutor own(of_timeout.executor());
  const auto timer = make_timer<TypeParam>({.executor = of_timer.executor()});
  TimeoutScope scope(*timer, this->loop);
  int ran = 0;
  scope.add([&] { ran += 1; }, 1ms);
  scope.add(on(own, [&] { ran += 10; }), 1ms);
  EXPECT_TRUE(passes_until(*timer, [&] { return this->posted.run_all() != 0; }));
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(passes_until(*timer, [&] { return of_timeout.run_all() != 0; }));
  EXPECT_EQ(ran, 11);
  EXPECT_TRUE(of_timer.take().empty());
}

}  // namespace
}  // namespace hwt::test
