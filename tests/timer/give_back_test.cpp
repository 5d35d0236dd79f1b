// Memory of a peak goes back to the system when no timeout has needed it for some time (promise 7). That is most of the
// memory, whichever thread ended the timeouts. It harms no timeout among them that goes on, no entry that still names
// an ended one, and no later one. Afterwards an idle timer is idle again.

#include <iterator>

#include "hashed_wheel_timer/internal/engine/worker_thread.h"
#include "hashed_wheel_timer/internal/platform/pages.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"
#include "tests/support/worker_call.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace hwt::test {
namespace {

using internal::Core;
using internal::Depot;
using internal::Node;

constexpr int kPeak = kSanitized || kCounting ? 40'000 : 300'000;
/// The most nodes that a pool keeps for its owner (docs/design.md, "Memory"), and a batch more.
constexpr std::size_t kKeptByPool = 2304 + 256;
/// A MiB in pages. The Collector does not begin for less.
constexpr std::size_t kNotWorthIt = 256;

/// A HashedWheelTimer that gives memory back after it was unused for `unused_for`.
class HastyTimer final : public ThreadedTimer {
 public:
  explicit HastyTimer(std::chrono::nanoseconds unused_for, std::int64_t wheel_size = 512,
                      std::chrono::nanoseconds tick = 1ms) {
    const Options options{.tick_duration = tick};
    set_engine(new internal::WorkerThread<internal::HashedWheel>(*this, options, wheel_size, unused_for.count()));
  }
  ~HastyTimer() override { end(); }
};

void pass_seconds(ManualTimer& timer, int seconds) {
  for (int i = 0; i < 5 * seconds; ++i) timer.advance(200ms);
}

/// The slabs of some timeouts' nodes, and how much of them is in memory.
class Slabs {
 public:
  void add(const Timeout& timeout) {
    slabs_.insert(reinterpret_cast<std::uintptr_t>(Node::of(timeout)) & ~(internal::Slab::kBytes - 1));
  }
  std::size_t size() const { return slabs_.size(); }
  std::size_t pages() const { return size() * kPagesPerSlab; }
  std::size_t resident_pages() const {
    std::size_t resident = 0;
#if defined(__linux__)
    for (const std::uintptr_t slab : slabs_) {
      unsigned char in_memory[kPagesPerSlab] = {};
      EXPECT_EQ(mincore(reinterpret_cast<void*>(slab), internal::Slab::kBytes, in_memory), 0);
      for (const unsigned char page : in_memory) resident += page & 1;
    }
#endif
    return resident;
  }

 private:
  static constexpr std::size_t kPagesPerSlab = internal::Slab::kMaxPages;
  std::set<std::uintptr_t> slabs_;
};

class AfterAPeak : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__linux__)
    if (internal::pages::size() != internal::Slab::kBytes / internal::Slab::kMaxPages)
      GTEST_SKIP() << "for pages of 4 KiB";
#else
    GTEST_SKIP() << "asks Linux what is in memory";
#endif
  }

  std::vector<Timeout> schedule(Timer& timer, int count, std::chrono::nanoseconds delay = kFar) {
    std::vector<Timeout> timeouts;
    timeouts.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      timeouts.push_back(timer.new_timeout([this] { ++ran_; }, delay));
      slabs_.add(timeouts.back());
    }
    core_ = &Node::of(timeouts.back())->core();
    return timeouts;
  }
  /// Schedules and cancels so many.
  void peak(Timer& timer, int count = kPeak) {
    std::vector<Timeout> timeouts = schedule(timer, count);
    cancel_all(timeouts);
  }
  /// Cancels the timeouts, except one of every `each`. Returns those.
  static std::vector<Timeout> cancel_but_one_of(std::size_t each, std::vector<Timeout>& timeouts) {
    std::vector<Timeout> gone, left;
    for (std::size_t i = 0; i < timeouts.size(); ++i) (i % each == 0 ? left : gone).push_back(std::move(timeouts[i]));
    timeouts.clear();
    cancel_all(gone);
    return left;
  }
  /// The pages that may stay, if the nodes that the pool keeps lie in a row.
  std::size_t little() const { return slabs_.pages() / 10 + kNotWorthIt; }
  /// The pages that may stay if the freed nodes lie in a row. A pool keeps the nodes of some 40 pages, and the first
  /// page of a slab stays while another page of the slab does. The bound is generous: half a page for each slab.
  std::size_t very_little() const { return std::max<std::size_t>(slabs_.size() / 2, 64); }
  /// Waits until the worker of `timer`, the latest of schedule(), has slept for `time`. come_to_rest() does not notice
  /// a collection: the worker neither wakes up nor begins a tick then.
  void await_sleep(const Timer& timer, std::chrono::milliseconds time) {
    EXPECT_TRUE(eventually([&] {
      if (core_->sleeper().awake()) return false;
      const std::int64_t before = timer.stats().wakeups;
      std::this_thread::sleep_for(time);
      return !core_->sleeper().awake() && timer.stats().wakeups == before;
    })) << "the worker does not sleep";
  }
  bool all_is_resident() const { return slabs_.resident_pages() >= slabs_.pages() * 95 / 100; }
  testing::AssertionResult falls_to(std::size_t pages) {
    const bool fallen = eventually([&] {
      std::this_thread::sleep_for(5ms);  // asking is slow
      return slabs_.resident_pages() <= pages;
    });
    if (fallen) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << slabs_.resident_pages() << " of " << slabs_.pages() << " pages are still "
                                         << "in memory, not " << pages;
  }

  std::atomic<int> ran_ = 0;
  Slabs slabs_;
  Core* core_ = nullptr;  // of the timer of the latest schedule()
};

TEST_F(AfterAPeak, ThatWasCancelledByItsThreadOrAnotherOrExpired) {
  for (const int way : {0, 1, 2}) {
    HastyTimer timer(10ms);
    slabs_ = {};
    std::vector<Timeout> timeouts = schedule(timer, kPeak);
    ASSERT_TRUE(all_is_resident());
    StayingThreads threads;
    if (way == 0) cancel_all(timeouts);
    if (way == 1) threads.call([&] { cancel_all(timeouts); });
    for (Timeout& timeout : timeouts) ASSERT_TRUE(timeout.reschedule(0ns));
    timeouts.clear();
    EXPECT_TRUE(falls_to(little())) << "way " << way;
    EXPECT_EQ(ran_, way == 2 ? kPeak : 0);
  }
}

/// The nodes that a pool keeps lie anywhere then.
TEST_F(AfterAPeak, ThatWasCancelledInAnyOrder) {
  HastyTimer timer(10ms);
  std::vector<Timeout> timeouts = schedule(timer, 300'000);
  ASSERT_LT(kKeptByPool + little(), slabs_.pages()) << "too few";
  std::shuffle(timeouts.begin(), timeouts.end(), std::minstd_rand(1));
  cancel_all(timeouts);
  EXPECT_TRUE(falls_to(kKeptByPool + little()));
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
  auto threads = start_threads(kThreads, [&](int) {
    std::vector<Timeout> timeouts;
    {
      const std::lock_guard lock(mutex);
      timeouts = schedule(timer, kEach, 2 * kFar);
    }
    done.count_down();
    EXPECT_TRUE(done.wait());
    cancel_all(timeouts);
    EXPECT_TRUE(checked.wait());
  });
  ASSERT_TRUE(done.wait());
  // Each thread's pool keeps the nodes that were freed first, in a row.
  EXPECT_TRUE(falls_to(kThreads * (kKeptByPool / 64 + 16) + little()));
  checked.count_down();
}

/// More than a MiB is free but stays, because a timeout in each of these pages is still pending, or has a handle.
TEST_F(AfterAPeak, TheTimerIsIdleAgainAndTimeoutsAmongThemGoOnAndHandlesStillAnswer) {
  std::vector<Timeout> kept;
  {
    HastyTimer timer(10ms, 1 << 17);
    std::vector<Timeout> all = schedule(timer, 300'000);  // so many that little() is little
    for (std::size_t i = 1; i < all.size(); i += 1000) kept.push_back(all[i]);
    std::vector<Timeout> go_on = cancel_but_one_of(200, all);
    ASSERT_TRUE(falls_to(go_on.size() + kept.size() + little()));
    await_sleep(timer, 300ms);
    for (const Timeout& timeout : kept) EXPECT_TRUE(timeout.is_cancelled());
    for (Timeout& timeout : go_on) ASSERT_TRUE(timeout.reschedule(0ns));
    EXPECT_TRUE(eventually([&] { return ran_ == static_cast<int>(go_on.size()); }));
    for (const Timeout& timeout : go_on) EXPECT_TRUE(timeout.is_expired());
  }
  for (Timeout& timeout : kept) EXPECT_TRUE(timeout.is_cancelled() && !timeout.cancel());
}

/// Of every sixth page a single timeout goes on, and ends after the worker has looked: too few to call it again. They
/// have ids, so the worker frees them all. This thread's pool would keep 2,304 of them, some in each of many pages.
TEST_F(AfterAPeak, APageThatItsLastTimeoutHeldGoesTooInAnIdleTimer) {
  constexpr std::size_t kLarge = 300'000, kEach = 400;
  HastyTimer timer(2s);  // in which the last ones are to end
  const std::vector<TimeoutId> all = far_ids(timer, kLarge);
  for (const TimeoutId id : all) slabs_.add(timer.find(id));
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

TEST_F(AfterAPeak, TheNextNeedsNoNewMemory) {
  const std::int64_t at_first = bytes_in_use;
  {
    HastyTimer timer(10ms);
    std::vector<Timeout> timeouts = schedule(timer, kPeak);
    const std::size_t slabs = slabs_.size();
    for (int round = 0; round < 2; ++round) {
      cancel_all(timeouts);
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

/// In one of twenty calls of advance() half of it is in use. All of it is free when the timer looks, but half was
/// needed since the last look.
TEST_F(AfterAPeak, LeavesMemoryThatWasUsedForAMoment) {
  ManualTimer timer(1ms);
  peak(timer);
  std::vector<Timeout> timeouts;
  for (int i = 0; i < 200; ++i) {
    if (i % 20 == 0) timeouts = schedule(timer, kPeak / 2);
    timer.advance(200ms);
    cancel_all(timeouts);
    ASSERT_GE(slabs_.resident_pages(), slabs_.pages() * 45 / 100) << "in round " << i;
  }
  EXPECT_LE(slabs_.resident_pages(), slabs_.pages() * 60 / 100);
}

/// Memory that went back reads as zeros.
TEST_F(AfterAPeak, NoPendingTimeoutIsFoundWhereMemoryWentBack) {
  ManualTimer timer(Options{.tick_duration = 1ms, .trace_origins = true}, steady_clock::time_point());
  std::vector<Timeout> timeouts = schedule(timer, kPeak);
  const Timeout last = std::move(timeouts.back());
  timeouts.pop_back();
  cancel_all(timeouts);
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
  peak(timer, kFew);
  timer.advance(200ms);  // begins to watch
  timer.advance(13s);    // collects a third
  const std::vector<Timeout> more = schedule(timer, 2 * kFew);
  pass_seconds(timer, 4);
  EXPECT_TRUE(all_is_resident());
}

TEST_F(AfterAPeak, StaysIfTimeEndsBefore) {
  ManualTimer timer(1ms, steady_clock::time_point::max() - 10s);
  std::vector<Timeout> timeouts = schedule(timer, kPeak, 9s);
  cancel_all(timeouts);
  pass_seconds(timer, 9);
  EXPECT_TRUE(all_is_resident());
  EXPECT_EQ(ran_, 0);
}

/// Calls of advance() give the memory back, a bounded part in each. After the timer has begun to watch it, all of it is
/// used again for a moment. So the timer watches for the whole time again. The second peak needs fresh memory.
TEST_F(AfterAPeak, OfAManualTimerStaysForTheWholeTimeSinceItWasUsed) {
  ManualTimer timer(1ms);
  for (const int count : {kPeak, kPeak * 4 / 3}) {
    peak(timer, count);
    pass_seconds(timer, 6);
    peak(timer, count);
    pass_seconds(timer, 11);
    EXPECT_TRUE(all_is_resident());
    timer.advance(2s);
    EXPECT_TRUE(all_is_resident()) << "a call takes some steps only";
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
  ASSERT_TRUE(all_is_resident());

  all = schedule(timer, kMany - static_cast<int>(go_on.size()));
  EXPECT_EQ(slabs_.size(), slabs) << "the Collector has kept nodes that it did not give back";
  pass_seconds(timer, 1);
  for (Timeout& timeout : go_on) all.push_back(std::move(timeout));
  // Whole slabs of them: half of all.
  std::sort(all.begin(), all.end(),
            [](const Timeout& a, const Timeout& b) { return std::less<>()(Node::of(a), Node::of(b)); });
  std::vector<Timeout> half(std::make_move_iterator(all.begin()),
                            std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2)));
  cancel_all(half);
  pass_seconds(timer, 120);
  EXPECT_LE(slabs_.resident_pages(), slabs_.pages() * 55 / 100 + little());
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

/// Takes all nodes out of the depot, as a thread does that is preempted while it takes some.
class PreemptedInDepot {
 public:
  explicit PreemptedInDepot(Depot& depot) : depot_(depot), held_(depot.take(1 << 30)) {}
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
  Depot& depot_;
  Node* held_;
};

/// SECURITY.md: each such preemption adds at most the nodes of one more peak.
TEST(NodesHiddenInTheDepot, AddAtMostOnePeakEachTime) {
  constexpr std::size_t kAlive = 30'000, kHidden = 4;
  constexpr std::size_t kKept = 2304 + 2 * 4352;  // by the pool: docs/design.md, "Memory"
  ManualTimer timer(1ms);
  Slabs slabs;
  Core* core = nullptr;
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

// When a timer looks for memory that no timeout needs, even if it is never idle. The worker of an idle timer sleeps.

/// A wheel in which no bucket comes up again while a test runs.
constexpr std::int64_t kLargeWheel = 1 << 17;

/// Each pass over the inbox may take a step of the Collector, which must not begin anew each time.
TEST_F(AfterAPeak, ABusyTimerGivesMemoryBackToo) {
  HastyTimer timer(500ms);
  peak(timer, 40'000);
  EXPECT_TRUE(eventually([&] {
    call_worker(*core_);
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
  // Handles of cancelled timeouts keep nodes without any work for the worker.
  std::vector<Timeout> kept;
  for (std::size_t i = 0; i < all.size(); i += 32) kept.push_back(all[i]);
  cancel_all(all);
  await_sleep(timer, 100ms);
  ASSERT_TRUE(all_is_resident());

  std::vector<Timeout> used = schedule(timer, kLarge / 2);
  for (Timeout& timeout : used) EXPECT_TRUE(timeout.cancel());
  call_worker(*core_);
  await_sleep(timer, 100ms);
  std::jthread([&] { kept.clear(); }).join();  // on another thread, because this thread's pool would keep them
  used.resize(kLarge / 10);
  EXPECT_TRUE(falls_to(slabs_.pages() / 2));
}

TEST_F(AfterAPeak, TheWorkerSleepsUntilItIsTimeToLookAndIfTheMemoryWasInUseWhenItLooked) {
  HastyTimer timer(500ms, kLargeWheel);
  peak(timer, 40'000);
  await_sleep(timer, 100ms);
  const std::vector<Timeout> in_use = schedule(timer, 40'000);
  await_transfer(timer);
  await_sleep(timer, 600ms);  // it looks meanwhile
}

/// A call of advance() makes at most 8 steps of a collection, so it takes only some milliseconds longer. The nodes are
/// those of pools whose threads do nothing more.
TEST_F(AfterAPeak, IsCollectedInSmallSteps) {
  constexpr int kThreads = 20, kEach = 10'000;
  // A step takes 2,048 nodes, and may exceed that because it takes whole batches.
  constexpr std::int64_t kNodesOfACall = 8 * (2048 + 4096 + 256);
  constexpr std::size_t kPagesOfACall = 8 * 8 * internal::Slab::kMaxPages;  // a step gives back at most 8 slabs
  ManualTimer timer(1ms);
  schedule(timer, 1, 0ns);
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
  ASSERT_EQ(ran_, kThreads * kEach + 1);
  std::int64_t collected = 0;
  std::size_t resident = slabs_.resident_pages();
  for (int i = 0; i != 120; ++i) {
    timer.advance(200ms);
    EXPECT_LE(core_->depot().collected - std::exchange(collected, core_->depot().collected), kNodesOfACall);
    const std::size_t before = std::exchange(resident, slabs_.resident_pages());
    EXPECT_LE(before, resident + kPagesOfACall) << "in call " << i;
  }
  EXPECT_LE(resident, little());
}

/// It tries again after a millisecond, not at the end of its tick of 10 minutes.
TEST(WithoutMemoryForTheWheel, TheWorkerSleepsForAMillisecondBetweenItsTries) {
  constexpr int kAlive = 200'000;
  HastyTimer timer(100ms, 512, 10min);
  timer.start();
  Shortage shortage(0, Shortage::kAll, Shortage::Of::OtherThreads);
  std::vector<TimeoutId> ids = far_ids(timer, kAlive);
  ASSERT_TRUE(eventually([&] { return shortage.failed() >= 3; }));
  for (int i = kAlive - 60'000; i < kAlive; ++i) timer.cancel(ids[static_cast<std::size_t>(i)]);
  std::this_thread::sleep_for(300ms);  // the Collector looks
  const auto begin = steady_clock::now();
  const std::int64_t before = timer.stats().wakeups;
  // A worker that tries again and again never sleeps, so it never wakes up.
  EXPECT_TRUE(eventually([&] { return timer.stats().wakeups >= before + 100; }));
  EXPECT_GE(steady_clock::now() - begin, 80ms);
  EXPECT_GT(timer.stats().backlog, 4096);
  shortage.end();
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
  EXPECT_EQ(timer.stop().size(), kAlive - 60'000U);
}

/// The Collector holds a third of the nodes and all free runs. Then a thread schedules as many timeouts as nodes are
/// left, or more.
TEST_F(AfterAPeak, GoesAfterTheNextLookIfAllThatIsLeftOrMoreIsUsedMeanwhile) {
  for (const bool more : {false, true}) {
    SCOPED_TRACE(more ? "more" : "all that is left");
    slabs_ = {};
    const std::int64_t at_first = bytes_in_use;
    {
      ManualTimer timer(1ms);
      peak(timer, 100'000);
      Depot& depot = core_->depot();
      std::vector<Timeout> timeouts;
      pass_seconds(timer, 60);
      ASSERT_LE(slabs_.resident_pages(), little());

      peak(timer, 40'000);
      timer.advance(200ms);  // begins to watch
      timer.advance(13s);    // collects a third
      ASSERT_LE(depot.free_nodes(), 30'000U);
      ASSERT_FALSE(depot.has_shortage());
      while ((more ? !depot.has_shortage() : depot.free_nodes() != 0) && timeouts.size() < 300'000) {
        timeouts.push_back(timer.new_timeout([] {}, kFar));
      }
      ASSERT_LT(timeouts.size(), 300'000U) << "no shortage was noted";
      timer.advance(1ms);
      cancel_all(timeouts);
      pass_seconds(timer, 60);
      EXPECT_LE(slabs_.resident_pages(), little());
    }
    EXPECT_LE(bytes_in_use - at_first, 64 << 10);
  }
}

}  // namespace
}  // namespace hwt::test
