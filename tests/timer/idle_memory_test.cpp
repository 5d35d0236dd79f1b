// When a timer looks for memory that no timeout needs. The memory of a peak goes back to the system (promise 7) even if
// the timer is never idle. The worker of an idle timer sleeps (promise 11).

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"
#include "tests/support/worker_call.h"
#include "tests/timer/after_a_peak.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using internal::Core;
using internal::Depot;
using internal::Node;

/// A wheel in which no bucket comes up again while a test runs.
constexpr std::int64_t kLargeWheel = 1 << 17;

/// Each pass over the inbox may take a step of the Collector, which must not begin anew each time.
TEST_F(AfterAPeak, ABusyTimerGivesMemoryBackToo) {
  HastyTimer timer(500ms);
  std::vector<Timeout> timeouts = schedule(timer, 40'000);
  Core& core = Node::of(timeouts[0])->core();
  cancel(timeouts);
  EXPECT_TRUE(eventually([&] {
    call_worker(core);
    std::this_thread::sleep_for(5ms);
    return slabs_.resident_pages() <= little();
  }));
}

/// The first collection gave nothing back. Then half of the nodes are used and freed again while the worker sleeps.
/// Only the freed nodes can wake it.
TEST_F(AfterAPeak, MemoryThatWasUsedSinceGoesInAnIdleTimer) {
  constexpr int kLarge = 100'000;
  HastyTimer timer(10ms, kLargeWheel);
  std::vector<Timeout> all = schedule(timer, kLarge);
  Core& core = Node::of(all[0])->core();
  // Handles of cancelled timeouts keep nodes without any work for the worker.
  for (Timeout& timeout : all) EXPECT_TRUE(timeout.cancel());
  std::vector<Timeout> kept;
  for (std::size_t i = 0; i < all.size(); i += 32) kept.push_back(all[i]);
  all.clear();
  await_sleep(timer, 100ms);
  ASSERT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);

  std::vector<Timeout> used = schedule(timer, kLarge / 2);
  for (Timeout& timeout : used) EXPECT_TRUE(timeout.cancel());
  call_worker(core);
  await_sleep(timer, 100ms);
  std::jthread([&] { kept.clear(); }).join();  // on another thread, because this thread's pool would keep them
  used.resize(kLarge / 10);
  EXPECT_TRUE(falls_to(slabs_.pages() / 2));
}

TEST_F(AfterAPeak, TheWorkerSleepsUntilItIsTimeToLook) {
  HastyTimer timer(1h);
  std::vector<Timeout> timeouts = schedule(timer, 40'000);
  cancel(timeouts);
  await_sleep(timer, 100ms);
}

TEST_F(AfterAPeak, TheWorkerSleepsIfTheMemoryWasInUseWhenItLooked) {
  HastyTimer timer(500ms, kLargeWheel);
  std::vector<Timeout> timeouts = schedule(timer, 40'000);
  cancel(timeouts);
  await_sleep(timer, 100ms);
  timeouts = schedule(timer, 40'000);
  await_transfer(timer);
  await_sleep(timer, 600ms);  // it looks meanwhile
}

/// A call of advance() makes at most 8 steps of a collection, so it takes only some milliseconds longer.
class AfterAPeakInSteps : public AfterAPeak {
 protected:
  /// `most`: by how many nodes a step may exceed its 2,048, because it takes whole batches.
  void expect_small_steps(ManualTimer& timer, const Depot& depot, std::int64_t most) {
    std::int64_t collected = 0;
    std::size_t resident = slabs_.resident_pages();
    for (int i = 0; i != 120; ++i) {
      timer.advance(200ms);
      EXPECT_LE(depot.collected - std::exchange(collected, depot.collected), 8 * (2048 + most));
      const std::size_t before = std::exchange(resident, slabs_.resident_pages());
      // A step gives back at most 8 slabs.
      EXPECT_LE(before, resident + 8 * 8 * internal::Slab::kMaxPages) << "in call " << i;
    }
    EXPECT_LE(resident, little());
  }
};

TEST_F(AfterAPeakInSteps, OfOneThread) {
  ManualTimer timer(1ms);
  std::vector<Timeout> timeouts = schedule(timer, 300'000);
  const Depot& depot = Node::of(timeouts[0])->core().depot();
  cancel(timeouts);
  expect_small_steps(timer, depot, 256);
}

/// The nodes of pools whose threads do nothing more.
TEST_F(AfterAPeakInSteps, OfManyThreads) {
  constexpr int kThreads = 20;
  constexpr int kEach = 10'000;
  ManualTimer timer(1ms);
  const Timeout first = schedule(timer, 1)[0];
  Barrier all_have_scheduled(kThreads);
  std::mutex mutex;
  run_together(kThreads, [&](int) {
    {
      const std::lock_guard lock(mutex);
      schedule(timer, kEach, 0ns);
    }
    all_have_scheduled.arrive_and_wait();  // none takes the place of another one
  });
  timer.advance(1ms);
  ASSERT_EQ(ran_, kThreads * kEach);
  expect_small_steps(timer, Node::of(first)->core().depot(), 4096 + 256);
}

/// The Collector holds a third of the nodes and all free runs. Then a thread schedules as many timeouts as nodes are
/// left, or more.
class AfterAPeakInUse : public AfterAPeak, public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(AfterAPeak, AfterAPeakInUse, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "NeedsMoreThanIsLeft" : "UsesAllThatIsLeft"; });

/// There is memory to give back, and none for the wheel.
TEST(WithoutMemoryForTheWheel, TheWorkerSleepsBetweenItsTries) {
  constexpr int kAlive = 200'000;
  HastyTimer timer(100ms);
  Shortage shortage(0, Shortage::kAll, Shortage::Of::OtherThreads);
  std::vector<TimeoutId> ids;
  for (int i = 0; i < kAlive; ++i) ids.push_back(timer.add(must_not_run, kFar));
  ASSERT_TRUE(eventually([&] { return shortage.failed() >= 3; }));
  for (int i = kAlive - 60'000; i < kAlive; ++i) timer.cancel(ids[static_cast<std::size_t>(i)]);
  std::this_thread::sleep_for(300ms);  // the Collector looks
  const std::int64_t before = timer.stats().wakeups;
  std::this_thread::sleep_for(200ms);
  EXPECT_GT(timer.stats().wakeups, before + 5);
  shortage.end();
}

TEST_P(AfterAPeakInUse, GoesAfterTheNextLook) {
  const std::int64_t at_first = bytes_in_use;
  {
    ManualTimer timer(1ms);
    std::vector<Timeout> timeouts = schedule(timer, 100'000);
    Depot& depot = Node::of(timeouts[0])->core().depot();
    cancel(timeouts);
    pass_seconds(timer, 60);
    ASSERT_LE(slabs_.resident_pages(), little());

    timeouts = schedule(timer, 40'000);
    cancel(timeouts);
    timer.advance(200ms);  // begins to watch
    timer.advance(13s);    // collects a third
    ASSERT_LE(depot.free_nodes(), 30'000U);
    while ((GetParam() ? !depot.has_shortage() : depot.free_nodes() != 0) && timeouts.size() < 300'000) {
      timeouts.push_back(timer.new_timeout([] {}, kFar));
    }
    ASSERT_LT(timeouts.size(), 300'000U) << "no shortage was noted";
    timer.advance(1ms);
    cancel(timeouts);
    pass_seconds(timer, 60);
    EXPECT_LE(slabs_.resident_pages(), little());
  }
  EXPECT_LE(bytes_in_use - at_first, 64 << 10);
}

}  // namespace
}  // namespace hwt
