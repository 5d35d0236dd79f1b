// The races that broke other timers, and some more, each hunted for a bounded time by several threads at once. Timeouts
// are counted: each has exactly one fate.

#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

constexpr auto kHunt = 700ms;

/// One per timeout: how often it ran and was cancelled.
struct Fate {
  void cancel(Timeout& timeout) { cancels += timeout.cancel() ? 1 : 0; }
  int total() const { return runs + cancels; }

  std::atomic<int> runs = 0;
  std::atomic<int> cancels = 0;
};
using Fates = std::vector<Fate>;

/// Several threads cancel timeouts at the moment when the worker claims them.
TEST(Races, CancelWhileFiring) {
  constexpr int kCancellers = 3;
  constexpr int kBatch = 400;
  HashedWheelTimer timer(1ms, 8);
  std::int64_t runs = 0;
  std::int64_t cancels = 0;
  for (const Deadline end(kHunt); !end.passed();) {
    const auto fates = std::make_shared<Fates>(kBatch);
    std::array<std::vector<Timeout>, kCancellers> handles;
    const auto due = steady_clock::now() + 3ms;
    for (int i = 0; i < kBatch; ++i) {
      const Timeout timeout = timer.new_timeout([fates, i] { ++(*fates)[i].runs; }, due - steady_clock::now());
      for (std::vector<Timeout>& mine : handles) mine.push_back(timeout);
    }
    run_together(kCancellers, [&](int canceller) {
      std::this_thread::sleep_until(due + 500us);
      for (int i = 0; i < kBatch; ++i) {
        const int at = canceller % 2 == 0 ? i : kBatch - 1 - i;
        (*fates)[at].cancel(handles[canceller][at]);
      }
    });
    EXPECT_TRUE(eventually([&] { return timer.pending_timeouts() == 0; }));
    for (int i = 0; i < kBatch; ++i) {  // no longer pending, perhaps still about to run
      ASSERT_TRUE(eventually([&] { return (*fates)[i].total() > 0; }));
      EXPECT_EQ((*fates)[i].cancels == 1, handles[0][i].is_cancelled());
      EXPECT_NE(handles[0][i].is_cancelled(), handles[0][i].is_expired());
    }
    for (const Fate& fate : *fates) {
      EXPECT_EQ(fate.total(), 1);
      runs += fate.runs;
      cancels += fate.cancels;
    }
  }
  EXPECT_EQ(timer.stats().expired, runs);
  EXPECT_EQ(timer.stats().cancelled, cancels);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

TEST(Races, DestroyInsideATask) {
  constexpr int kOthers = 40;
  for (const Deadline end(kHunt); !end.passed();) {
    CountingFactory workers;
    const auto fates = std::make_shared<Fates>(kOthers);
    auto timer = std::make_shared<HashedWheelTimer>(
        Options{.tick_duration = 1ms, .ticks_per_wheel = 8, .thread_factory = workers.factory()});
    std::vector<Timeout> timeouts;
    {
      const Gate gate(*timer);  // the task must not destroy the timer before the last new_timeout() has returned
      for (int i = 0; i < kOthers; ++i) {
        timeouts.push_back(timer->new_timeout([fates, i] { ++(*fates)[i].runs; }, (i % 4) * 1ms));
      }
      HashedWheelTimer& reference = *timer;
      timeouts.push_back(reference.new_timeout([owner = std::move(timer)]() mutable { owner.reset(); }, 1ms));
    }
    run_together(2, [&](int thread) {
      std::vector<Timeout> copies = timeouts;
      for (int i = 0; i < kOthers; ++i) {
        if (i % 2 == thread) (*fates)[i].cancel(copies[i]);
        std::this_thread::sleep_for(50us);
      }
    });
    ASSERT_TRUE(workers.wait_until_ended());
    for (int i = 0; i < kOthers; ++i) {
      const Fate& fate = (*fates)[i];
      EXPECT_LE(fate.total(), 1);  // none: it was cancelled by the destructor
      EXPECT_EQ(timeouts[i].is_expired(), fate.runs == 1);
      EXPECT_EQ(timeouts[i].is_cancelled(), fate.runs == 0);
      EXPECT_EQ(timeouts[i].timer(), nullptr);
    }
    EXPECT_TRUE(timeouts.back().is_expired());
  }
}

/// Here the destruction of a cancelled callable, on any thread, destroys the timer.
TEST(Races, DestroyInsideACancel) {
  for (const Deadline end(kHunt / 2); !end.passed();) {
    std::vector<Timeout> handles(2);
    {
      const auto timer = std::make_shared<HashedWheelTimer>(1ms, 8);
      handles[0] = timer->new_timeout([timer] {}, 1ms);
      handles[1] = handles[0];
      timer->new_timeout([] {}, 1ms);
    }
    std::atomic<int> wins = 0;
    run_together(2, [&](int thread) {
      std::this_thread::sleep_for(1500us);
      wins += handles[thread].cancel() ? 1 : 0;
    });
    EXPECT_LE(wins, 1);
    EXPECT_TRUE(eventually([&] { return handles[0].timer() == nullptr; }));
    EXPECT_EQ(wins == 1, handles[0].is_cancelled());
  }
}

// Only ThreadSanitizer finds a data race here.
TEST(Races, PrintingAHandleWhileItsTimerGoes) {
  for (int round = 0; round < 100; ++round) {
    auto timer = std::make_unique<HashedWheelTimer>(1ms);
    const Timeout timeout = timer->new_timeout([] {}, kFar);
    run_together(2, [&](int thread) {
      if (thread == 0) {
        timer.reset();
      } else {
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(contains(text_of(timeout), "ns later"));
      }
    });
  }
}

TEST(Limit, CopyingACallableTakesNoPlace) {
  struct SlowToCopy {
    explicit SlowToCopy(Hold& its_hold) : hold(its_hold) {}
    SlowToCopy(const SlowToCopy& other) : hold(other.hold) {
      hold();
      throw std::runtime_error("no copy");
    }
    void operator()() const {}
    Hold& hold;
  };
  HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = 1});
  Hold hold;
  const SlowToCopy slow(hold);
  std::jthread other([&] { EXPECT_THROW(timer.new_timeout(slow, kFar), std::runtime_error); });
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_EQ(timer.pending_timeouts(), 0);
  const Timeout mine = timer.try_new_timeout([] {}, kFar);
  EXPECT_TRUE(mine);
  hold.let_go();
  other.join();
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_EQ(timer.stats().rejected, 0);
}

/// The place is lost to another while the callable is copied: refused, and the copy is destroyed.
TEST(Limit, ACallerWhoLosesThePlaceWhileCopyingIsRefused) {
  struct Copied {
    explicit Copied(std::function<void()> its_meanwhile) : meanwhile(std::move(its_meanwhile)) {}
    Copied(const Copied& other) : token(std::make_shared<int>()), meanwhile(other.meanwhile) {
      other.watch = token;
      meanwhile();
    }
    void operator()() const {}
    mutable std::weak_ptr<int> watch;
    std::shared_ptr<int> token;
    std::function<void()> meanwhile;
  };
  for (const bool by_id : {false, true}) {
    HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = 1});
    Timeout winner;
    const Copied copied([&] { winner = timer.new_timeout([] {}, kFar); });
    const auto schedule = [&] { by_id ? void(timer.add(copied, kFar)) : void(timer.new_timeout(copied, kFar)); };
    EXPECT_THROW(schedule(), RejectedExecution);
    EXPECT_TRUE(winner);
    EXPECT_TRUE(copied.watch.expired());
    EXPECT_EQ(timer.pending_timeouts(), 1);
    EXPECT_EQ(timer.stats().rejected, 1);
    EXPECT_TRUE(winner.cancel());
    EXPECT_EQ(timer.pending_timeouts(), 0);
    // It leaves no memory in use.
    const std::int64_t bytes = bytes_in_use;
    for (int i = 0; i < 10'000; ++i) {
      EXPECT_THROW(schedule(), RejectedExecution);
      EXPECT_TRUE(winner.cancel());
    }
    EXPECT_LT(bytes_in_use - bytes, 10'000 * 32);
  }
}

/// One place, which one thread gives back and asks for again while another asks for it: exactly one of them gets it. A
/// refusal takes nothing from others, not even for a moment.
TEST(Limit, APlaceIsRefusedOnlyIfItIsTaken) {
  HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = 1});
  std::atomic<int> arrived = 0;
  std::atomic<bool> over = false;
  const auto meet = [&](int round) {
    ++arrived;
    for (int spins = 0; arrived < 2 * round; ++spins) {
      if (spins > 1000) std::this_thread::yield();
    }
  };
  Timeout rival;
  std::jthread other([&] {
    std::minstd_rand random(1);
    for (int round = 1;; round += 2) {
      meet(round);
      if (over) return;
      for (auto spin = random() % 512; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      rival = timer.try_new_timeout([] {}, kFar);
      meet(round + 1);
    }
  });
  std::minstd_rand random(2);
  Timeout mine = timer.new_timeout([] {}, kFar);
  const auto end = steady_clock::now() + 700ms;
  int both = 0;
  int none = 0;
  int rounds = 0;
  for (int round = 1;; round += 2) {
    over = rounds > 100 && steady_clock::now() >= end;
    meet(round);
    if (over) break;
    for (auto spin = random() % 512; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    mine.cancel();
    mine = timer.try_new_timeout([] {}, kFar);
    meet(round + 1);
    ++rounds;
    both += mine && rival ? 1 : 0;
    none += !mine && !rival ? 1 : 0;
    if (rival) {
      EXPECT_TRUE(rival.cancel());
      rival = Timeout();
      mine = timer.new_timeout([] {}, kFar);
    } else if (!mine) {
      mine = timer.new_timeout([] {}, kFar);
    }
  }
  EXPECT_EQ(both, 0) << "of " << rounds << " rounds";
  EXPECT_EQ(none, 0) << "of " << rounds << " rounds";
}

/// The task's cancelled() sees the writes of a thread before cancel(), whether the timeout was still in the queue or
/// not.
TEST(Handles, CancelPublishesToTheHook) {
  constexpr std::size_t kTasks = 300;
  HashedWheelTimer timer(1ms);
  run_together(2, [&](int thread) {
    std::vector<int> written(kTasks);  // not atomic: ordered by cancel() alone
    Latch done(kTasks);
    std::vector<Timeout> timeouts;
    for (int& number : written) {
      const auto read = [&] {
        EXPECT_EQ(number, 7);
        done.count_down();
      };
      timeouts.push_back(timer.new_timeout(on_cancelled(read), kFar));
    }
    if (thread == 0) await_transfer(timer);
    for (std::size_t i = 0; i < kTasks; ++i) {
      written[i] = 7;
      EXPECT_TRUE(timeouts[i].cancel());
    }
    EXPECT_TRUE(done.wait());
  });
}

}  // namespace
}  // namespace hwt::test
