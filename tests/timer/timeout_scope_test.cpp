// Promise: the timeouts of a TimeoutScope end with it. After its destructor no task of it runs, except one that has
// destroyed it.

#include "hashed_wheel_timer/timeout_scope.h"

#include "hashed_wheel_timer/batch_executor.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"
#include "tests/support/held_task.h"
#include "tests/support/when_copied.h"

#if !defined(_WIN32)
#include "tests/support/forked_child.h"
#endif

namespace hwt::test {
namespace {

template <class T>
class Scope : public testing::Test {
 protected:
  const std::unique_ptr<T> timer = make_timer<T>();
};
TYPED_TEST_SUITE(Scope, AllTimers);

TYPED_TEST(Scope, CancelsOneOrAllAndCanBeUsedAfterwards) {
  TimeoutScope scope(*this->timer);
  for (int round = 0; round < 3; ++round) {
    const TimeoutId one = scope.add(must_not_run, kFar);
    for (int i = 0; i < 1000; ++i) scope.add(must_not_run, kFar);
    EXPECT_EQ(scope.cancel(one), CancelResult::Cancelled);
    EXPECT_EQ(scope.cancel(one), CancelResult::Gone);
    EXPECT_EQ(scope.size(), 1000u);
    EXPECT_EQ(scope.cancel_all(), 1000u);
    EXPECT_EQ(scope.size(), 0u);
    EXPECT_EQ(scope.cancel_all(), 0u);
    EXPECT_EQ(this->timer->pending_timeouts(), 0);
  }
  EXPECT_EQ(scope.cancel({}), CancelResult::Gone);
}

/// Also when the task has destroyed the timer.
TEST(ScopeTest, CancelTellsATaskThatItRuns) {
  for (const bool destroys : {false, true}) {
    auto timer = std::make_unique<ManualTimer>();
    TimeoutScope scope(*timer);
    TimeoutId running;
    CancelResult own = CancelResult::Gone;
    CancelResult other = CancelResult::Gone;
    const TimeoutId pending = scope.add(must_not_run, kFar);
    running = add_after(scope, 1ms, [&] {
      if (destroys) timer.reset();
      own = scope.cancel(running);
      other = scope.cancel(pending);
    });
    timer->advance(1ms);
    EXPECT_EQ(own, CancelResult::Running);
    EXPECT_EQ(other, CancelResult::Cancelled) << "a timer that ends does so after this task";
    EXPECT_EQ(scope.cancel(running), CancelResult::Gone);
  }
}

TYPED_TEST(Scope, MayOutliveItsTimerOrItsStop) {
  for (const bool stops : {false, true}) {
    auto timer = make_timer<TypeParam>();
    TimeoutScope unused(*timer);
    TimeoutScope scope(*timer);
    const auto token = std::make_shared<int>();
    std::vector<TimeoutId> ids;
    for (int i = 0; i < 100; ++i) ids.push_back(scope.add([token] { must_not_run(); }, kFar));
    EXPECT_EQ(scope.cancel(ids[0]), CancelResult::Cancelled);
    stops ? static_cast<void>(timer->stop()) : timer.reset();
    EXPECT_EQ(token.use_count(), 1);
    EXPECT_EQ(scope.size(), 0U);
    for (const TimeoutId id : ids) EXPECT_EQ(scope.cancel(id), CancelResult::Gone);
    EXPECT_EQ(scope.cancel_all(), 0U);
    if (stops) TimeoutScope without_timeouts(*timer);
  }
}

TYPED_TEST(Scope, MayBeDestroyedInsideItsOwnTaskAlsoAfterItsTimer) {
  for (const bool destroys_timer : {false, true}) {
    auto timer = make_timer<TypeParam>();
    auto scope = std::make_unique<TimeoutScope>(*timer);
    Latch ended;
    for (int i = 0; i < 10; ++i) scope->add(must_not_run, kFar);
    TypeParam& driven = *timer;
    add_after(*scope, 0ns, [&] {
      if (destroys_timer) timer.reset();
      scope.reset();
      ended.count_down();
    });
    if constexpr (kDriven<TypeParam>) std::this_thread::sleep_for(2ms);
    turn(driven);
    EXPECT_TRUE(ended.wait());
    EXPECT_TRUE(destroys_timer || timer->pending_timeouts() == 0);
  }
}

TYPED_TEST(Scope, CancelsNothingOfOthers) {
  Timer& timer = *this->timer;
  const TimeoutId outside = timer.add(must_not_run, kFar);
  {
    TimeoutScope scope(timer);
    TimeoutScope other(timer);
    other.add(must_not_run, kFar);
    scope.add(must_not_run, kFar);
    EXPECT_EQ(scope.cancel_all(), 1u);
    EXPECT_EQ(other.size(), 1u);
    for (int i = 0; i < 99; ++i) other.add(must_not_run, kFar);
  }
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_EQ(timer.cancel(outside), CancelResult::Cancelled);
}

TYPED_TEST(Scope, MayBeUsedInsideItsOwnTasks) {
  TimeoutScope scope(*this->timer);
  std::atomic<int> ran = 0;
  const std::function<void()> again = [&] {
    scope.cancel_all();
    if (++ran < 5) scope.add(again, 1ms);
  };
  scope.add(again, this->timer->now());
  EXPECT_TRUE(passes_until(*this->timer, [&] { return ran == 5 && scope.size() == 0; })) << "it forgets them";
}

/// The last owner of the object is a callable, which is destroyed after its task has run.
TYPED_TEST(Scope, MayBeDestroyedWithItsOwnCallable) {
  auto scope = std::make_shared<TimeoutScope>(*this->timer);
  const std::weak_ptr<TimeoutScope> seen = scope;
  std::atomic<bool> ran = false;
  scope->add([&ran, scope] { ran = true; }, 1ms);
  scope->add(must_not_run, kFar);
  scope.reset();
  EXPECT_TRUE(passes_until(*this->timer, [&] { return seen.expired() && this->timer->pending_timeouts() == 0; }));
  EXPECT_TRUE(ran);
}

/// A callable that adds to its scope when it is destroyed: no call holds the scope's lock meanwhile.
TYPED_TEST(Scope, MayBeUsedByADestructorOfACallable) {
  TimeoutScope scope(*this->timer);
  const auto add = [&](void*) {
    if (scope.size() < 200) scope.add(must_not_run, kFar);
  };
  for (int i = 0; i < 100; ++i) scope.add([end = std::shared_ptr<void>(nullptr, add)] { must_not_run(); }, kFar);
  EXPECT_GE(scope.cancel_all(), 100u);
  scope.cancel_all();
  EXPECT_EQ(scope.size(), 0u);
}

TEST(TimeoutScope, WaitsForATaskThatRunsAfterItHasCancelledTheOthers) {
  ThreadPerJob threads;
  HashedWheelTimer pooled({.tick_duration = 1ms, .executor = threads.executor()});
  HashedWheelTimer timer(1ms);
  for (int i = 0; i < 50; ++i) {
    Timer& used = i % 2 == 0 ? pooled : timer;
    Hold hold;
    std::atomic<bool> over = false;
    {
      TimeoutScope scope(used);
      add_after(scope, 0ms, [&] {
        hold();  // fails if cancel_all() waits for the task
        EXPECT_TRUE(eventually([&] { return used.pending_timeouts() == 0; }));
        std::this_thread::sleep_for(2ms);
        over = true;
      });
      ASSERT_TRUE(hold.wait_until_entered());
      EXPECT_EQ(scope.cancel_all(), 0u) << "the task runs already";
      for (int other = 0; other < 100; ++other) scope.add(must_not_run, kFar);
      hold.let_go();
    }
    EXPECT_TRUE(over);
  }
}

TEST(TimeoutScope, MayBeDestroyedInATaskWhileOthersUseIt) {
  constexpr int kRounds = kSanitized ? 20 : 100;
  for (int round = 0; round < kRounds; ++round) {
    ThreadPerJob threads;
    HashedWheelTimer timer({.tick_duration = 1ms, .executor = threads.executor()});
    auto scope = std::make_unique<TimeoutScope>(timer);
    TimeoutScope& used = *scope;
    std::atomic<int> inside = 0;
    std::atomic<int> users = 3;
    std::atomic<bool> destroyed = false;
    const auto all_inside = [&] { return ++inside, eventually([&] { return inside == 4; }); };
    for (int i = 0; i < 3; ++i) {
      add_after(used, 0ms, [&] {
        EXPECT_TRUE(all_inside());
        try {
          for (;;) {
            used.cancel(used.add(must_not_run, kFar));
            used.cancel_all();
            used.size();
          }
        } catch (const IllegalState&) {  // it ends
        }
        --users;
      });
    }
    add_after(used, 0ms, [&] {
      EXPECT_TRUE(all_inside());
      scope.reset();
      EXPECT_EQ(users, 0);
      destroyed = true;
    });
    ASSERT_TRUE(eventually([&] { return destroyed.load(); }));
    timer.stop();
  }
}

TEST(TimeoutScope, IsUnchangedByAnAddWithoutMemory) {
  ManualTimer timer;
  // Too large for the node, so it is allocated.
  const auto large = [numbers = std::array<int, 20>()] { must_not_run(), static_cast<void>(numbers); };
  std::int64_t most = 0;
  for (int before = 0; before < 100; ++before) {
    const auto is_unchanged = [&](std::int64_t n) {
      TimeoutScope scope(timer);
      for (int i = 0; i < before; ++i) scope.add(large, kFar);
      const bool failed = with_failing(n, [&] { scope.add(large, kFar); }).bad_alloc;
      const int added = before + (failed ? 0 : 1);
      EXPECT_EQ(scope.size(), static_cast<std::size_t>(added));
      EXPECT_EQ(timer.pending_timeouts(), added);
      scope.add(must_not_run, kFar);
      EXPECT_EQ(scope.cancel_all(), static_cast<std::size_t>(added + 1));
      return failed;
    };
    most = std::max<std::int64_t>(most, for_each_allocation(is_unchanged));
  }
  EXPECT_GE(most, 2) << "the callable, and the room for the ids";
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// After a peak, a scope frees its memory when it is full again.
void make_peak(TimeoutScope& scope) {
  for (int i = 0; i < 5000; ++i) scope.add(must_not_run, kFar);
  scope.cancel_all();
}

/// An add() makes room for its id before it calls the timer. Afterwards the scope needs no memory, even if adds within
/// the call find none.
TEST(TimeoutScope, IsUnchangedByAddsWithoutMemoryDuringAnAdd) {
  ManualTimer timer;
  TimeoutScope scope(timer);
  make_peak(scope);
  std::size_t added = 0;
  const std::function<void()> adds = [&] {
    const Shortage shortage(0, Shortage::kAll);
    throws<std::bad_alloc>([&] {
      for (int i = 0; i < 100; ++i, ++added) scope.add([] { must_not_run(); }, kFar);
    });
  };
  const WhenCopied callable(adds);
  for (int i = 0; i < 200; ++i, ++added) scope.add(callable, kFar);
  EXPECT_GE(added, 200u);
  EXPECT_EQ(scope.size(), added);
  EXPECT_EQ(scope.cancel_all(), added);
}

/// From the copy of the callable to the end of add(), no allocation succeeds.
TEST(TimeoutScope, HasAPlaceForTheIdOfAnAddThatFreesTheMemoryOfAPeakOrKeepsItWithoutMemoryForLess) {
  ManualTimer timer;
  TimeoutScope scope(timer);
  make_peak(scope);
  std::optional<Shortage> shortage;
  const std::function<void()> begin_shortage = [&] { shortage.emplace(0, Shortage::kAll); };
  const WhenCopied callable(begin_shortage);
  for (int i = 0; i < 10'000; ++i) {
    throws<std::bad_alloc>([&] { scope.cancel(scope.add(callable, kFar)); });  // of the timer
    shortage.reset();
  }
  EXPECT_EQ(scope.size(), 0u);
  make_peak(scope);
  shortage.emplace(0, Shortage::kAll);
  for (int i = 0; i < 20'000; ++i) ASSERT_EQ(scope.cancel(scope.add(must_not_run, kFar)), CancelResult::Cancelled) << i;
}

#if !defined(_WIN32)
TEST(TimeoutScope, CanBeDestroyedInAForkedChildInTheMiddleOfAnyCallOfTheParent) {
  constexpr int kForks = kSanitized ? 30 : 150;
  HashedWheelTimer timer(1ms);
  auto scope = std::make_unique<TimeoutScope>(timer);
  std::atomic<bool> over = false;
  auto threads = start_threads(3, [&](int thread) {
    while (!over) thread == 0 ? (void)scope->cancel_all() : (void)scope->add([] {}, thread * 100us);
  });
  for (int i = 0; i < kForks; ++i) EXPECT_EQ(status_of_child([&] { return scope.reset(), 0; }), 0);
  over = true;
}

/// The executor may refer to a loop that is only whole in the parent.
TEST(TimeoutScope, LeavesItsExecutorAloneInAForkedChild) {
  HashedWheelTimer timer(1ms);
  bool released = false;
  std::unique_ptr<TimeoutScope> scope;
  {
    const std::shared_ptr<int> loop(new int, [&](int* memory) {
      released = true;
      delete memory;
    });
    scope =
        std::make_unique<TimeoutScope>(timer, BatchExecutor([loop](const std::function<void()>& batch) { batch(); }));
  }
  EXPECT_EQ(status_of_child([&] { return scope.reset(), released ? 1 : 0; }), 0);
  scope.reset();
  EXPECT_TRUE(released) << "the parent's scope must release the executor, or this test checks nothing";
}
#endif

/// A callable that a cancel() is destroying may still use the object that owns the scope.
TEST(TimeoutScope, CountsATimeoutWhoseCallableIsBeingDestroyed) {
  Story story(In::Destructor);
  HashedWheelTimer timer(1ms);
  TimeoutScope scope(timer);
  std::jthread canceller([&] { EXPECT_EQ(scope.cancel(scope.add(Actor(story), kFar)), CancelResult::Cancelled); });
  ASSERT_TRUE(story.hold.wait_until_entered());
  EXPECT_EQ(scope.size(), 1u);
  story.hold.let_go();
  canceller.join();
  EXPECT_EQ(scope.size(), 0u);
}

TEST(TimeoutScope, RefusedTimeoutsAndThoseThatTheTimerCancelsLeaveNothing) {
  ManualTimer timer(Options{.max_pending_timeouts = 2});
  TimeoutScope scope(timer);
  const TimeoutId in_the_wheel = scope.add(must_not_run, kFar);
  scope.add(must_not_run, kFar);
  for (int i = 0; i < 100; ++i) EXPECT_THROW(scope.add(must_not_run, kFar), RejectedExecution);
  timer.advance(1ms);
  EXPECT_EQ(timer.cancel(in_the_wheel), CancelResult::Cancelled);
  EXPECT_EQ(scope.size(), 1u);
  timer.stop();
  EXPECT_THROW(scope.add(must_not_run, kFar), IllegalState);
  EXPECT_EQ(scope.size(), 0u);
}

TEST(TimeoutScope, EndsWithARefusedCallableThatIsItsLastOwner) {
  ManualTimer timer;
  timer.stop();
  const BatchExecutor executor([](const std::function<void()>&) { FAIL(); });
  for (const bool has_executor : {false, true}) {
    auto scope = has_executor ? std::make_shared<TimeoutScope>(timer, executor) : std::make_shared<TimeoutScope>(timer);
    TimeoutScope& used = *scope;
    EXPECT_THROW(used.add([last = std::move(scope)] { must_not_run(); }, kFar), IllegalState);
  }
}

TEST(TimeoutScope, TakesAtMostSixteenBytesForEachTimeout) {
  constexpr int kTimeouts = 10'000;
  ManualTimer timer;
  std::vector<TimeoutId> ids;
  ids.reserve(kTimeouts);
  // The inbox has room for more or fewer dead entries each time. So this returns the least of many times.
  const auto bytes_with = [&](auto& where) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (int times = 0; times < (kSanitized ? 10 : 100); ++times) {
      for (int i = 0; i < kTimeouts; ++i) ids.push_back(where.add(must_not_run, kFar));
      for (const TimeoutId id : ids) where.cancel(id);
      ids.clear();
      least = std::min<std::int64_t>(least, bytes_in_use);
    }
    return least;
  };
  const std::int64_t without = bytes_with(timer);
  TimeoutScope scope(timer);
  EXPECT_LE(bytes_with(scope) - without, kTimeouts * 16);
  // The scope drops the ids of ended timeouts.
  for (int i = 0; i < 100 * kTimeouts; ++i) scope.cancel(scope.add(must_not_run, kFar));
  EXPECT_LE(bytes_with(scope) - without, kTimeouts * 16);
}

TEST(TimeoutScope, FreesTheMemoryOfAPeakWhenAsManyWereAddedAgain) {
  constexpr int kPeak = 100'000;
  ManualTimer timer;
  const auto bytes_after_peak = [&](int added_again) {
    auto scope = std::make_unique<TimeoutScope>(timer);
    for (int i = 0; i < kPeak; ++i) scope->add(must_not_run, kFar);
    scope->cancel_all();
    scope->add(must_not_run, kFar);
    for (int i = 0; i < added_again; ++i) scope->cancel(scope->add(must_not_run, kFar));
    EXPECT_EQ(scope->size(), 1u);
    const std::int64_t before = bytes_in_use;
    scope.reset();
    return before - bytes_in_use;
  };
  EXPECT_GT(bytes_after_peak(0), kPeak * 8);
  EXPECT_LT(bytes_after_peak(kPeak), kPeak);
}

/// Calls of cancel_all() that overlap do not keep the scope from dropping the ids of ended timeouts.
TEST(TimeoutScope, ForgetsWhileOthersCancelAll) {
  constexpr int kLives = kSanitized ? 20'000 : 200'000;
  ManualTimer timer;
  TimeoutScope scope(timer);
  std::atomic<bool> over = false;
  auto threads = start_threads(2, [&](int) {
    while (!over) scope.cancel_all();
  });
  scope.cancel(scope.add(must_not_run, kFar));
  const std::int64_t before = bytes_in_use;
  std::int64_t most = 0;
  for (int i = 0; i < kLives; ++i) {
    scope.cancel(scope.add(must_not_run, kFar));
    most = std::max(most, bytes_in_use - before);
  }
  over = true;
  EXPECT_LT(most, kLives * 4);
}

}  // namespace
}  // namespace hwt::test
