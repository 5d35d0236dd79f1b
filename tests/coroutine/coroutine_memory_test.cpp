// A sleep allocates nothing beyond its timeout. If an allocation of the timer fails, co_await throws std::bad_alloc.

#include "hashed_wheel_timer/coroutine.h"
#include "tests/coroutine/coroutine_support.h"
#include "tests/support/allocation_hook.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

Detached sleep_and_count(Timer& timer, std::stop_token stop, int& rounds) {
  for (Wake wake = Wake::Expired; wake == Wake::Expired; ++rounds) wake = co_await sleep_for(timer, 1ms, stop);
}

TEST(SleepingMemory, ASleepAllocatesNothingBeyondItsTimeout) {
  for (const bool stoppable : {false, true}) {
    SCOPED_TRACE(stoppable ? "with a stop token" : "without a stop token");
    int rounds = 0;
    std::stop_source stop;
    ManualTimer timer;
    sleep_and_count(timer, stoppable ? stop.get_token() : std::stop_token(), rounds);
    timer.advance(100ms);  // the first timeouts of a thread allocate its pool, and room for some hundred entries
    const int before = rounds;
    int allocations = 0;
    {
      const AllocationObserver observer([&](std::size_t) { ++allocations; });
      timer.advance(100ms);
    }
    EXPECT_EQ(rounds, before + 100);
    EXPECT_EQ(allocations, 0);
  }
}

enum class End { None, BadAlloc, Stopped };

/// Sleeps once it is resumed with `begin` set. So its frame is allocated before allocations fail. `sleep` outlives the
/// failed co_await, so that a later stop request would find a stop callback that was left behind.
Owned sleep_far(Timer& timer, std::stop_token stop, const bool& begin, int& ends, End& end) {
  while (!begin) co_await std::suspend_always();
  Sleep sleep = sleep_for(timer, kFar, std::move(stop));
  try {
    const Wake wake = co_await sleep;
    if (wake == Wake::Stopped) end = End::Stopped;
  } catch (const std::bad_alloc&) {
    end = End::BadAlloc;
  }
  ++ends;
  co_await std::suspend_always();
}

TEST(SleepingMemory, CoAwaitThrowsIfAnyAllocationFailsAndLeavesNothingPending) {
  int refused = 0;
  for_each_allocation([&](std::int64_t n) {
    bool begin = false;
    int ends = 0;
    End end = End::None;
    std::stop_source stop;
    HashedWheelTimer timer(1ms);
    Owned frame = sleep_far(timer, stop.get_token(), begin, ends, end);
    begin = true;
    Shortage shortage(n, 1);
    frame.resume();
    shortage.end();
    EXPECT_EQ(timer.pending_timeouts(), end == End::None ? 1 : 0);
    stop.request_stop();
    EXPECT_EQ(ends, 1);
    EXPECT_NE(end, End::None);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    if (end == End::BadAlloc) ++refused;
    timer.new_timeout([] {}, kFar);  // in the node of the refused one
    frame.destroy();
    EXPECT_EQ(timer.pending_timeouts(), 1) << "the end of the Sleep leaves it alone";
    return shortage.failed() != 0;
  });
  EXPECT_GE(refused, 6);  // the start of a timer and its first timeout make at least six allocations
}

}  // namespace
}  // namespace hwt
