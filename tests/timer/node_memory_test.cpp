// The node of an ended timeout is used again (promise 7), or goes with its timer, whichever thread ended it and how.

#include <cstdint>
#include <functional>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using internal::Node;

constexpr int kScale = kSanitized || kCounting ? 10 : 1;
/// Bytes that a thread may keep of destroyed timers. A timer that leaked would keep its slab, which is 64 KiB.
constexpr std::int64_t kLittle = 16 << 10;

/// Each task of a tick schedules the next one, with the node of a task that ran before it in this tick.
TEST(NodeMemory, PeriodicTasksOfOneTickNeedOneNodeEach) {
  ManualTimer timer(1ms);
  const std::function<void()> task = [&] { timer.add([&] { task(); }, 1s); };
  const Growth growth;
  for (int i = 0; i < 100'000 / kScale; ++i) task();
  const std::int64_t scheduled = growth.now();
  for (int round = 0; round < 3; ++round) timer.advance(1s);
  EXPECT_LT(growth.now(), scheduled * 5 / 4);
}

/// The other thread frees the nodes one by one.
TEST(NodeMemory, IsBoundedIfAnotherThreadDropsTheLastHandles) {
  constexpr int kAtOnce = 1000;
  ManualTimer timer(1ms);
  const auto round = [&] {
    std::vector<Timeout> timeouts;
    while (timeouts.size() != kAtOnce) timeouts.push_back(timer.new_timeout([] {}, 0ns));
    timer.advance(1ms);
    std::jthread([&] { timeouts.clear(); }).join();
  };
  for (int i = 0; i < 10; ++i) round();
  Growth growth;
  for (int i = 0; i < 200; ++i) {
    round();
    growth.look();
  }
  EXPECT_LT(growth.most(), 128 << 10);
}

TEST(NodeMemory, IsUsedAgainIfAThreadCancelsByIdAfterItHasUsedAnotherTimer) {
  const Growth growth;
  {
    ManualTimer timer(1ms);
    ManualTimer other(1ms);
    for (int i = 0; i < 200'000 / kScale; ++i) {
      const TimeoutId id = timer.add([] {}, kFar);
      other.new_timeout([] {}, kFar).cancel();
      ASSERT_EQ(timer.cancel(id), CancelResult::Cancelled);
    }
    EXPECT_LT(growth.now(), 1 << 20);
  }
  EXPECT_LE(growth.now(), kLittle);
}

/// A node whose generations are used up is out of use, and goes with its timer, or with the last handle.
TEST(NodeMemory, OfTheLastGenerationGoesWithItsTimer) {
  for (const bool with_handle : {false, true}) {
    const Growth growth;
    Timeout handle;
    {
      ManualTimer timer(1ms);
      const TimeoutId id = timer.add([] {}, kFar);
      timer.advance(1ms);
      handle = timer.find(id);
      Node& node = *Node::of(handle);
      constexpr std::uint64_t kLast = std::uint64_t{Node::kLastGeneration} << Node::kGenerationShift;
      node.word = node.word % Node::kGeneration + kLast;  // in the wheel no entry names its generation
      EXPECT_TRUE(handle.cancel());
      if (!with_handle) handle = Timeout();
      timer.advance(1ms);
      EXPECT_GT(growth.now(), kLittle);
    }
    handle = Timeout();
    EXPECT_LE(growth.now(), kLittle) << (with_handle ? "with a handle" : "without a handle");
  }
}

/// A thread with a stale id may be about to read a slab that it has found by its number.
TEST(NodeMemory, OfASlabWithANumberStaysUntilTheTimerEnds) {
  ManualTimer timer({.tick_duration = 1ms, .trace_origins = true});
  std::vector<Timeout> timeouts{timer.new_timeout([] {}, kFar)};
  const std::uint64_t core = Node::of(timeouts.front())->core().id();
  const auto slabs = [core] {
    int found = 0;
    internal::SlabDirectory::for_each_traced(core, [&](const auto&) { ++found; });
    return found;
  };
  for (int before = slabs(); before < 8; before = slabs()) {
    const AllocationObserver observer(
        [&](std::size_t) { EXPECT_EQ(slabs(), before) << "an allocation that could still fail"; });
    timeouts.push_back(timer.new_timeout([] {}, kFar));
  }
}

TEST(NodeMemory, ManyPoolsShareWhatTheyKeepForTheirThreads) {
  constexpr int kPools = 64;
  ManualTimer timer(1ms);
  const Timeout first = timer.new_timeout([] {}, kFar);
  const internal::Depot& depot = Node::of(first)->core().depot();
  EXPECT_EQ(depot.share(4096), 4096);
  Barrier all(kPools - 1);
  run_together(kPools - 1, [&](int) {
    timer.new_timeout([] {}, kFar);
    all.arrive_and_wait();  // none takes the place of another one
  });
  EXPECT_EQ(depot.share(4096), 1024);
  EXPECT_EQ(depot.share(1), 1);
}

}  // namespace
}  // namespace hwt
