// BatchExecutor and on(): one post for all tasks of a tick, and what ends a task that waits in a batch.

#include "hashed_wheel_timer/batch_executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/any_timer.h"
#include "tests/support/job_thread.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

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

TEST_F(Batches, ATickIsOnePostHoweverManyAreDue) {
  for (int i = 0; i < 3000; ++i) timer.add(on(loop, record(i)), (1 + i / 1000) * 1ms);
  for (int tick = 1; tick <= 3; ++tick) {
    timer.advance(1ms);
    EXPECT_EQ(ran.size(), 1000u * (tick - 1)) << "not on the worker";
    EXPECT_EQ(posted.run_all(), 1u);
    EXPECT_EQ(ran.size(), 1000u * tick);
  }
  for (int i = 0; i < 3000; ++i) EXPECT_EQ(ran[i], i);
  timer.advance(1h);
  EXPECT_EQ(posted.run_all(), 0u);
}

TEST_F(Batches, AnExecutorOfATimerPostsOnceATickToo) {
  ManualTimer for_loop({.tick_duration = 1ms, .executor = loop});
  for (int i = 0; i < 1000; ++i) for_loop.add(record(i), 1ms);
  for_loop.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran.size(), 1000u);
}

TEST_F(Batches, ALoopThatIsLateGetsOnePostForAllTicks) {
  for (int i = 0; i < 10; ++i) timer.add(on(loop, record(i)), (i + 1) * 1ms);
  for (int i = 0; i < 10; ++i) timer.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran.size(), 10u);
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

TEST_F(Batches, ATimeoutsOwnExecutorGoesBeforeThatOfTheTimer) {
  JobQueue jobs;
  ManualTimer with_executor({.tick_duration = 1ms, .executor = jobs.executor()});
  with_executor.add(record(1), 1ms);
  with_executor.advance(1ms);
  with_executor.add(on(loop, record(2)), 1ms);
  with_executor.add(record(3), 1ms);
  with_executor.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{2});
  jobs.run_all();
  EXPECT_EQ(ran, (std::vector{2, 1, 3}));
}

TEST_F(Batches, ATaskMayTakeItsHandleAndAnySize) {
  const std::string text(100, 'x');
  std::string seen;
  Timeout handle = timer.new_timeout(on(loop,
                                        [&, text](Timeout& timeout) {
                                          EXPECT_TRUE(timeout.is_expired());
                                          EXPECT_EQ(timeout, handle);
                                          seen = text;
                                        }),
                                     1ms);
  timer.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(seen, text);
}

TEST_F(Batches, CancelBeforeTheTickPostsNothing) {
  const auto captured = std::make_shared<int>();
  const TimeoutId id = timer.add(on(loop, [captured] { must_not_run(); }), 1ms);
  EXPECT_EQ(timer.cancel(id), CancelResult::Cancelled);
  EXPECT_EQ(captured.use_count(), 1);
  timer.advance(1ms);
  EXPECT_EQ(posted.run_all(), 0u);
}

TEST_F(Batches, CancelDoesNotStopATaskThatWaitsInABatch) {
  const TimeoutId id = timer.add(on(loop, record(1)), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(timer.cancel(id), CancelResult::Running);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{1});
  EXPECT_EQ(timer.cancel(id), CancelResult::Gone);
}

TEST_F(Batches, CancelAndWaitTakesBackATaskThatWaitsInABatch) {
  const auto captured = std::make_shared<int>();
  const TimeoutId id = timer.add(on(loop, [captured] { must_not_run(); }), 1ms);
  timer.add(on(loop, record(1)), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(timer.cancel_and_wait(id), CancelResult::Cancelled);
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{1});
}

TEST_F(Batches, TheEndOfAScopeTakesBackItsTasks) {
  {
    TimeoutScope scope(timer);
    scope.add(on(loop, must_not_run), 1ms);
    timer.advance(1ms);
  }
  EXPECT_EQ(posted.run_all(), 1u);
}

TEST_F(Batches, ATaskMayEndTheScopeOfLaterTasksOfItsBatch) {
  auto scope = std::make_unique<TimeoutScope>(timer);
  scope->add(on(loop, [&] { scope.reset(); }), 1ms);
  scope->add(on(loop, must_not_run), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(scope, nullptr);
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

TEST_F(Batches, ABatchThatTheLoopDropsDestroysItsTasksAndTheNextOneIsPosted) {
  const auto captured = std::make_shared<int>();
  for (int i = 0; i < 10; ++i) timer.add(on(loop, [captured] { must_not_run(); }), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(posted.take().size(), 1u);
  EXPECT_EQ(captured.use_count(), 1);
  timer.add(on(loop, record(1)), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(posted.run_all(), 1u);
  EXPECT_EQ(ran, std::vector{1});
}

struct Told {
  void operator()() const { must_not_run(); }
  void will_not_run(detail::NotRun why) const { told->push_back(why); }
  std::vector<detail::NotRun>* told;
};

TEST_F(Batches, ATaskIsToldThatItWillNotRun) {
  std::vector<detail::NotRun> told;
  timer.add(on(loop, Told{&told}), 1ms);
  timer.advance(1ms);
  posted.take();
  EXPECT_EQ(told, std::vector{detail::NotRun::Dropped});
  timer.add(on(loop, Told{&told}), 1ms);
  timer.stop();
  EXPECT_EQ(told, (std::vector{detail::NotRun::Dropped, detail::NotRun::Stopped}));
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

TEST(BatchExecutor, ALoopThatThrowsLeavesTheTasksToTheWorker) {
  ErrorLog errors;
  bool full = true;
  JobQueue posted;
  const BatchExecutor loop([&](std::function<void()> batch) {
    if (full) throw std::runtime_error("full");
    posted.executor()(std::move(batch));
  });
  ManualTimer timer({.tick_duration = 1ms, .on_task_error = errors.handler()});
  int ran = 0;
  timer.add(on(loop, [&] { ++ran; }), 1ms);
  timer.add(on(loop, [&] { ++ran; }), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(errors.errors(), (std::vector<std::string>{"full", "full"}));
  full = false;
  timer.add(on(loop, [&] { ++ran; }), 1ms);
  timer.advance(1ms);
  EXPECT_EQ(ran, 2);
  posted.run_all();
  EXPECT_EQ(ran, 3);
}

TEST(BatchExecutor, AnExceptionOfATaskEndsNoBatch) {
  ErrorLog errors;
  JobQueue posted;
  const BatchExecutor loop(posted.executor());
  ManualTimer timer({.tick_duration = 1ms, .on_task_error = errors.handler()});
  bool ran = false;
  timer.add(on(loop, [] { throw std::runtime_error("task"); }), 1ms);
  timer.add(on(loop, [&] { ran = true; }), 1ms);
  timer.advance(1ms);
  posted.run_all();
  EXPECT_EQ(errors.errors(), std::vector<std::string>{"task"});
  EXPECT_TRUE(ran);
}

TEST(BatchExecutor, RefusesNull) {
  EXPECT_THROW(BatchExecutor{nullptr}, std::invalid_argument);
  const BatchExecutor loop([](std::function<void()> batch) { batch(); });
  EXPECT_EQ(message_of<std::invalid_argument>([&] { (void)on(loop, std::function<void()>()); }),
            "on: task: null (expected: a callable or a TimerTask)");
}

template <class T>
class BatchesOnThreads : public testing::Test {};
TYPED_TEST_SUITE(BatchesOnThreads, ThreadedTimers);

/// Threads schedule on one loop, and end scopes amid the hand-over. Each task runs once, is cancelled, or is taken
/// back.
TYPED_TEST(BatchesOnThreads, EachTaskRunsOnceAndNoneAfterItsScope) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 150;
  constexpr int kEach = 20;
  struct Fates {
    std::atomic<int> ran = 0;
    std::atomic<int> again = 0;
    std::atomic<int> late = 0;
    std::atomic<int> destroyed = 0;
  } fates;
  struct Task {
    Task(Fates& fates, std::shared_ptr<const std::atomic<bool>> ended) : fates(&fates), ended(std::move(ended)) {}
    Task(Task&& other) noexcept
        : fates(std::exchange(other.fates, nullptr)), ended(std::move(other.ended)), has_run(other.has_run) {}
    ~Task() {
      if (fates != nullptr) ++fates->destroyed;
    }
    void operator()() const {
      ++fates->ran;
      if (std::exchange(has_run, true)) ++fates->again;
      if (*ended) ++fates->late;
    }
    Fates* fates;
    std::shared_ptr<const std::atomic<bool>> ended;  // shared: a task that runs too late must find it
    mutable bool has_run = false;
  };
  JobThread jobs;
  const BatchExecutor loop(jobs.executor());
  const auto timer = make_timer<TypeParam>();
  run_together(kThreads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      const auto ended = std::make_shared<std::atomic<bool>>(false);
      {
        TimeoutScope scope(*timer);
        for (int i = 0; i < kEach; ++i) scope.add(on(loop, Task(fates, ended)), i % 3 * 500us);
        std::this_thread::sleep_for(std::chrono::microseconds((round + thread) % 7 * 300));
      }
      *ended = true;
    }
  });
  EXPECT_TRUE(eventually([&] { return fates.destroyed == kThreads * kRounds * kEach; }));
  EXPECT_EQ(fates.again, 0);
  EXPECT_EQ(fates.late, 0);
  EXPECT_GT(fates.ran, 0);
  EXPECT_LE(fates.ran, kThreads * kRounds * kEach);
}

TEST(BatchExecutorAlone, RunsTheJobsItselfWhenPostThrows) {
  const BatchExecutor refusing([](std::function<void()>) { throw std::runtime_error("full"); });
  int ran = 0;
  EXPECT_THROW(refusing([&] { ++ran; }), std::runtime_error);
  EXPECT_EQ(ran, 1);
}

TEST(BatchExecutorAlone, StillHasItsJobsAfterAMove) {
  int ran = 0;
  BatchExecutor executor([](const std::function<void()>& batch) { batch(); });
  const BatchExecutor taken = std::move(executor);
  executor([&] { ++ran; });  // NOLINT(bugprone-use-after-move): a move is a copy
  BatchExecutor other([](const std::function<void()>&) { ADD_FAILURE() << "it was replaced"; });
  other = std::move(executor);
  for (const BatchExecutor& each : {taken, other, executor}) each([&] { ++ran; });
  EXPECT_EQ(ran, 4);
}

}  // namespace
}  // namespace hwt
