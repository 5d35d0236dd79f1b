// Promise: the timeouts of a TimeoutScope end with it. After its destructor no task of it runs.

#include "hashed_wheel_timer/timeout_scope.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

void must_not_run() { ADD_FAILURE() << "it must not run"; }

template <class T>
class Scope : public testing::Test {
 protected:
  const std::unique_ptr<T> timer = make_timer<T>();
};
TYPED_TEST_SUITE(Scope, AllTimers);

TYPED_TEST(Scope, RunsItsTimeoutsAndForgetsThem) {
  TimeoutScope scope(*this->timer);
  std::atomic<int> ran = 0;
  scope.add([&] { ++ran; }, 1ms);
  scope.add_at([&] { ++ran; }, this->timer->now() + 2ms);
  EXPECT_EQ(scope.size(), 2u);
  EXPECT_TRUE(passes_until(*this->timer, [&] { return ran == 2; }));
  EXPECT_TRUE(passes_until(*this->timer, [&] { return scope.size() == 0; }));
}

TYPED_TEST(Scope, CancelsAllAndCanBeUsedAfterwards) {
  TimeoutScope scope(*this->timer);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i) scope.add(must_not_run, kFar);
    EXPECT_EQ(scope.size(), 1000u);
    EXPECT_EQ(scope.cancel_all(), 1000u);
    EXPECT_EQ(scope.size(), 0u);
    EXPECT_EQ(scope.cancel_all(), 0u);
    EXPECT_EQ(this->timer->pending_timeouts(), 0);
  }
}

TYPED_TEST(Scope, CancelsOne) {
  TimeoutScope scope(*this->timer);
  const TimeoutId one = scope.add(must_not_run, kFar);
  const TimeoutId other = scope.add(must_not_run, kFar);
  EXPECT_TRUE(scope.cancel(one));
  EXPECT_FALSE(scope.cancel(one));
  EXPECT_EQ(scope.size(), 1u);
  EXPECT_TRUE(scope.cancel(other));
  EXPECT_FALSE(scope.cancel({}));
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
  }
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_EQ(timer.cancel(outside), CancelResult::Cancelled);
}

TYPED_TEST(Scope, EndsWithItsObject) {
  Timer& timer = *this->timer;
  for (int i = 0; i < 100; ++i) {
    const auto object = std::make_unique<TimeoutScope>(timer);
    for (int k = 0; k < i; ++k) object->add(must_not_run, kFar);
  }
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// The task destroys the object that owns the scope, as a connection does that has timed out.
TYPED_TEST(Scope, MayBeDestroyedInsideItsOwnTask) {
  struct Connection {
    explicit Connection(Timer& timer) : scope(timer) {}
    TimeoutScope scope;
  };
  auto connection = std::make_unique<Connection>(*this->timer);
  connection->scope.add(must_not_run, kFar);
  std::atomic<bool> destroyed = false;
  connection->scope.add(
      [&] {
        connection.reset();
        destroyed = true;
      },
      1ms);
  EXPECT_TRUE(passes_until(*this->timer, [&] { return destroyed.load(); }));
  EXPECT_EQ(this->timer->pending_timeouts(), 0);
}

TYPED_TEST(Scope, MayBeUsedInsideItsOwnTasks) {
  TimeoutScope scope(*this->timer);
  std::atomic<int> ran = 0;
  struct Again {
    TimeoutScope& scope;
    std::atomic<int>& ran;
    void operator()() const {
      scope.cancel_all();
      if (++ran < 5) scope.add(Again{scope, ran}, 1ms);
    }
  };
  scope.add(Again{scope, ran}, 0ms);
  EXPECT_TRUE(passes_until(*this->timer, [&] { return ran == 5; }));
}

TEST(TimeoutScope, WaitsForATaskThatRuns) {
  HashedWheelTimer timer(1ms);
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> runs = false;
    std::atomic<bool> over = false;
    {
      TimeoutScope scope(timer);
      scope.add(
          [&] {
            runs = true;
            std::this_thread::sleep_for(2ms);
            over = true;
          },
          0ms);
      ASSERT_TRUE(eventually([&] { return runs.load(); }));
      EXPECT_EQ(scope.cancel_all(), 0u) << "it runs, and nobody waits for it";
    }
    EXPECT_TRUE(over);
  }
}

/// A task that adds while the destructor waits for it is refused, so that the destructor comes to an end.
TEST(TimeoutScope, RefusesATaskThatAddsWhileItEnds) {
  HashedWheelTimer timer(1ms);
  std::atomic<bool> runs = false;
  std::atomic<bool> refused = false;
  {
    TimeoutScope scope(timer);
    scope.add(
        [&] {
          runs = true;
          while (!refused) {
            try {
              scope.add(must_not_run, kFar);
            } catch (const IllegalState&) {
              refused = true;
            }
          }
        },
        0ms);
    ASSERT_TRUE(eventually([&] { return runs.load(); }));
  }
  EXPECT_TRUE(refused);
  EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
}

TEST(TimeoutScope, DisarmsTasksThatWaitInAnExecutor) {
  std::vector<std::function<void()>> jobs;
  ManualTimer timer(
      Options{.tick_duration = 1ms, .executor = [&](std::function<void()> job) { jobs.push_back(std::move(job)); }});
  {
    TimeoutScope scope(timer);
    for (int i = 0; i < 3; ++i) scope.add(must_not_run, 1ms);
    timer.advance(1ms);
    ASSERT_EQ(jobs.size(), 3u);
    EXPECT_EQ(scope.size(), 3u);
    EXPECT_EQ(scope.cancel_all(), 0u);
  }
  for (const auto& job : jobs) job();
}

TEST(TimeoutScope, RefusedTimeoutsLeaveNothing) {
  ManualTimer timer(Options{.max_pending_timeouts = 1});
  TimeoutScope scope(timer);
  scope.add(must_not_run, kFar);
  for (int i = 0; i < 100; ++i) EXPECT_THROW(scope.add(must_not_run, kFar), RejectedExecution);
  EXPECT_EQ(scope.size(), 1u);
  timer.stop();
  EXPECT_THROW(scope.add(must_not_run, kFar), IllegalState);
  EXPECT_EQ(scope.size(), 0u);
}

TEST(TimeoutScope, TakesAtMostSixteenBytesForEachTimeout) {
  constexpr int kTimeouts = 10'000;
  ManualTimer timer;
  std::vector<TimeoutId> ids;
  ids.reserve(kTimeouts);
  const auto schedule = [&](auto& where) {
    for (int i = 0; i < kTimeouts; ++i) ids.push_back(where.add(must_not_run, kFar));
    for (const TimeoutId id : ids) where.cancel(id);
    ids.clear();
  };
  for (int i = 0; i < 3; ++i) schedule(timer);  // the memory of the timeouts themselves
  const std::int64_t before = bytes_in_use;
  TimeoutScope scope(timer);
  schedule(scope);
  EXPECT_LE(bytes_in_use - before, kTimeouts * 16);
  // Those that have ended leave again.
  for (int i = 0; i < 100 * kTimeouts; ++i) scope.cancel(scope.add(must_not_run, kFar));
  EXPECT_LE(bytes_in_use - before, kTimeouts * 16);
}

/// Threads add, cancel one and cancel all, while the worker runs due tasks. Each timeout ends once.
TEST(TimeoutScope, IsUsedByManyThreads) {
  constexpr int kRounds = kSanitized ? 20 : 200;
  HashedWheelTimer timer(1ms);
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> ran = 0;
    std::atomic<int> cancelled = 0;
    std::atomic<bool> gone = false;
    constexpr int kThreads = 3;
    constexpr int kOfEach = 300;
    auto scope = std::make_unique<TimeoutScope>(timer);
    {
      std::vector<std::jthread> threads;
      threads.reserve(kThreads);
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          for (int i = 0; i < kOfEach; ++i) {
            const TimeoutId id = scope->add(
                [&] {
                  EXPECT_FALSE(gone);
                  ++ran;
                },
                i % 3 * 500us);
            if (i % 5 == thread) cancelled += scope->cancel(id) ? 1 : 0;
            if (i % 50 == thread) cancelled += static_cast<int>(scope->cancel_all());
          }
        });
      }
    }
    cancelled += static_cast<int>(scope->cancel_all());
    scope.reset();
    gone = true;
    EXPECT_EQ(ran + cancelled, kThreads * kOfEach);
  }
}

}  // namespace
}  // namespace hwt
