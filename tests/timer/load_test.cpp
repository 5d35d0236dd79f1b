// Floods, and timeouts that are withdrawn. Memory is bounded by the number of pending timeouts, however long the worker
// is held. The worker looks only at threads that have something for it. How much a pass does: near_first_test.

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/handover/entry_buffer.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

constexpr int kSlower = kSanitized || kCounting ? 10 : 1;

constexpr std::int64_t kMayGrow = 4 << 20;

class HeldWorker : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kOperations = 2'000'000 / kSlower;
  int threads() const { return GetParam(); }
  int each() const { return kOperations / threads(); }

  /// Calls f(thread, growth) on all threads at once while the worker is held. Then lets the worker go on.
  template <class F>
  void flood(HashedWheelTimer& timer, F f) {
    const std::int64_t pending_before = timer.pending_timeouts();
    const auto gate = std::make_unique<Gate>(timer);
    Growth growth;
    run_together(threads(), [&](int thread) { f(thread, growth); });
    EXPECT_LE(growth.most(), kMayGrow) << "during";
    gate->open();
    EXPECT_TRUE(ran_in_task(timer, [] {}));
    EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
    EXPECT_LE(growth.now(), kMayGrow) << "after";
    EXPECT_EQ(timer.pending_timeouts(), pending_before);
  }
};

/// Calls step(i) so often, and looks at the memory now and then.
template <class Step>
void repeat(int times, Growth& growth, Step step) {
  for (int i = 0; i < times; ++i) {
    step(i);
    if (i % 4096 == 0) growth.look();
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, HeldWorker, ::testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

/// Each thread cancels the timeout that it has just scheduled, or any of many. Some callables have memory of their own.
TEST_P(HeldWorker, OwnCancelsLeaveNothing) {
  struct Row {
    std::size_t pending;  // of each thread
    std::int64_t limit;
  };
  for (const Row& row : {Row{1, -1}, Row{1, 10}, Row{1000, -1}}) {
    HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = row.limit}};
    flood(timer, [&](int thread, Growth& growth) {
      const auto large = [pad = std::array<char, 200>{}] { static_cast<void>(pad), must_not_run(); };
      std::minstd_rand random(static_cast<unsigned>(thread) + 1);
      std::vector<Timeout> ring(row.pending);
      repeat(each(), growth, [&](int i) {
        Timeout& timeout = ring[random() % ring.size()];
        EXPECT_EQ(timeout.cancel(), static_cast<bool>(timeout));
        timeout = i % 4 == 0 ? timer.try_new_timeout(large, kFar) : timer.try_new_timeout(must_not_run, kFar);
        EXPECT_TRUE(timeout || row.limit > 0);
      });
      for (Timeout& timeout : ring) timeout.cancel();
    });
  }
}

TEST_P(HeldWorker, CancelsByAnotherThreadLeaveNothing) {
  constexpr int kBatch = 256;
  HashedWheelTimer timer(1ms);
  flood(timer, [&](int, Growth& growth) {
    const int rounds = each() / kBatch;
    std::vector<Timeout> batch(kBatch);
    Barrier handed_over(2);
    std::jthread canceller([&] {
      for (int round = 0; round < rounds; ++round) {
        handed_over.arrive_and_wait();
        for (Timeout& timeout : batch) EXPECT_TRUE(std::exchange(timeout, {}).cancel());
        handed_over.arrive_and_wait();
      }
    });
    for (int round = 0; round < rounds; ++round) {
      for (Timeout& timeout : batch) timeout = timer.new_timeout(must_not_run, kFar);
      handed_over.arrive_and_wait();
      handed_over.arrive_and_wait();
      growth.look();
    }
  });
}

/// In the wheel: one timeout of each thread, and one that all have in common. And one of each thread in the queue.
TEST_P(HeldWorker, ReschedulesLeaveNothing) {
  HashedWheelTimer timer(1ms);
  const std::vector<Timeout> in_wheel = far_timeouts(timer, static_cast<std::size_t>(threads()) + 1, 2 * kFar);
  flood(timer, [&](int thread, Growth& growth) {
    Timeout queued = timer.new_timeout(must_not_run, 2 * kFar);
    std::array<Timeout, 3> moved{in_wheel[static_cast<std::size_t>(thread)], in_wheel.back(), queued};
    repeat(each() / 2, growth, [&](int i) {
      for (Timeout& timeout : moved) EXPECT_TRUE(timeout.reschedule(kFar + (i % 2 == 0 ? -i : i) * 1us));
    });
    EXPECT_TRUE(queued.cancel());
  });
}

TEST(ManyThreads, LeaveNothingForTheWorkerToLookAt) {
  constexpr int kThreads = 1000 / kSlower;
  HashedWheelTimer timer(1ms);
  Barrier all_have_used_it(kThreads + 1);
  auto threads = start_threads(kThreads, [&](int) {
    EXPECT_TRUE(timer.new_timeout(must_not_run, kFar).cancel());
    all_have_used_it.arrive_and_wait();  // all of them are there
    all_have_used_it.arrive_and_wait();
  });
  all_have_used_it.arrive_and_wait();
  const Timeout timeout = timer.new_timeout([] {}, 0ms);  // after it, a pass takes the rest
  internal::Core& core = internal::Node::of(timeout)->core();
  int producers = 0;
  EXPECT_TRUE(eventually([&] {
    int listed = 0;
    producers = 0;
    core.producers().for_each([&](internal::Producer& producer) {
      ++producers;
      listed += producer.place.is_listed() ? 1 : 0;
    });
    return listed == 0;
  }));
  EXPECT_GE(producers, kThreads);
  all_have_used_it.arrive_and_wait();
}

// Withdrawn timeouts: their own thread cancels them before the worker has seen them. The node is free at once, although
// an entry of the queue still names it.

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

// The order of one thread also holds when nodes are used again, and when the thread drops dead entries.

/// While the worker is held, and while it runs.
class OrderOfOneThread : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Worker, OrderOfOneThread, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Held" : "Runs"; });

TEST_P(OrderOfOneThread, HoldsWhileItTidiesUpBehindItself) {
  constexpr int kTimeouts = 20'000 / (kSanitized ? 10 : 1);
  constexpr int kDead = 40;  // for each that lives
  Order order(kTimeouts);
  HashedWheelTimer timer(1ms, 64);
  {
    std::optional<Gate> gate;
    if (GetParam()) gate.emplace(timer);
    std::minstd_rand random(1);
    std::vector<Timeout> dead_soon;
    for (int i = 0; i < kTimeouts; ++i) {
      withdraw_some(timer, static_cast<int>(random() % 4), GetParam() ? random() % 10 * 1ms : kFar);
      for (auto dead = random() % kDead; dead != 0; --dead) {
        dead_soon.push_back(timer.new_timeout(must_not_run, kFar));
        if (random() % 2 == 0) dead_soon.back().cancel();
      }
      timer.new_timeout(order.task(i), i * 30ms / kTimeouts);
      if (i % 100 != 99) continue;
      std::jthread([&] {
        for (Timeout& timeout : dead_soon) timeout.cancel();
        dead_soon.clear();
      }).join();
    }
    EXPECT_LT(timer.stats().backlog, 4 * kTimeouts) << "it did not tidy up";
  }
  order.expect_ascending();
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// Without memory a thread keeps its live timeouts, drops dead ones, and refuses new ones. When there is memory again,
/// no timeout has overtaken another.
TEST(OrderWithoutMemory, HoldsForTimeoutsBeforeAndAfterTheShortage) {
  constexpr int kFew = internal::Tuning::kFewest;
  for (const int alive : {1, kFew / 2, kFew, 5 * kFew}) {
    constexpr int kTimeouts = 20 * kFew;
    Order order(kTimeouts);
    HashedWheelTimer timer(1ms);
    int next = 0, refused = 0;
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
