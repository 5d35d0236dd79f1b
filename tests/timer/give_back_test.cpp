// Memory of a peak goes back to the system when no timeout has needed it for some time (promise 7). That is most of the
// memory, whichever thread ended the timeouts. It harms no timeout among them that goes on, no entry that still names
// an ended one, and no later one. Afterwards an idle timer is idle again.

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>
#include <set>

#include "hashed_wheel_timer/internal/memory/batch_stack.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"
#include "tests/timer/after_a_peak.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using internal::Node;

TEST_F(AfterAPeak, ThatWasCancelled) {
  HastyTimer timer(10ms);
  std::vector<Timeout> timeouts = schedule(timer, kPeak);
  ASSERT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);
  cancel(timeouts);
  EXPECT_TRUE(falls_to(little()));
}

/// The nodes that a pool keeps lie anywhere then.
TEST_F(AfterAPeak, ThatWasCancelledInAnyOrder) {
  HastyTimer timer(10ms);
  std::vector<Timeout> timeouts = schedule(timer, 300'000);
  ASSERT_LT(kKeptByPool + little(), slabs_.pages()) << "too few";
  std::shuffle(timeouts.begin(), timeouts.end(), std::minstd_rand(1));
  cancel(timeouts);
  EXPECT_TRUE(falls_to(kKeptByPool + little()));
}

TEST_F(AfterAPeak, ThatWasCancelledByAnotherThread) {
  HastyTimer timer(10ms);
  std::vector<Timeout> timeouts = schedule(timer, kPeak);
  Latch checked;
  std::jthread other([&] {
    cancel(timeouts);
    EXPECT_TRUE(checked.wait());
  });
  EXPECT_TRUE(falls_to(little()));
  checked.count_down();
}

TEST_F(AfterAPeak, ThatExpired) {
  HastyTimer timer(10ms);
  {
    const Gate at_once(timer);
    schedule(timer, kPeak, 0ns);
  }
  EXPECT_TRUE(falls_to(little()));
  EXPECT_EQ(ran_, kPeak);
}

/// The worker knows of nothing that is due when they are withdrawn, and none of them has ever been in the wheel. So the
/// freed nodes must wake it.
TEST_F(AfterAPeak, OfWhichTheWorkerHasSeenNothing) {
  HastyTimer timer(10ms, 1 << 17);  // no bucket comes up again
  timer.new_timeout([] {}, kFar);
  await_transfer(timer);
  come_to_rest(timer);
  constexpr int kThreads = 8;
  constexpr int kEach = 12'000;  // too few for the worker to be called
  Latch checked;
  std::mutex mutex;
  Latch done(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      std::vector<Timeout> timeouts;
      {
        const std::lock_guard lock(mutex);
        timeouts = schedule(timer, kEach, 2 * kFar);
      }
      done.count_down();
      EXPECT_TRUE(done.wait());
      cancel(timeouts);
      EXPECT_TRUE(checked.wait());
    });
  }
  ASSERT_TRUE(done.wait());
  // Each thread's pool keeps the nodes that were freed first, in a row.
  EXPECT_TRUE(falls_to(kThreads * (kKeptByPool / 64 + 16) + little()));
  checked.count_down();
}

/// More than a MiB is free but stays, because a timeout in each of these pages is still pending.
TEST_F(AfterAPeak, TheTimerIsIdleAgain) {
  HastyTimer timer(10ms, 1 << 17);
  std::vector<Timeout> all = schedule(timer, 300'000);  // so many that little() is little
  const std::vector<Timeout> go_on = cancel_but_one_of(200, all);
  ASSERT_TRUE(falls_to(go_on.size() + little()));
  await_sleep(timer, 300ms);
}

/// One of every third page, which cannot go then.
TEST_F(AfterAPeak, TimeoutsAmongThemGoOn) {
  constexpr int kEach = 200;
  HastyTimer timer(10ms);
  std::vector<Timeout> all = schedule(timer, kPeak);
  std::vector<Timeout> go_on = cancel_but_one_of(kEach, all);
  ASSERT_TRUE(falls_to(go_on.size() + little()));
  for (Timeout& timeout : go_on) {
    ASSERT_FALSE(timeout.is_cancelled());
    ASSERT_TRUE(timeout.reschedule(0ns));
  }
  EXPECT_TRUE(eventually([&] { return ran_ == static_cast<int>(go_on.size()); }));
  for (const Timeout& timeout : go_on) EXPECT_TRUE(timeout.is_expired());
}

/// Of every sixth page a single timeout goes on, and ends after the worker has looked: too few to call it again. They
/// have ids, so the worker frees them all. This thread's pool would keep 2,304 of them, some in each of many pages.
TEST_F(AfterAPeak, APageThatItsLastTimeoutHeldGoesTooInAnIdleTimer) {
  constexpr std::size_t kLarge = 300'000;
  constexpr std::size_t kEach = 400;
  HastyTimer timer(2s);  // in which the last ones are to end
  std::vector<TimeoutId> all;
  for (std::size_t i = 0; i < kLarge; ++i) {
    all.push_back(timer.add([this] { ++ran_; }, kFar));
    slabs_.add(timer.find(all.back()));
  }
  await_transfer(timer);
  const auto cancel_those = [&](bool last) {
    for (std::size_t i = 0; i < kLarge; ++i) {
      if ((i % kEach == 0) != last) continue;
      EXPECT_EQ(timer.cancel(all[i]), CancelResult::Cancelled);
    }
  };
  cancel_those(false);
  ASSERT_TRUE(falls_to(kLarge / kEach + little()));
  cancel_those(true);
  EXPECT_TRUE(falls_to(kNotWorthIt));
}

/// A handle keeps its node, whatever has become of the timeout.
TEST_F(AfterAPeak, HandlesStillAnswer) {
  constexpr int kEach = 1000;
  std::vector<Timeout> kept;
  {
    HastyTimer timer(10ms);
    std::vector<Timeout> all = schedule(timer, kPeak);
    for (std::size_t i = 0; i < all.size(); i += kEach) kept.push_back(all[i]);
    cancel(all);
    ASSERT_TRUE(falls_to(kept.size() + little()));
    for (const Timeout& timeout : kept) EXPECT_TRUE(timeout.is_cancelled());
  }
  for (Timeout& timeout : kept) {
    EXPECT_TRUE(timeout.is_cancelled());
    EXPECT_FALSE(timeout.cancel());
  }
}

/// The next peak uses the same addresses.
TEST_F(AfterAPeak, TheNextNeedsNoNewMemory) {
  const std::int64_t at_first = bytes_in_use;
  {
    HastyTimer timer(10ms);
    std::vector<Timeout> timeouts = schedule(timer, kPeak);
    const std::size_t slabs = slabs_.size();
    for (int round = 0; round < 2; ++round) {
      cancel(timeouts);
      ASSERT_TRUE(falls_to(little()));
      await_sleep(timer, 50ms);  // no collection holds the addresses
      timeouts = schedule(timer, kPeak);
      EXPECT_LE(slabs_.size(), slabs * 3 / 2) << "in round " << round;
    }
    for (Timeout& timeout : timeouts) ASSERT_TRUE(timeout.reschedule(0ns));
    timeouts.clear();
    EXPECT_TRUE(eventually([&] { return ran_ == kPeak; }));
    EXPECT_TRUE(is_balanced(timer.stats()));
  }
  EXPECT_LE(bytes_in_use - at_first, 1 << 20);
}

/// What comes and goes within the time is no peak.
TEST_F(AfterAPeak, LeavesMemoryThatIsUsedAgain) {
  ManualTimer timer(1ms);
  std::vector<Timeout> timeouts = schedule(timer, kPeak);
  for (int i = 0; i < 10; ++i) {
    cancel(timeouts);
    pass_seconds(timer, 4);
    timeouts = schedule(timer, kPeak);
    pass_seconds(timer, 4);
    ASSERT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);
  }
  // And half of it is a peak, when only half is used again.
  for (int i = 0; i < 10; ++i) {
    cancel(timeouts);
    pass_seconds(timer, 4);
    timeouts = schedule(timer, kPeak / 2);
    pass_seconds(timer, 4);
  }
  EXPECT_LE(slabs_.resident_pages(), slabs_.pages() * 60 / 100);
  EXPECT_GE(slabs_.resident_pages(), slabs_.pages() * 45 / 100);
}

/// In one of twenty calls of advance() half of it is in use. All of it is free when the timer looks, but half was
/// needed since the last look.
TEST_F(AfterAPeak, LeavesMemoryThatWasUsedForAMoment) {
  ManualTimer timer(1ms);
  std::vector<Timeout> timeouts = schedule(timer, kPeak);
  cancel(timeouts);
  for (int i = 0; i < 200; ++i) {
    if (i % 20 == 0) timeouts = schedule(timer, kPeak / 2);
    timer.advance(200ms);
    cancel(timeouts);
    ASSERT_GE(slabs_.resident_pages(), slabs_.pages() * 45 / 100) << "in round " << i;
  }
  EXPECT_LE(slabs_.resident_pages(), slabs_.pages() * 60 / 100);
}

/// All of it was used again for a moment after the timer began to watch it. So the timer watches for the whole time
/// again.
TEST_F(AfterAPeak, StaysForTheWholeTimeSinceItWasUsed) {
  ManualTimer timer(1ms);
  std::vector<Timeout> timeouts = schedule(timer, kPeak);
  cancel(timeouts);
  pass_seconds(timer, 6);
  timeouts = schedule(timer, kPeak);
  cancel(timeouts);
  pass_seconds(timer, 10);
  EXPECT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);
  pass_seconds(timer, 30);
  EXPECT_LE(slabs_.resident_pages(), little());
}

/// Memory that went back reads as zeros.
TEST_F(AfterAPeak, NoPendingTimeoutIsFoundWhereMemoryWentBack) {
  ManualTimer timer(Options{.tick_duration = 1ms, .trace_origins = true}, steady_clock::time_point());
  std::vector<Timeout> timeouts = schedule(timer, kPeak);
  const Timeout last = std::move(timeouts.back());
  timeouts.pop_back();
  cancel(timeouts);
  pass_seconds(timer, 60);
  ASSERT_LE(slabs_.resident_pages(), little());
  const std::vector<PendingOrigin> origins = timer.pending_by_origin();
  ASSERT_EQ(origins.size(), 1u);
  EXPECT_EQ(origins[0].count, 1);
}

/// If a thread needs more nodes, the Collector puts back those that it has collected. They cost less than fresh ones.
TEST_F(AfterAPeak, StaysIfMoreIsNeededWhileItIsCollected) {
  constexpr int kFew = 40'000;
  ManualTimer timer(1ms);
  std::vector<Timeout> timeouts = schedule(timer, kFew);
  cancel(timeouts);
  timer.advance(200ms);  // begins to watch
  timer.advance(13s);    // collects a third
  timeouts = schedule(timer, 2 * kFew);
  pass_seconds(timer, 4);
  EXPECT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);
}

TEST_F(AfterAPeak, StaysIfTimeEndsBefore) {
  ManualTimer timer(1ms, steady_clock::time_point::max() - 10s);
  std::vector<Timeout> timeouts = schedule(timer, kPeak, 9s);
  cancel(timeouts);
  pass_seconds(timer, 9);
  EXPECT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);
  EXPECT_EQ(ran_, 0);
}

/// Calls of advance() give the memory back, a bounded part in each. The second peak needs fresh memory.
TEST_F(AfterAPeak, OfAManualTimer) {
  ManualTimer timer(1ms);
  for (const int peak : {kPeak, kPeak * 4 / 3}) {
    std::vector<Timeout> timeouts = schedule(timer, peak);
    cancel(timeouts);
    pass_seconds(timer, 11);
    EXPECT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);
    timer.advance(2s);
    EXPECT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100) << "a call takes some steps only";
    pass_seconds(timer, 20);
    EXPECT_LE(slabs_.resident_pages(), very_little());
  }
}

/// Much stays after a peak because some of each page goes on. Later timeouts may have used those nodes and ended too,
/// so that whole pages are free. They are collected then, although they are fewer than before.
TEST_F(AfterAPeak, MemoryThatHadToStayGoesWhenItHasBeenUsedSince) {
  constexpr int kMany = std::min(kPeak / 1024, 98) * 1023;  // all nodes of some slabs
  constexpr std::size_t kEach = 32;
  ManualTimer timer(1ms);
  std::vector<Timeout> all = schedule(timer, kMany);
  const std::size_t slabs = slabs_.size();
  std::vector<Timeout> go_on = cancel_but_one_of(kEach, all);
  pass_seconds(timer, 120);
  ASSERT_GE(slabs_.resident_pages(), slabs_.pages() * 95 / 100);

  all = schedule(timer, kMany - static_cast<int>(go_on.size()));
  EXPECT_EQ(slabs_.size(), slabs) << "the Collector has kept nodes that it did not give back";
  pass_seconds(timer, 1);
  for (Timeout& timeout : go_on) all.push_back(std::move(timeout));
  // Whole slabs of them: half of all.
  std::sort(all.begin(), all.end(),
            [](const Timeout& a, const Timeout& b) { return std::less<>()(Node::of(a), Node::of(b)); });
  std::vector<Timeout> half(std::make_move_iterator(all.begin()),
                            std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2)));
  cancel(half);
  pass_seconds(timer, 120);
  EXPECT_LE(slabs_.resident_pages(), slabs_.pages() * 55 / 100 + little());
}

/// Entries and recheck requests name nodes of earlier lives while their pages go and come again.
TEST_F(AfterAPeak, NothingIsLostWhileMemoryGoesAndComes) {
  constexpr int kThreads = 3;
  constexpr int kAtOnce = 25'000;
  std::atomic<std::int64_t> expected = 0;
  std::atomic<std::int64_t> ran = 0;
  HastyTimer timer(0ns);
  const Deadline end(kSanitized ? 3s : 1500ms);
  run_together(kThreads, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::vector<Timeout> timeouts;
    timeouts.reserve(kAtOnce);
    while (!end.passed()) {
      for (int i = 0; i < kAtOnce; ++i) timeouts.push_back(timer.new_timeout([&ran] { ++ran; }, kFar));
      if (random() % 2 == 0) std::this_thread::sleep_for(1ms);
      for (Timeout& timeout : timeouts) {
        switch (random() % 16) {
          case 0:  // perhaps a recheck request that comes too late
            ++expected;
            if (!timeout.reschedule(0ns)) ADD_FAILURE() << "not rescheduled";
            break;
          case 1:
            if (!timeout.reschedule(kFar - 1s)) ADD_FAILURE() << "not rescheduled";
            [[fallthrough]];
          default:
            if (!timeout.cancel()) ADD_FAILURE() << "not cancelled";
        }
      }
      timeouts.clear();
      if (random() % 2 == 0) std::this_thread::sleep_for(3ms);
    }
  });
  EXPECT_TRUE(eventually([&] { return ran == expected; })) << ran << " ran of " << expected;
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// Threads return nodes to a pool only while nodes() is below a limit. If nodes() stayed too high, the pool would never
/// get nodes again.
TEST(BatchStack, CountsNothingWhenAllHasBeenTaken) {
  constexpr int kRounds = kSanitized || kCounting ? 50 : 500;
  constexpr std::size_t kPushes = 64;
  internal::BatchStack stack;
  EXPECT_EQ(stack.nodes(), 0U);
  std::vector<Node> nodes(kPushes);
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<bool> done = false;
    std::jthread pusher([&] {
      for (Node& node : nodes) {
        internal::FreeNode::make(&node, nullptr);
        node.next() = nullptr;
        EXPECT_TRUE(stack.push(&node, 1));
      }
      done = true;
    });
    while (!done) {
      stack.take_all();
      std::this_thread::yield();
    }
    pusher.join();
    stack.take_all();
    ASSERT_EQ(stack.nodes(), 0U);
  }
  for (Node& node : nodes) internal::FreeNode::unmake(&node);
}

/// Pools take and the Collector pushes, at once.
TEST(RunStack, HasEveryRunOnceWhenAllThreadsTakeAndPush) {
  constexpr std::size_t kRuns = 200;
  constexpr int kRounds = kSanitized ? 20'000 : 1'000'000;  // so that they meet
  internal::RunStack stack;
  std::vector<internal::Page> runs(kRuns);
  for (internal::Page& run : runs) stack.push(run);
  const auto take_and_push = [&] {
    for (int round = 0; round < kRounds; ++round) {
      if (internal::Page* const run = stack.take_one()) stack.push(*run);
    }
  };
  std::thread other(take_and_push);
  take_and_push();
  other.join();
  std::set<const internal::Page*> found;
  for (const internal::Page* run = stack.take_all(); run != nullptr; run = run->next) {
    ASSERT_TRUE(found.insert(run).second) << "twice";
  }
  EXPECT_EQ(found.size(), kRuns);
}

/// Takes all nodes out of the depot, as a thread does that is preempted while it takes some.
class PreemptedInDepot {
 public:
  explicit PreemptedInDepot(internal::Depot& depot) : depot_(depot), held_(depot.take(1 << 30)) {}
  ~PreemptedInDepot() {
    while (held_ != nullptr) {
      const internal::FreeNode& batch = internal::FreeNode::of(held_);
      Node* const first = std::exchange(held_, batch.next_batch);
      depot_.push(first, static_cast<std::size_t>(batch.nodes));
    }
  }
  PreemptedInDepot(const PreemptedInDepot&) = delete;
  PreemptedInDepot& operator=(const PreemptedInDepot&) = delete;

 private:
  internal::Depot& depot_;
  Node* held_;
};

/// SECURITY.md: each such preemption adds at most the nodes of one more peak.
TEST(NodesHiddenInTheDepot, AddAtMostOnePeakEachTime) {
  constexpr std::size_t kAlive = 30'000;
  constexpr std::size_t kHidden = 4;
  constexpr std::size_t kKept = 2304 + 2 * 4352;  // by the pool: docs/design.md, "Memory"
  ManualTimer timer(1ms);
  Slabs slabs;
  internal::Core* core = nullptr;
  const auto burst = [&] {
    std::vector<Timeout> timeouts;
    for (std::size_t i = 0; i < kAlive; ++i) {
      timeouts.push_back(timer.new_timeout([] {}, kFar));
      slabs.add(timeouts.back());
    }
    core = &Node::of(timeouts.back())->core();
    for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
  };
  const auto most = [&](std::size_t peaks) {
    constexpr std::size_t kInSlab = internal::Slab::kNodes - 1;
    return (peaks * kAlive + kKept) / kInSlab + 1;
  };
  for (int i = 0; i < 10; ++i) burst();
  EXPECT_LE(slabs.size(), most(1));
  for (std::size_t times = 1; times <= kHidden; ++times) {
    {
      const PreemptedInDepot preempted(core->depot());
      for (int i = 0; i < 10; ++i) burst();
    }
    EXPECT_GT(slabs.size(), most(times) - kKept / internal::Slab::kNodes) << "nothing was hidden";
    EXPECT_LE(slabs.size(), most(1 + times));
  }
  const std::size_t before = slabs.size();
  for (int i = 0; i < 10; ++i) burst();
  EXPECT_EQ(slabs.size(), before);
}

}  // namespace
}  // namespace hwt
