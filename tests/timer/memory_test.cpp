// The memory of a timer. Each pending timeout needs little, and all of it is given back at the end. What other threads
// or earlier timeouts needed is used again.

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

using internal::Node;

constexpr int kScale = kSanitized || kCounting ? 10 : 1;

constexpr std::int64_t kNodeBytes = 64;
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kRemembered = 16 << 10;  // by threads, of timers that are gone

/// A server may have a timer for each of its loops, and few of them may have timeouts.
TEST(Memory, OfALoopTimerWithoutTimeoutsIs16KiBAtMost) {
  const std::int64_t before = bytes_in_use;
  const LoopTimer timer;
  EXPECT_LE(bytes_in_use - before, 16 << 10);
  EXPECT_GT(bytes_in_use - before, 1 << 10) << "not counted";
}

/// A server with many loops and many threads: each thread may meet each timer, and most meet it seldom.
TEST(Memory, OfThreadsThatMeetATimerOnceIsAPageAndTwoKiBEach) {
  constexpr int kThreads = 48;
  HashedWheelTimer timer(1ms);
  timer.start();
  timer.new_timeout([] {}, kFar).cancel();
  Growth growth;
  Barrier all(kThreads);
  std::mutex one_at_a_time;  // a thread that finds another one at the shared pages takes a slab of its own
  run_together(kThreads, [&](int) {
    {
      const std::lock_guard lock(one_at_a_time);
      EXPECT_TRUE(timer.new_timeout([] {}, kFar).cancel());
    }
    all.arrive_and_wait();  // none takes the place of another one
  });
  const std::size_t page = std::max<std::size_t>(internal::Slab::page_bytes(), 4096);
  EXPECT_LE(growth.now(), static_cast<std::int64_t>(kThreads * (page + 2048)));
}

/// Threads that have many timeouts one after the other. Each uses the memory of the one before.
TEST(Memory, FollowsTheMostAliveAtOnceWhicheverThreadsHadThem) {
  constexpr int kThreads = 8;
  constexpr int kTimeouts = 300'000 / kScale;
  constexpr int kAtOnce = 10'000;
  HashedWheelTimer timer(1ms);
  const Growth growth;
  std::int64_t of_one = 0;
  StayingThreads threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.call([&] {
      std::vector<Timeout> timeouts;
      timeouts.reserve(kTimeouts);
      // Not all at once: a queue keeps the memory of its longest backlog, and this one is about the timeouts.
      while (timeouts.size() < kTimeouts) {
        timeouts.push_back(timer.new_timeout([] {}, kFar));
        if (timeouts.size() % kAtOnce == 0) await_transfer(timer);
      }
      while (!timeouts.empty()) {
        EXPECT_TRUE(timeouts.back().cancel());
        timeouts.pop_back();
        if (timeouts.size() % kAtOnce == 0) await_transfer(timer);  // they are collected
      }
    });
    if (i == 0) of_one = growth.now();
  }
  EXPECT_GE(of_one, kTimeouts * kNodeBytes);
  // Each thread's pool keeps some thousands.
  EXPECT_LT(growth.now(), of_one + kThreads * 3 * kMiB / 2);
  static_assert(kScale != 1 || 2 * kTimeouts * kNodeBytes > 3 * kThreads * kMiB / 2, "or each could keep its own");
}

/// The nodes of the first burst are new, so the thread has never freed any.
TEST(Memory, OfTheFirstBurstOfAThreadGoesToAllThreads) {
  constexpr std::size_t kTimeouts = 1000;
  ManualTimer timer(1ms);
  std::vector<Timeout> handles = far_timeouts(timer, kTimeouts);
  internal::Depot& depot = Node::of(handles.front())->core().depot();
  for (Timeout& handle : handles) {
    EXPECT_TRUE(handle.cancel());
    if (&handle != &handles.front()) handle = Timeout();  // one keeps the core
  }
  EXPECT_GE(depot.free_nodes(), kTimeouts * 9 / 10);
}

/// Threads that stay, and do nothing after a burst of timeouts. No worker cleans up behind them.
class AfterABurst : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kThreads = 300;

  /// Makes so many free nodes that no thread needs a slab of its own: for one burst, and 64 for each thread, because up
  /// to 63 stay with it.
  void SetUp() override {
    std::vector<Timeout> handles = far_timeouts(timer, timeouts + kThreads * 64);
    cancel_all(handles);
  }

  void expect_little(const std::function<void()>& burst) {
    constexpr std::int64_t kLittle = std::int64_t{16} << 10;
    StayingThreads threads;
    const Growth growth;
    for (int i = 0; i < kThreads; ++i) threads.call(burst);
    EXPECT_LT(growth.now(), kThreads * kLittle);
  }

  const std::size_t timeouts = static_cast<std::size_t>(GetParam());
  ManualTimer timer{1ms};
};

INSTANTIATE_TEST_SUITE_P(Timeouts, AfterABurst,
                         ::testing::ValuesIn(kSanitized ? std::vector{500, 2000} : std::vector{500, 2000, 5000}),
                         [](const auto& info) { return std::to_string(info.param); });

/// The thread that has scheduled the timeouts drops the entries of those that the other thread has cancelled, and gets
/// their nodes.
TEST_P(AfterABurst, OfWhichAnotherThreadEndsSomeAThreadKeepsLittle) {
  expect_little([&] {
    std::vector<Timeout> handles = far_timeouts(timer, timeouts);
    std::jthread([&] {
      for (std::size_t i = 0; i < timeouts; i += 10) EXPECT_TRUE(handles[i].cancel());
    }).join();
    for (Timeout& handle : handles) handle.cancel();
  });
}

TEST_P(AfterABurst, OfIdsAThreadKeepsLittle) {
  expect_little([&] {
    for (const TimeoutId id : far_ids(timer, timeouts)) EXPECT_EQ(timer.cancel(id), CancelResult::Cancelled);
  });
}

template <class T>
class MemoryOf : public ::testing::Test {};
TYPED_TEST_SUITE(MemoryOf, ThreadedTimers, TimerNames);

/// Each pending timeout costs its node of one cache line and its entry in the wheel.
TYPED_TEST(MemoryOf, PendingTimeoutsIsLittleMoreThanTheirNodes) {
  constexpr bool kHashed = std::is_same_v<TypeParam, HashedWheelTimer>;
  // Nodes come in regions that grow to 4 MiB: a number that leaves little of the last one unused.
  constexpr int kTimeouts = kHashed ? (kScale == 1 ? 1'000'000 : 125'000) : 500'000 / kScale;
  TypeParam timer(1ms);
  std::atomic<std::int64_t> sum = 0;
  timer.new_timeout([] {}, 0ns);
  Growth growth;
  for (int i = 0; i < kTimeouts; ++i) {
    const std::int64_t captured = i;
    const auto far = kHashed ? captured * 1us : captured * 7919 % 600'000 * std::chrono::microseconds(1ms);
    timer.new_timeout([&sum, captured] { sum += captured; }, kFar + far);
    // The queue keeps the memory of its longest backlog; this one is about the timeouts.
    if (i % 1000 == 0) await_transfer(timer);
  }
  await_transfer(timer);
  EXPECT_GE(timer.pending_timeouts(), kTimeouts);
  EXPECT_LE(growth.most(), kHashed ? 76 * std::int64_t{kTimeouts} : 72 * std::int64_t{kTimeouts} + kMiB);
  EXPECT_GE(growth.now(), kNodeBytes * kTimeouts) << "the memory has not been counted";
  EXPECT_EQ(sum, 0);
}

/// Without handles the timer takes all its memory with it; the rest goes with the last handle.
TEST(Memory, IsGivenBackWithTheTimerAndItsHandles) {
  constexpr int kTimeouts = 50'000;
  std::vector<Timeout> handles;
  handles.reserve(kTimeouts);
  const std::int64_t before = bytes_in_use;
  for (int round = 0; round < 5; ++round) {
    const bool keep_handles = round % 2 == 1;
    {
      HashedWheelTimer timer(1ms);
      run_together(2, [&](int thread) {
        for (int i = 0; i < kTimeouts; ++i) {
          Timeout timeout = timer.new_timeout([] {}, i % 2 == 0 ? 0ns : std::chrono::nanoseconds(kFar));
          if (i % 3 == 0) timeout.cancel();
          if (keep_handles && thread == 0) handles.push_back(std::move(timeout));
        }
      });
      EXPECT_GE(bytes_in_use - before, kTimeouts / 4 * kNodeBytes);
    }
    if (keep_handles) {
      while (handles.size() > 1) handles.pop_back();
      EXPECT_FALSE(handles.front().cancel());  // it may still be used
      EXPECT_EQ(handles.front().timer(), nullptr);
      EXPECT_GE(bytes_in_use - before, kNodeBytes);
      handles.clear();
    }
    EXPECT_LE(bytes_in_use - before, kRemembered) << "in round " << round;
  }
}

TEST(Memory, OfTasksThatAreWatchedOrHandedOverIsUsedAgain) {
  const Options watched{.tick_duration = 1ms, .slow_task = 1h};
  const Options handed_over{.tick_duration = 1ms, .executor = [](const std::function<void()>& job) { job(); }};
  for (const Options& options : {watched, handed_over}) {
    const Growth in_all;
    {
      ManualTimer timer(options);
      for (int round = 0; round < 100; ++round) {
        for (int i = 0; i < 1000; ++i) timer.new_timeout([] {}, 0ns);
        EXPECT_EQ(timer.advance(1ms), 1000U);
      }
      EXPECT_LT(in_all.now(), kMiB);
    }
    EXPECT_LE(in_all.now(), kRemembered);
  }
}

// The node of an ended timeout is used again, or goes with its timer, whichever thread ended it and how.

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
}  // namespace hwt::test
