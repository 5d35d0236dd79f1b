// Single steps that lack memory, besides those of allocation_test: a batch, an id, a loop, a canceller and the number
// of a slab.

#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

TEST(WithoutMemory, ATaskThatNoBatchCanTakeRunsOnTheWorkerOnce) {
  std::vector<std::function<void()>> posted;
  posted.reserve(1);
  ErrorLog errors;
  const BatchExecutor loop{[&](std::function<void()> batch) { posted.push_back(std::move(batch)); }};
  ManualTimer timer(Options{.tick_duration = 1ms, .on_task_error = errors.handler()});
  for (int i = 0; i < 2; ++i) timer.new_timeout([] {}, 0ns);
  timer.advance(1ms);  // the wheel has memory now, also for one more level
  std::size_t on_the_worker = 0;
  for_each_allocation([&](std::int64_t n) {
    int ran = 0;
    timer.new_timeout(hwt::on(loop, [&] { ++ran; }), 0ns);
    Shortage shortage(n, 1);
    timer.advance(1ms);
    shortage.end();
    on_the_worker += posted.empty() ? 1 : 0;
    for (const auto& batch : posted) batch();
    posted.clear();
    EXPECT_EQ(ran, 1);
    return shortage.failed() != 0;
  });
  EXPECT_GE(on_the_worker, 2u) << "without a job, and without a batch";
  EXPECT_EQ(errors.errors().size(), on_the_worker);
}

/// On its way down the timeout needs memory in the wheel, and there is none. The wheel must not go through all ticks
/// before its own, because an hour has 3.6e12 of them.
TEST(WithoutMemory, TimePassesByHoursWithTicksOfANanosecond) {
  ManualTimer timer(1ns);
  int ran = 0;
  timer.new_timeout([&] { ++ran; }, 1h);
  timer.advance(1ns);  // takes it into the wheel
  {
    const Shortage shortage(0, Shortage::kAll);
    timer.advance(1h - 2ns);
    EXPECT_EQ(ran, 0);
    timer.advance(1ns);
    EXPECT_EQ(ran, 1);
    EXPECT_GT(shortage.failed(), 0) << "nothing lacked memory";
  }
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(WithoutMemory, AnIdThatCannotBeQueuedIsRefusedAndItsNodeIsUsedAgain) {
  constexpr int kMost = 500;  // fewer than the nodes of a slab
  ManualTimer timer;
  int added = 1;
  timer.add([] {}, kFar);
  {
    const Shortage shortage(0, Shortage::kAll);
    EXPECT_THROW(
        {
          for (; added < kMost; ++added) timer.add([] {}, kFar);
        },
        std::bad_alloc);
    for (int i = 0; i < 2'000; ++i) EXPECT_FALSE(timer.try_add([] {}, kFar));
  }
  EXPECT_TRUE(is_balanced(timer.stats(), added));
  const std::int64_t before = bytes_in_use;
  for (; added < kMost; ++added) timer.add([] {}, kFar);
  EXPECT_LT(bytes_in_use - before, std::int64_t{internal::Slab::kBytes});
  EXPECT_EQ(timer.stop().size(), static_cast<std::size_t>(added));
}

TEST(WithoutMemory, ThoseThatAreCancelledMakeRoomForNewOnes) {
  ManualTimer timer;
  std::vector<TimeoutId> ids;
  for (int i = 0; i < 256; ++i) ids.push_back(timer.add([] {}, kFar));
  const Shortage shortage(0, Shortage::kAll);
  EXPECT_FALSE(timer.try_add([] {}, kFar));
  for (const TimeoutId id : ids) timer.cancel(id);
  EXPECT_TRUE(timer.try_add([] {}, kFar));
}

TEST(WithoutMemory, ALoopIsToComeBackAtOnceForTasksThatAreLeft) {
  int ran = 0;
  LoopTimer timer(1ms);
  const auto add = [&](int count, auto task) {
    const auto deadline = steady_clock::now();
    for (int i = 0; i < count; ++i) timer.new_timeout(task, deadline);
    ASSERT_TRUE(eventually([&] { return steady_clock::now() > deadline + 2ms; }));
  };
  add(3, [&] { ++ran; });
  timer.run_due(1);
  add(10'000, [] {});  // more than the wheel has memory for
  const Shortage shortage(0, Shortage::kAll);
  const auto next = timer.run_due(1);
  EXPECT_GT(shortage.failed(), 0);
  EXPECT_EQ(ran, 2);
  ASSERT_TRUE(next);
  EXPECT_LE(*next, steady_clock::now());
}

TEST(WithoutMemory, ALoopIsToComeBackWithinAMillisecond) {
  bool ran = false;
  LoopTimer timer(1ms);
  const auto deadline = steady_clock::now();
  timer.new_timeout([&] { ran = true; }, deadline);
  ASSERT_TRUE(eventually([&] { return steady_clock::now() > deadline + 2ms; }));
  std::optional<steady_clock::time_point> next;
  const auto before = steady_clock::now();
  {
    const Shortage shortage(0, Shortage::kAll);
    next = timer.run_due();
  }
  EXPECT_FALSE(ran);
  ASSERT_TRUE(next);
  EXPECT_GE(*next, before + 1ms) << "a loop would not sleep";
  EXPECT_LE(*next, steady_clock::now() + 1ms);
  EXPECT_TRUE(eventually([&] {
    timer.run_due();
    return ran;
  }));
  EXPECT_EQ(timer.run_due(), std::nullopt);
}

TEST(WithoutMemory, AThreadThatHasUsedNoTimerCancels) {
  for (const bool in_wheel : {false, true}) {
    int calls = 0;
    ManualTimer timer(1ms);
    timer.on_earlier([&] { ++calls; });
    Timeout timeout = timer.new_timeout(must_not_run, 10ms);
    if (in_wheel) timer.next_wakeup();
    calls = 0;
    std::thread([&] {
      const Shortage shortage(0, Shortage::kAll);
      EXPECT_TRUE(timeout.cancel());
    }).join();
    EXPECT_EQ(calls, in_wheel ? 1 : 0) << "only the driver can take it out of the wheel";
    EXPECT_EQ(timer.stats().cancelled, 1);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    timer.advance(1ms);
    EXPECT_EQ(timer.next_wakeup(), std::nullopt);
    timer.advance(10ms);
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
}

/// Each slab has a number in this process. The table of numbers grows by 1,024 entries at a time, and so many timeouts
/// need more than 1,024 slabs.
TEST(WithoutMemory, ForTheNumberOfASlabATimeoutIsRefusedAndTheNextIsNot) {
  constexpr int kTimeouts = 1'100'000;
  constexpr std::size_t kNumbers = 1024 * sizeof(internal::SlabDirectory::Entry);
  int refused = 0;
  int failed = 0;
  ManualTimer timer;
  for (int i = 0; i < kTimeouts; ++i) {
    std::optional<Shortage> shortage;
    const AllocationObserver observer([&](std::size_t size) {
      if (size == kNumbers && failed == 0) shortage.emplace(0, 1);
    });
    if (!timer.try_new_timeout([] {}, kFar)) ++refused;
    if (shortage) failed += static_cast<int>(shortage->failed());
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(timer.pending_timeouts(), kTimeouts - 1);
}

}  // namespace
}  // namespace hwt
