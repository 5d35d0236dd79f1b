// The promises of StopAfter, for every Timer.

#include "hashed_wheel_timer/stop_after.h"

#include "tests/coroutine/coroutine_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

template <class T>
class StopAfterLimit : public ::testing::Test {};
TYPED_TEST_SUITE(StopAfterLimit, AllTimers);

template <class T>
class StopAfterLimitThreaded : public ::testing::Test {};
TYPED_TEST_SUITE(StopAfterLimitThreaded, ThreadedTimers);

// The deadline, the parent and cancel().

TYPED_TEST(StopAfterLimit, TheDeadlineRequestsTheStopAndSetsTimedOutBeforeCallbacksRun) {
  const auto timer = make_timer<TypeParam>();
  std::stop_source parent;
  StopAfter limit(*timer, kFar, parent.get_token());
  std::atomic<int> said = 0;
  const std::stop_callback on_stop(limit.token(), [&] { said = limit.timed_out() ? 1 : -1; });
  EXPECT_TRUE(limit.reschedule(2 * kFar));
  EXPECT_FALSE(limit.timed_out());
  EXPECT_THROW(limit.reschedule(kNanDelay), std::invalid_argument);
  EXPECT_TRUE(limit.reschedule(2ms));
  EXPECT_TRUE(passes_until(*timer, [&] { return said != 0; }));
  EXPECT_EQ(said, 1);
  EXPECT_TRUE(limit.timed_out());
  EXPECT_TRUE(limit.token().stop_requested());
  EXPECT_FALSE(parent.stop_requested());
  EXPECT_FALSE(limit.cancel());
  EXPECT_FALSE(limit.reschedule(1h));
  EXPECT_EQ(timer->pending_timeouts(), 0);
}

TYPED_TEST(StopAfterLimit, AStopOfTheParentStopsTheTokenAndCancelsTheDeadline) {
  const auto timer = make_timer<TypeParam>();
  for (const bool before : {false, true}) {
    std::stop_source parent;
    if (before) parent.request_stop();
    StopAfter limit(*timer, kFar, parent.get_token());
    EXPECT_EQ(timer->pending_timeouts(), before ? 0 : 1);
    parent.request_stop();
    EXPECT_EQ(timer->pending_timeouts(), 0);
    EXPECT_TRUE(limit.token().stop_requested());
    EXPECT_FALSE(limit.timed_out());
    EXPECT_FALSE(limit.reschedule(0ns));
    EXPECT_TRUE(limit.cancel());
  }
}

TYPED_TEST(StopAfterLimit, ARepeatedCancelReturnsTrueAndTheParentStaysLinked) {
  const auto timer = make_timer<TypeParam>();
  std::stop_source parent;
  StopAfter limit(*timer, kFar, parent.get_token());
  EXPECT_TRUE(limit.cancel());
  EXPECT_TRUE(limit.cancel());
  EXPECT_EQ(timer->pending_timeouts(), 0);
  EXPECT_FALSE(limit.token().stop_requested());
  parent.request_stop();
  EXPECT_TRUE(limit.token().stop_requested());
  EXPECT_FALSE(limit.timed_out());
  EXPECT_TRUE(limit.cancel());
}

TYPED_TEST(StopAfterLimit, TheDestructorCancelsTheDeadlineAndUnlinksTheParent) {
  const auto timer = make_timer<TypeParam>();
  std::stop_source parent;
  std::stop_token token;
  {
    const StopAfter limit(*timer, kFar, parent.get_token());
    token = limit.token();
    EXPECT_EQ(timer->pending_timeouts(), 1);
  }
  EXPECT_EQ(timer->pending_timeouts(), 0);
  parent.request_stop();
  EXPECT_FALSE(token.stop_requested());
}

TYPED_TEST(StopAfterLimit, AfterTheEndOfTheTimerTheDeadlineRequestsNothing) {
  auto timer = make_timer<TypeParam>();
  std::stop_source parent;
  std::vector<Timeout> unprocessed;
  {
    StopAfter limit(*timer, kFar, parent.get_token());
    unprocessed = timer->stop();
    ASSERT_EQ(unprocessed.size(), 1);
    unprocessed[0].task().run(unprocessed[0]);
    EXPECT_FALSE(limit.token().stop_requested());
    EXPECT_FALSE(limit.timed_out());
    EXPECT_FALSE(limit.reschedule(0ns));
    EXPECT_TRUE(limit.cancel());
    timer.reset();
    EXPECT_TRUE(limit.cancel());
    parent.request_stop();
    EXPECT_TRUE(limit.token().stop_requested());
    EXPECT_FALSE(limit.timed_out());
  }
  unprocessed[0].task().run(unprocessed[0]);  // must not use the StopAfter, which was destroyed
}

TYPED_TEST(StopAfterLimit, TheConstructorThrowsTheErrorsOfNewTimeout) {
  const auto timer = make_timer<TypeParam>({.max_pending_timeouts = 1});
  timer->new_timeout([] {}, kFar);
  EXPECT_THROW(StopAfter limit(*timer, 1s), RejectedExecution);
  EXPECT_EQ(timer->pending_timeouts(), 1);
  EXPECT_THROW(StopAfter limit(*timer, kNanDelay), std::invalid_argument);
  timer->stop();
  EXPECT_THROW(StopAfter limit(*timer, 1s), IllegalState);
}

// The destructor during a stop request, and executors.

TYPED_TEST(StopAfterLimit, MayBeDestroyedInsideItsOwnStopCallback) {
  const auto timer = make_timer<TypeParam>();
  for (const bool by_parent : {false, true}) {
    std::stop_source parent;
    std::atomic<bool> gone = false;
    auto limit = std::make_unique<StopAfter>(*timer, by_parent ? Delay(kFar) : Delay(1ms), parent.get_token());
    const std::stop_callback on_stop(limit->token(), [&] {
      limit.reset();
      gone = true;
    });
    if (by_parent) parent.request_stop();
    EXPECT_TRUE(passes_until(*timer, [&] { return gone.load(); }));
  }
  EXPECT_EQ(timer->pending_timeouts(), 0);
}

/// `request` makes another thread request the stop.
template <class Request>
void expect_destructor_to_wait_for_a_callback(std::unique_ptr<StopAfter> limit, Request request) {
  Hold hold;
  bool left = false;  // not atomic, so that ThreadSanitizer reports a destructor that did not wait
  const std::stop_callback on_stop(limit->token(), [&] {
    hold();
    left = true;
  });
  request(*limit);
  ASSERT_TRUE(hold.wait_until_entered());
  const std::jthread opener([&] {
    std::this_thread::sleep_for(5ms);
    hold.let_go();
  });
  limit.reset();
  EXPECT_TRUE(left);
}

TYPED_TEST(StopAfterLimitThreaded, TheDestructorWaitsForAStopCallbackOnTheWorker) {
  const auto timer = make_timer<TypeParam>();
  expect_destructor_to_wait_for_a_callback(std::make_unique<StopAfter>(*timer, kFar),
                                           [](StopAfter& limit) { EXPECT_TRUE(limit.reschedule(1ms)); });
}

TYPED_TEST(StopAfterLimit, TheDestructorWaitsForAStopCallbackOfTheParentOnAnotherThread) {
  const auto timer = make_timer<TypeParam>();
  std::stop_source parent;
  std::jthread requester;
  expect_destructor_to_wait_for_a_callback(
      std::make_unique<StopAfter>(*timer, kFar, parent.get_token()),
      [&](StopAfter&) { requester = std::jthread([&] { parent.request_stop(); }); });
}

TYPED_TEST(StopAfterLimitThreaded, CancelAndTheDestructorDisarmADeadlineInTheExecutorWhichMayDropIt) {
  JobQueue queue;
  const auto timer = make_timer<TypeParam>({.executor = queue.executor()});
  auto gone = std::make_unique<StopAfter>(*timer, 1ms);
  const std::stop_token token = gone->token();
  StopAfter cancelled(*timer, 1ms);
  StopAfter runs(*timer, 1ms);
  ASSERT_TRUE(queue.wait_for(3));
  gone.reset();
  EXPECT_TRUE(cancelled.cancel());
  queue.run_all();
  EXPECT_FALSE(token.stop_requested());
  EXPECT_FALSE(cancelled.token().stop_requested());
  EXPECT_TRUE(runs.timed_out());
  StopAfter dropped(*timer, 1ms);
  ASSERT_TRUE(queue.wait_for(4));
  queue.take();
  EXPECT_TRUE(timer->stop().empty());
  EXPECT_FALSE(dropped.token().stop_requested());
  EXPECT_TRUE(dropped.cancel());
}

// Races.

/// The deadline, the parent, cancel() and the destructor race. The stop is requested at most once, and timed_out(),
/// cancel() and the token agree on the reason.
template <class T>
void expect_one_reason(const Options& options, std::function<void()> run_jobs) {
  const Deadline over(HWT_TEST_SANITIZED ? 4s : 1s);
  std::minstd_rand random(7);
  const auto timer = make_timer<T>(options);
  do {
    constexpr std::size_t kLimits = 16;
    std::array<std::unique_ptr<StopAfter>, kLimits> limits;
    std::array<std::stop_source, kLimits> parents;
    std::array<std::atomic<int>, kLimits> calls{};
    std::array<std::atomic<bool>, kLimits> cancelled{};
    std::array<std::optional<std::stop_callback<std::function<void()>>>, kLimits> on_stop;
    for (std::size_t i = 0; i < kLimits; ++i) {
      const auto delay = std::chrono::microseconds(random() % 2000);
      limits[i] = std::make_unique<StopAfter>(*timer, delay, parents[i].get_token());
      on_stop[i].emplace(limits[i]->token(), [&calls, i] { ++calls[i]; });
    }
    const auto wait = std::chrono::microseconds(random() % 2000);
    run_together(4, [&](int index) {
      if (index != 3) std::this_thread::sleep_for(wait);
      for (std::size_t i = 0; i < kLimits; ++i) {
        if (index == 0 && i % 2 == 0) parents[i].request_stop();
        if (index == 1 && i % 3 == 0) cancelled[i] = limits[i]->cancel();
        if (index == 2 && i % 3 == 1) limits[i].reset();
      }
      if (index != 3) return;
      for (int i = 0; i < 4; ++i) {
        turn(*timer);
        if (run_jobs) run_jobs();
        std::this_thread::yield();
      }
    });
    for (std::size_t i = 0; i < kLimits; ++i) {
      EXPECT_LE(calls[i], 1);
      if (limits[i] == nullptr) continue;
      const bool timed_out = limits[i]->timed_out();
      if (cancelled[i]) {
        EXPECT_FALSE(timed_out);
      }
      const bool prevented = limits[i]->cancel();
      EXPECT_EQ(prevented, !limits[i]->timed_out());
      if (i % 2 == 0) {
        EXPECT_TRUE(limits[i]->token().stop_requested());
      }
      const bool last = limits[i]->timed_out();
      limits[i].reset();
      EXPECT_EQ(calls[i], i % 2 == 0 || last ? 1 : 0);
    }
    // Deadlines in an executor are disarmed without waiting for the worker, which may not have counted them yet.
    EXPECT_TRUE(none_pending(*timer));
  } while (!over.passed() && !::testing::Test::HasFailure());
}

TYPED_TEST(StopAfterLimit, HasOneReasonInEveryRace) { expect_one_reason<TypeParam>({}, nullptr); }

TYPED_TEST(StopAfterLimitThreaded, HasOneReasonInEveryRaceWithAnExecutor) {
  JobQueue queue;
  expect_one_reason<TypeParam>({.executor = queue.executor()}, [&] { run_every_second_job(queue); });
}

}  // namespace
}  // namespace hwt
