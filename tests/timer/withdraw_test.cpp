// Withdrawn timeouts: their own thread cancels them before the worker has seen them. The node is free at once, although
// an entry of the queue still names it.

#include "hashed_wheel_timer/internal/handover/entry_buffer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

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

/// The order in which tasks run.
class Order {
 public:
  explicit Order(int timeouts) : ran_(timeouts) { order_.reserve(static_cast<std::size_t>(timeouts)); }

  /// A task for number `i`.
  auto task(int i) {
    return [this, i] {
      order_.push_back(i);
      ran_.count_down();
    };
  }
  void expect_ascending() {
    ASSERT_TRUE(ran_.wait()) << "lost";
    EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
    EXPECT_EQ(std::adjacent_find(order_.begin(), order_.end()), order_.end()) << "ran twice";
  }

 private:
  std::vector<int> order_;
  Latch ran_;
};

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
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_EQ(timer.stats().rejected, 0);
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

TEST(Withdraw, TheOrderHoldsWithNodesThatAreUsedAgain) {
  constexpr int kTimeouts = 20'000 / kSlower;
  Order order(kTimeouts);
  HashedWheelTimer timer(1ms, 64);
  {
    const Gate gate(timer);
    std::minstd_rand random(1);
    for (int i = 0; i < kTimeouts; ++i) {
      withdraw_some(timer, static_cast<int>(random() % 4), (random() % 10) * 1ms);
      timer.new_timeout(order.task(i), i * 30ms / kTimeouts);
    }
  }
  order.expect_ascending();
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// The withdrawn timeout's entry comes first in the queue, but the new timeout in its node has a place of its own: it
/// runs after those between.
TEST(Withdraw, TheNewTimeoutTakesItsOwnPlaceInTheQueue) {
  Order order(3);
  HashedWheelTimer timer(1ms);
  {
    const Gate gate(timer);
    Timeout first = timer.new_timeout([] {}, 0ns);
    const std::size_t node = node_of(first);
    timer.new_timeout(order.task(1), 0ns);
    timer.new_timeout(order.task(2), 0ns);
    EXPECT_TRUE(first.cancel());
    first = {};
    const Timeout again = timer.new_timeout(order.task(3), 0ns);
    EXPECT_EQ(node_of(again), node) << "it was to be the same node";
  }
  order.expect_ascending();
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

TEST(Withdraw, ByATaskOnTheWorker) {
  constexpr int kRounds = 1000;
  Latch ran(kRounds);
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&] {
    for (int i = 0; i < kRounds; ++i) {
      withdraw_some(timer, 3, 0ns);
      timer.new_timeout([&] { ran.count_down(); }, 0ns);
    }
  }));
  ASSERT_TRUE(ran.wait());
  EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
  EXPECT_EQ(timer.stats().cancelled, 3 * kRounds);
}

TEST(Withdraw, StopReturnsOnlyPendingTimeouts) {
  std::set<std::size_t> pending;
  std::vector<Timeout> returned;
  HashedWheelTimer timer(1ms);
  {
    Gate gate(timer);
    std::vector<Timeout> handles;
    for (int i = 0; i < 500; ++i) {
      withdraw_some(timer, 3);
      handles.push_back(timer.new_timeout([] {}, kFar));
      pending.insert(node_of(handles.back()));
    }
    std::jthread stopper([&] { returned = timer.stop(); });
    wait_until_refusing(timer);
    gate.open();
  }
  EXPECT_EQ(returned.size(), 500u);
  for (const Timeout& timeout : returned) {
    EXPECT_EQ(pending.erase(node_of(timeout)), 1u);
    EXPECT_TRUE(timeout.is_cancelled());
  }
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// The next thread takes over the nodes, and entries of the queue still name them.
TEST(Withdraw, ThreadsEndWithWithdrawnTimeouts) {
  std::vector<Timeout> kept;
  Order order(1000);
  HashedWheelTimer timer(1ms);
  {
    const Gate gate(timer);
    for (int i = 0; i < 1000; ++i) {
      std::jthread([&] {
        withdraw_some(timer, 5);
        kept.push_back(timer.new_timeout([] {}, kFar));
        EXPECT_TRUE(kept.back().cancel());
        timer.new_timeout(order.task(i), 0ns);
      }).join();
      if (i % 2 == 0) kept.clear();
    }
  }
  order.expect_ascending();
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

/// Threads release their handles while the timer goes, and copies of handles of others. Their timeouts were withdrawn,
/// cancelled in the wheel, have expired, or are still pending. All memory comes back once, and each TimerTask runs or
/// is told.
TEST(Withdraw, HandlesAreReleasedWhileTheTimerGoes) {
  constexpr int kThreads = 3;
  constexpr int kEach = 60;
  const int kRounds = 1500 / kSlower;
  const auto round = [&](unsigned seed) {
    const auto task = std::make_shared<RecordingTask>();
    std::array<std::vector<Timeout>, kThreads> handles;
    auto timer = std::make_unique<HashedWheelTimer>(1ms, 8);
    const Timeout shared = timer->new_timeout(task, kFar);
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
      mine.push_back(timer->new_timeout(task, kFar));
      mine.push_back(shared);
      schedule_some(kEach / 2);
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      // From here on no thread schedules.
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
    EXPECT_EQ(task->runs + task->cancellations, kThreads + 1);
  };
  round(0);
  const std::int64_t before = bytes_in_use;
  for (int i = 0; i < kRounds; ++i) round(static_cast<unsigned>(i));
  EXPECT_LE(bytes_in_use - before, 4096) << "what is kept of a timer that is gone";
}

// The order of one thread also holds when the thread sifts its place and drops dead entries.

/// While the worker is held, and while it runs.
class OrderOfOneThread : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Worker, OrderOfOneThread, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Held" : "Runs"; });

TEST_P(OrderOfOneThread, HoldsWhileItTidiesUpBehindItself) {
  constexpr int kTimeouts = 20'000 / (kSanitized ? 10 : 1);
  constexpr int kDead = 40;  // for each that lives
  Order order(kTimeouts);
  HashedWheelTimer timer(1ms);
  {
    std::optional<Gate> gate;
    if (GetParam()) gate.emplace(timer);
    std::minstd_rand random(1);
    std::vector<Timeout> dead_soon;
    for (int i = 0; i < kTimeouts; ++i) {
      for (auto dead = random() % kDead; dead != 0; --dead) {
        dead_soon.push_back(timer.new_timeout(must_not_run, kFar));
        if (random() % 2 == 0) dead_soon.back().cancel();
      }
      timer.new_timeout(order.task(i), 0ns);
      if (i % 100 != 99) continue;
      std::jthread([&] {
        for (Timeout& timeout : dead_soon) timeout.cancel();
        dead_soon.clear();
      }).join();
    }
    EXPECT_LT(timer.stats().backlog, 4 * kTimeouts) << "it did not tidy up";
  }
  order.expect_ascending();
}

/// Without memory a thread keeps its live timeouts, drops dead ones, and refuses new ones. When there is memory again,
/// no timeout has overtaken another.
TEST(OrderWithoutMemory, HoldsForTimeoutsBeforeAndAfterTheShortage) {
  constexpr int kFew = internal::Tuning::kFewest;
  for (const int alive : {1, kFew / 2, kFew, 5 * kFew}) {
    constexpr int kTimeouts = 20 * kFew;
    Order order(kTimeouts);
    HashedWheelTimer timer(1ms);
    int next = 0;
    int refused = 0;
    {
      const Gate gate(timer);
      const auto dead = [&] { EXPECT_TRUE(timer.new_timeout(must_not_run, kFar).cancel()); };
      for (; next < alive; ++next) timer.new_timeout(order.task(next), 0ns);
      for (int i = 0; i < 3 * kFew; ++i) dead();
      without_memory([&] {
        for (int i = 0; i < 8 * kFew; ++i) {
          if (timer.try_new_timeout(order.task(next), 0ns)) {
            ++next;
          } else {
            ++refused;
          }
        }
      });
      while (next < kTimeouts) {
        dead();
        timer.new_timeout(order.task(next++), 0ns);
      }
    }
    order.expect_ascending();
    EXPECT_GT(refused, 0) << alive;
  }
}

}  // namespace
}  // namespace hwt::test
