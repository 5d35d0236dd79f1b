// Withdrawn timeouts: their own thread cancels them before the worker has seen them. The node is free at once, although
// an entry of the queue still names it.

#include <array>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

constexpr int kSlower = kSanitized || kCounting ? 10 : 1;

/// Which node it is: handles of the same node are equal, and hash as one.
std::size_t node_of(const Timeout& timeout) { return std::hash<Timeout>()(timeout); }

/// Schedules and cancels `count` timeouts whose nodes are then used again. Their entries stay in the inbox while the
/// worker is held.
void withdraw_some(Timer& timer, int count, std::chrono::nanoseconds delay = kFar) {
  for (int i = 0; i < count; ++i) {
    Timeout timeout = timer.new_timeout([] { ADD_FAILURE() << "ran although it was cancelled"; }, delay);
    EXPECT_TRUE(timeout.cancel());
  }
}

TEST(Withdraw, FreesTheNodeAtOnce) {
  const auto witness = std::make_shared<int>();
  HashedWheelTimer other(1ms);
  for (const std::int64_t limit : {-1, 10}) {
    HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = limit}};
    const Gate gate(timer);
    std::set<std::size_t> nodes;
    for (int i = 0; i < 1000; ++i) {
      // Every second callable has a destructor, and the thread uses another timer meanwhile every third time.
      Timeout timeout = i % 2 == 0 ? timer.new_timeout([] {}, kFar) : timer.new_timeout([witness] {}, kFar);
      nodes.insert(node_of(timeout));
      if (i % 3 == 0) withdraw_some(other, 1);
      EXPECT_TRUE(timeout.cancel());
      timeout = {};
      const TimeoutId id = i % 2 == 0 ? timer.add([] {}, kFar) : timer.add([witness] {}, kFar);
      nodes.insert(node_of(timer.find(id)));
      if (i % 3 == 0) withdraw_some(other, 1);
      EXPECT_EQ(timer.cancel(id), CancelResult::Cancelled);
    }
    EXPECT_EQ(nodes.size(), 1u) << "with a limit of " << limit;
  }
}

TEST(Withdraw, AHandleKeepsTheNodeFromBeingUsedAgain) {
  HashedWheelTimer timer(1ms);
  const Gate gate(timer);
  Timeout kept = timer.new_timeout([] {}, kFar);
  const Timeout copy = kept;
  const auto deadline = kept.deadline();
  EXPECT_TRUE(kept.cancel());
  kept = {};
  std::vector<Timeout> others;
  for (int i = 0; i < 1000; ++i) {
    others.push_back(timer.new_timeout([] {}, 2 * kFar));
    EXPECT_NE(others.back(), copy);
    EXPECT_EQ(i % 2 == 0 && others.back().cancel(), i % 2 == 0);
    withdraw_some(timer, 1);
  }
  EXPECT_TRUE(copy.is_cancelled());
  EXPECT_FALSE(copy.is_expired());
  EXPECT_EQ(copy.deadline(), deadline);
  EXPECT_EQ(copy.timer(), &timer);
  EXPECT_FALSE(Timeout(copy).cancel());
  EXPECT_FALSE(Timeout(copy).reschedule(1ms));
  for (std::size_t i = 0; i < others.size(); ++i) EXPECT_EQ(others[i].is_cancelled(), i % 2 == 0);
}

/// What one thread schedules with non-decreasing deadlines runs in that order.
TEST(Withdraw, TheOrderHoldsWithNodesThatAreUsedAgain) {
  constexpr int kTimeouts = 20'000 / kSlower;
  std::vector<int> order;
  order.reserve(kTimeouts);
  Latch ran(kTimeouts);
  HashedWheelTimer timer(1ms, 64);
  {
    const Gate gate(timer);
    std::minstd_rand random(1);
    for (int i = 0; i < kTimeouts; ++i) {
      withdraw_some(timer, static_cast<int>(random() % 4), (random() % 10) * 1ms);
      const auto run = [&order, &ran, i] {
        order.push_back(i);
        ran.count_down();
      };
      timer.new_timeout(run, i * 30ms / kTimeouts);
    }
  }
  ASSERT_TRUE(ran.wait());
  for (int i = 0; i < kTimeouts; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// The withdrawn timeout's entry comes first in the queue, but the new timeout in its node has a place of its own: it
/// runs after those between.
TEST(Withdraw, TheNewTimeoutTakesItsOwnPlaceInTheQueue) {
  std::vector<int> order;
  Latch ran(3);
  HashedWheelTimer timer(1ms);
  {
    const Gate gate(timer);
    Timeout first = timer.new_timeout([] {}, 0ns);
    const std::size_t node = node_of(first);
    const auto run = [&](int i) {
      return [&order, &ran, i] {
        order.push_back(i);
        ran.count_down();
      };
    };
    timer.new_timeout(run(1), 0ns);
    timer.new_timeout(run(2), 0ns);
    EXPECT_TRUE(first.cancel());
    first = {};
    const Timeout again = timer.new_timeout(run(3), 0ns);
    EXPECT_EQ(node_of(again), node) << "it was to be the same node";
  }
  ASSERT_TRUE(ran.wait());
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Withdraw, TheCallableIsDestroyedInsideCancel) {
  const auto witness = std::make_shared<int>();
  HashedWheelTimer timer(1ms);
  const Gate gate(timer);
  Timeout small = timer.new_timeout([witness] {}, kFar);
  Timeout large = timer.new_timeout([witness, pad = std::array<char, 100>{}] { (void)pad; }, kFar);
  EXPECT_EQ(witness.use_count(), 3);
  EXPECT_TRUE(small.cancel());
  EXPECT_EQ(witness.use_count(), 2);
  EXPECT_TRUE(large.cancel());
  EXPECT_EQ(witness.use_count(), 1);
}

/// The callable may own the handle through which it is cancelled, and its destructor may use the timer.
TEST(Withdraw, TheCallableMayOwnItsHandle) {
  HashedWheelTimer timer(1ms);
  const Gate gate(timer);
  for (int i = 0; i < 100; ++i) {
    struct Owner {
      explicit Owner(HashedWheelTimer& t) : timer(t) {}
      ~Owner() { withdraw_some(timer, 2); }
      HashedWheelTimer& timer;
      Timeout self;
    };
    auto owner = std::make_shared<Owner>(timer);
    Owner& reference = *owner;
    reference.self = timer.new_timeout([owned = std::move(owner)] {}, kFar);
    EXPECT_TRUE(reference.self.cancel());
  }
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// Neither nodes nor entries pile up. The needed memory depends on the pending timeouts, not on earlier ones, however
/// long the worker is busy.
TEST(Withdraw, NothingPilesUpBehindABusyWorker) {
  constexpr int kFlood = 2'000'000 / kSlower;
  HashedWheelTimer timer(1ms);
  const Gate gate(timer);
  withdraw_some(timer, 1);
  const std::int64_t before = bytes_in_use;
  withdraw_some(timer, kFlood);
  EXPECT_EQ(timer.stats().cancelled, kFlood + 1);
  EXPECT_LT(timer.stats().backlog, 4096);
  EXPECT_LT(bytes_in_use - before, 128 << 10);
}

/// A thread checks after each 64 nodes that it frees whether its pool keeps too many. The last handle may free the
/// 64th node.
TEST(Withdraw, ALastHandleThatOutlivesTheTimerLeavesNothingBehind) {
  const auto drop = [](std::size_t before_the_timer) {
    auto timer = std::make_unique<ManualTimer>();
    std::vector<Timeout> handles;
    while (handles.size() <= before_the_timer) handles.push_back(timer->new_timeout([] {}, kFar));
    for (Timeout& handle : handles) EXPECT_TRUE(handle.cancel());
    handles.resize(1);
    timer.reset();
  };
  drop(0);
  const std::int64_t before = bytes_in_use;
  for (std::size_t count = 60; count < 70; ++count) drop(count);
  EXPECT_LT(bytes_in_use, before + 5000) << "less than a core";
}

TEST(Withdraw, GivesThePlaceUnderTheLimitBackAtOnce) {
  HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 2}};
  const Gate gate(timer);
  const Timeout other = timer.new_timeout([] {}, kFar);
  withdraw_some(timer, 1000);
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_EQ(timer.stats().rejected, 0);
}

/// On another thread it is not withdrawn, but cancelled all the same: in the queue, in the wheel, after it has run.
TEST(Withdraw, CancelOnAnotherThread) {
  const auto witness = std::make_shared<int>();
  Latch ran;
  HashedWheelTimer timer(1ms);
  Timeout expired = timer.new_timeout([&] { ran.count_down(); }, 0ns);
  ASSERT_TRUE(ran.wait());
  Timeout in_the_wheel = timer.new_timeout([witness] {}, kFar);
  {
    const Gate gate(timer);
    Timeout queued = timer.new_timeout([witness] {}, kFar);
    std::jthread([&] {
      EXPECT_FALSE(expired.cancel());
      EXPECT_TRUE(in_the_wheel.cancel());
      EXPECT_TRUE(queued.cancel());
      EXPECT_EQ(witness.use_count(), 1);
      EXPECT_FALSE(queued.cancel());
      queued = {};
    }).join();
    withdraw_some(timer, 100);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_EQ(timer.stats().cancelled, 102);
  }
  EXPECT_TRUE(in_the_wheel.is_cancelled());
  await_transfer(timer);
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_TRUE(is_balanced(timer.stats()));
}

TEST(Withdraw, ByATaskOnTheWorker) {
  constexpr int kRounds = 1000;
  Latch ran(kRounds + 1);
  HashedWheelTimer timer(1ms);
  timer.new_timeout(
      [&] {
        for (int i = 0; i < kRounds; ++i) {
          withdraw_some(timer, 3, 0ns);
          timer.new_timeout([&] { ran.count_down(); }, 0ns);
        }
        ran.count_down();
      },
      0ns);
  ASSERT_TRUE(ran.wait());
  EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
  EXPECT_EQ(timer.stats().cancelled, 3 * kRounds);
}

/// cancelled() is called by the worker, so a TimerTask waits for it.
TEST(Withdraw, ATimerTaskIsNotWithdrawn) {
  HashedWheelTimer timer(1ms);
  for (int i = 0; i < 20; ++i) {
    const auto task = std::make_shared<RecordingTask>();
    Timeout timeout;
    {
      const Gate gate(timer);
      timeout = timer.new_timeout(task, kFar);
      EXPECT_TRUE(timeout.cancel());
      withdraw_some(timer, 10);
      EXPECT_EQ(task->cancellations, 0);
    }
    ASSERT_TRUE(task->was_cancelled.wait());
    EXPECT_NE(task->cancelled_on.load(), std::this_thread::get_id());
    EXPECT_TRUE(task->saw_cancelled);
    await_transfer(timer);
    EXPECT_EQ(task->cancellations, 1);
    EXPECT_EQ(task->runs, 0);
  }
}

TEST(Withdraw, StopReturnsOnlyPendingTimeouts) {
  std::vector<Timeout> pending;
  std::vector<Timeout> returned;
  HashedWheelTimer timer(1ms);
  {
    Gate gate(timer);
    for (int i = 0; i < 500; ++i) {
      withdraw_some(timer, 3);
      pending.push_back(timer.new_timeout([] {}, kFar));
    }
    std::jthread stopper([&] { returned = timer.stop(); });
    wait_until_refusing(timer);
    gate.open();
  }
  EXPECT_EQ(returned.size(), pending.size());
  const std::set<std::size_t> nodes = [&] {
    std::set<std::size_t> set;
    for (const Timeout& timeout : returned) set.insert(node_of(timeout));
    return set;
  }();
  for (const Timeout& timeout : pending) {
    EXPECT_TRUE(nodes.contains(node_of(timeout)));
    EXPECT_TRUE(timeout.is_cancelled());
  }
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// The next thread takes over the nodes, and entries of the queue still name them.
TEST(Withdraw, ThreadsEndWithWithdrawnTimeouts) {
  std::vector<Timeout> kept;
  std::vector<int> order;
  order.reserve(1000);
  Latch ran(1000);
  HashedWheelTimer timer(1ms);
  {
    const Gate gate(timer);
    for (int i = 0; i < 1000; ++i) {
      std::jthread([&] {
        withdraw_some(timer, 5);
        Timeout mine = timer.new_timeout([] {}, kFar);
        kept.push_back(mine);
        EXPECT_TRUE(mine.cancel());
        timer.new_timeout(
            [&order, &ran, i] {
              order.push_back(i);
              ran.count_down();
            },
            0ns);
      }).join();
      if (i % 2 == 0) kept.clear();
    }
  }
  ASSERT_TRUE(ran.wait());
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
  for (const Timeout& timeout : kept) EXPECT_TRUE(timeout.is_cancelled());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// In thread-local variables that outlive the library's state of the thread.
TEST(Withdraw, AtTheVeryEndOfAThread) {
  struct Late {
    HashedWheelTimer* timer = nullptr;
    Timeout kept;
    ~Late() {
      if (timer == nullptr) return;
      EXPECT_TRUE(kept.cancel());
      withdraw_some(*timer, 3);
    }
  };
  HashedWheelTimer timer(1ms);
  const Gate gate(timer);
  for (int i = 0; i < 50; ++i) {
    std::jthread([&] {
      static thread_local Late late;
      late.timer = &timer;
      late.kept = timer.new_timeout([] {}, kFar);
      withdraw_some(timer, 3);
    }).join();
  }
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(timer.stats().cancelled, 50 * 7);
}

TEST(Withdraw, TwoTimersInTurns) {
  constexpr int kRounds = 5000;
  Latch ran(2 * kRounds);
  HashedWheelTimer first(1ms);
  HashedWheelTimer second(1ms);
  {
    const Gate gate(first);
    for (int i = 0; i < kRounds; ++i) {
      Timeout a = first.new_timeout([] { ADD_FAILURE(); }, kFar);
      Timeout b = second.new_timeout([] { ADD_FAILURE(); }, kFar);
      EXPECT_EQ(a.timer(), &first);
      EXPECT_EQ(b.timer(), &second);
      EXPECT_TRUE((i % 2 == 0 ? a : b).cancel());
      first.new_timeout([&] { ran.count_down(); }, 0ns);
      EXPECT_TRUE((i % 2 == 0 ? b : a).cancel());
      second.new_timeout([&] { ran.count_down(); }, 0ns);
    }
  }
  ASSERT_TRUE(ran.wait());
  EXPECT_TRUE(first.stop().empty());
  EXPECT_TRUE(second.stop().empty());
  EXPECT_TRUE(is_balanced(first.stats()));
  EXPECT_TRUE(is_balanced(second.stats()));
  EXPECT_EQ(first.stats().cancelled, kRounds);
  EXPECT_EQ(second.stats().cancelled, kRounds);
}

/// Without memory for the wheel the worker still drops cancelled timeouts, and calls cancelled().
TEST(Withdraw, CancelledOnesAreDroppedWithoutMemoryForTheWheel) {
  constexpr std::size_t kRoomFor = 64;  // timeouts in buckets of their own, in the first piece of memory
  std::vector<std::shared_ptr<RecordingTask>> tasks;
  std::vector<Timeout> timeouts;
  HashedWheelTimer timer(1ms, 1 << 15);
  Gate gate(timer);
  for (int i = 0; i < 300; ++i) {
    tasks.push_back(std::make_shared<RecordingTask>());
    timeouts.push_back(timer.new_timeout(tasks.back(), 15min + i * 10ms));
  }
  timer.new_timeout([] {}, 0ns);  // so that the worker takes them
  const Shortage shortage(0, Shortage::kAll, Shortage::Of::OtherThreads);
  gate.open();
  EXPECT_TRUE(eventually([&] { return shortage.failed() >= 1; }));
  for (std::size_t i = kRoomFor; i < timeouts.size(); ++i) EXPECT_TRUE(timeouts[i].cancel());
  for (std::size_t i = kRoomFor; i < timeouts.size(); ++i) {
    ASSERT_TRUE(tasks[i]->was_cancelled.wait()) << "the timeout of number " << i;
  }
}

/// Threads release their handles while the timer goes. Their timeouts were withdrawn, cancelled in the wheel, have
/// expired, or are still pending. All memory comes back once.
TEST(Withdraw, HandlesAreReleasedWhileTheTimerGoes) {
  constexpr int kThreads = 3;
  constexpr int kEach = 60;
  const int kRounds = 1500 / kSlower;
  const auto round = [&](unsigned seed) {
    std::array<std::vector<Timeout>, kThreads> handles;
    auto timer = std::make_unique<HashedWheelTimer>(1ms, 8);
    std::atomic<int> ready = 0;
    run_together(kThreads, [&](int thread) {
      std::minstd_rand random(seed * kThreads + static_cast<unsigned>(thread) + 1);
      std::vector<Timeout>& mine = handles[static_cast<std::size_t>(thread)];
      const auto schedule_some = [&](int count) {
        for (int i = 0; i < count; ++i) {
          mine.push_back(timer->new_timeout([] {}, random() % 2 == 0 ? 0ms : std::chrono::milliseconds(kFar)));
        }
      };
      schedule_some(kEach / 2);
      if (seed % 4 == 0) await_transfer(*timer);
      schedule_some(kEach / 2);
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      // From here on nobody schedules.
      if (thread == 0) {
        for (auto spin = random() % 4096; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
        timer.reset();
      }
      for (Timeout& timeout : mine) {
        const auto dice = random() % 8;
        if (dice < 5) timeout.cancel();
        if (dice == 6) timeout.reschedule(1ms);
        if (dice != 7) timeout = {};
      }
      mine.clear();
    });
  };
  round(0);
  const std::int64_t before = bytes_in_use;
  for (int i = 0; i < kRounds; ++i) round(static_cast<unsigned>(i));
  EXPECT_LE(bytes_in_use - before, 4096) << "what is kept of a timer that is gone";
}

/// The worker meets entries of withdrawn timeouts while their nodes are scheduled and cancelled anew: each runs or was
/// cancelled, once.
TEST(Withdraw, RacesWithTheWorkerAtItsQueue) {
  constexpr int kThreads = 3;
  constexpr int kBatch = 200;
  constexpr auto kHunt = 1s;
  HashedWheelTimer timer(1ms, 8);
  std::atomic<std::int64_t> scheduled = 0;
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (const auto end = steady_clock::now() + kHunt; steady_clock::now() < end;) {
      std::array<std::atomic<int>, kBatch> fates{};
      for (int i = 0; i < kBatch; ++i) {
        std::atomic<int>& fate = fates[static_cast<std::size_t>(i)];
        Timeout timeout = timer.new_timeout([&fate] { ++fate; }, (random() % 1000) * 1us);
        const Timeout copy = random() % 4 == 0 ? timeout : Timeout();
        if (random() % 4 != 0) fate += timeout.cancel() ? 1 : 0;
        EXPECT_TRUE(!copy.is_cancelled() || fate == 1);
      }
      int wrong = 0;
      for (std::atomic<int>& fate : fates) {
        if (!eventually([&] { return fate != 0; })) ADD_FAILURE() << "lost";
        wrong += fate == 1 ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0);
      scheduled += kBatch;
    }
  });
  EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
  EXPECT_EQ(timer.stats().scheduled, scheduled);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

}  // namespace
}  // namespace hwt
