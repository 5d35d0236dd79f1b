// A TimeoutScope with an executor runs its tasks there. It posts one batch until the loop takes it, and runs no task
// after its end.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

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
  const std::unique_ptr<T> timer = make_timer<T>();
};
TYPED_TEST_SUITE(ScopeOnALoop, AllTimers);

TYPED_TEST(ScopeOnALoop, RunsItsTasksThereAndPostsOnceATick) {
  TimeoutScope scope(*this->timer, this->loop);
  int ran = 0;  // only this thread writes it
  for (int tick = 1; tick <= 3; ++tick) {
    const auto deadline = this->soon();
    for (int i = 0; i < 100; ++i) scope.add([&] { ++ran; }, deadline);
    this->hand_over(deadline);
    EXPECT_EQ(ran, 100 * (tick - 1));
    EXPECT_EQ(scope.size(), 100u);
    EXPECT_EQ(this->posted.run_all(), 1u);
    EXPECT_EQ(ran, 100 * tick);
    EXPECT_EQ(scope.size(), 0u);
  }
}

TYPED_TEST(ScopeOnALoop, TakesItsTasksBackAlsoWhenItsTimerIsGone) {
  auto timer = make_timer<TypeParam>();
  auto scope = std::make_unique<TimeoutScope>(*timer, this->loop);
  const TimeoutId id = scope->add(must_not_run, 0ns);
  ASSERT_TRUE(passes_until(*timer, [&] { return timer->pending_timeouts() == 0; }));
  ASSERT_TRUE(this->posted.wait_for(1));
  timer.reset();
  EXPECT_EQ(scope->size(), 1u);
  EXPECT_EQ(scope->cancel(id), CancelResult::Running);
  scope.reset();
  EXPECT_EQ(this->posted.run_all(), 1u);
}

TYPED_TEST(ScopeOnALoop, AddsByDelayAndByLeewayToo) {
  TimeoutScope scope(*this->timer, this->loop);
  int ran = 0;
  scope.add([&] { ++ran; }, 1ms);
  scope.add([&](Timeout& self) { ran += self.is_expired() ? 1 : 0; }, 1ms, Leeway(1ms));
  this->hand_over(this->timer->now() + 3ms);
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(this->posted.run_all(), 1u);
  EXPECT_EQ(ran, 2);
}

TYPED_TEST(ScopeOnALoop, TakesBackAtItsEndTasksThatItsLoopHasNotRun) {
  const auto captured = std::make_shared<int>();
  std::optional<TimeoutScope> scope(std::in_place, *this->timer, this->loop);
  TimeoutScope other(*this->timer, this->loop);
  const auto deadline = this->soon();
  for (int i = 0; i < 100; ++i) scope->add([captured] { must_not_run(); }, deadline);
  int ran = 0;
  other.add([&] { ++ran; }, deadline);
  this->hand_over(deadline);
  scope.reset();
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(this->posted.run_all(), 1u);
  EXPECT_EQ(ran, 1) << "of the other scope";
}

TYPED_TEST(ScopeOnALoop, PostsNothingIfItEndsBefore) {
  std::optional<TimeoutScope> scope(std::in_place, *this->timer, this->loop);
  const auto deadline = this->timer->now() + kFar;
  for (int i = 0; i < 100; ++i) scope->add(must_not_run, deadline);
  scope.reset();
  EXPECT_EQ(this->timer->pending_timeouts(), 0);
  this->hand_over(this->soon());
  EXPECT_EQ(this->posted.run_all(), 0u);
}

TYPED_TEST(ScopeOnALoop, WaitsAtItsEndForATaskThatItsLoopRuns) {
  for (int round = 0; round < 20; ++round) {
    std::optional<TimeoutScope> scope(std::in_place, *this->timer, this->loop);
    std::atomic<bool> runs = false;
    std::atomic<bool> over = false;
    const auto deadline = this->soon();
    scope->add(
        [&] {
          runs = true;
          std::this_thread::sleep_for(2ms);
          over = true;
        },
        deadline);
    scope->add(must_not_run, deadline + kFar);
    this->hand_over(deadline);
    const std::jthread runner([&] { EXPECT_EQ(this->posted.run_all(), 1u); });
    ASSERT_TRUE(eventually([&] { return runs.load(); }));
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

TYPED_TEST(ScopeOnALoop, MayBeUsedInsideItsOwnTasks) {
  TimeoutScope scope(*this->timer, this->loop);
  int ran = 0;
  const auto deadline = this->soon();
  scope.add([&] { scope.add([&] { ++ran; }, deadline); }, deadline);
  for (int runs = 0; runs < 2; ++runs) {
    this->hand_over(deadline);
    EXPECT_EQ(this->posted.run_all(), 1u);
  }
  EXPECT_EQ(ran, 1);
}

TYPED_TEST(ScopeOnALoop, ATimeoutsOwnExecutorGoesFirst) {
  JobQueue other_posted;
  const BatchExecutor other(other_posted.executor());
  TimeoutScope scope(*this->timer, this->loop);
  const auto deadline = this->soon();
  bool ran = false;
  scope.add(on(other, [&] { ran = true; }), deadline);
  this->hand_over(deadline);
  EXPECT_EQ(this->posted.run_all(), 0u);
  EXPECT_EQ(other_posted.run_all(), 1u);
  EXPECT_TRUE(ran);
}

TYPED_TEST(ScopeOnALoop, LeavesOtherTasksToTheWorker) {
  TimeoutScope scope(*this->timer, this->loop);
  TimeoutScope plain(*this->timer);
  const auto deadline = this->soon();
  scope.add([] {}, deadline);
  Latch ran;
  plain.add([&] { ran.count_down(); }, deadline);
  this->hand_over(deadline);
  EXPECT_TRUE(ran.is_open());
  EXPECT_EQ(this->posted.run_all(), 1u);
}

TYPED_TEST(ScopeOnALoop, GoesBeforeTheExecutorOfTheTimer) {
  JobQueue of_timer;
  const auto timer = make_timer<TypeParam>({.executor = of_timer.executor()});
  TimeoutScope scope(*timer, this->loop);
  bool ran = false;
  scope.add([&] { ran = true; }, 1ms);
  EXPECT_TRUE(passes_until(*timer, [&] { return this->posted.run_all() != 0; }));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(of_timer.take().empty());
}

TYPED_TEST(ScopeOnALoop, TakesCallablesOfAnySizeThatOnlyMove) {
  TimeoutScope scope(*this->timer, this->loop);
  const auto deadline = this->soon();
  int sum = 0;
  scope.add([&sum, numbers = std::array<int, 20>{1}, one = std::make_unique<int>(1)] { sum += numbers[0] + *one; },
            deadline);
  this->hand_over(deadline);
  EXPECT_EQ(this->posted.run_all(), 1u);
  EXPECT_EQ(sum, 2);
}

TYPED_TEST(ScopeOnALoop, KeepsItsExecutor) {
  auto short_lived = std::make_unique<BatchExecutor>(this->posted.executor());
  TimeoutScope scope(*this->timer, *short_lived);
  short_lived.reset();
  const auto deadline = this->soon();
  bool ran = false;
  scope.add([&] { ran = true; }, deadline);
  this->hand_over(deadline);
  EXPECT_EQ(this->posted.run_all(), 1u);
  EXPECT_TRUE(ran);
}

TYPED_TEST(ScopeOnALoop, RefusesNull) {
  TimeoutScope scope(*this->timer, this->loop);
  try {
    scope.add(std::function<void()>(), 1ms);
    ADD_FAILURE() << "not refused";
  } catch (const std::invalid_argument& refused) {
    EXPECT_EQ(std::string(refused.what()), "add: task: null (expected: a callable or a TimerTask)");
  }
  EXPECT_EQ(scope.size(), 0u);
}

}  // namespace
}  // namespace hwt
