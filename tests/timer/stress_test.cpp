// The limit and the handles under many threads. tests/oracle has random traffic, and counts how each timeout ends.

#include <algorithm>
#include <array>
#include <optional>
#include <random>

#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// The test's own count of pending timeouts, on the safe side, never exceeds the limit.
TEST(Limit, IsNeverExceeded) {
  constexpr std::int64_t kLimit = 40;
  const auto end = steady_clock::now() + 700ms;
  std::atomic<std::int64_t> pending = 0;  // at most the pending ones
  std::atomic<std::int64_t> most = 0;
  std::atomic<std::int64_t> refused = 0;
  HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = kLimit});
  run_together(4, [&](int thread) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::vector<Timeout> mine;
    while (steady_clock::now() < end) {
      Timeout timeout = timer.try_new_timeout([] {}, kFar);
      if (timeout) {
        const std::int64_t now = ++pending;
        for (std::int64_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        mine.push_back(std::move(timeout));
      } else {
        ++refused;
      }
      while (!mine.empty() && random() % 2 == 0) {
        --pending;
        EXPECT_TRUE(mine.back().cancel());
        mine.pop_back();
      }
    }
    for (Timeout& timeout : mine) {
      --pending;
      EXPECT_TRUE(timeout.cancel());
    }
  });
  EXPECT_LE(most, kLimit);
  EXPECT_GT(most, kLimit / 2);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(timer.stats().rejected, refused);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// A timeout below the limit is never refused, not for a moment.
TEST(Limit, RefusesNothingBelowIt) {
  constexpr int kThreads = 4;
  constexpr int kEach = 3;
  const auto end = steady_clock::now() + 500ms;
  std::atomic<std::int64_t> refused = 0;
  std::atomic<std::int64_t> runs = 0;
  HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = kThreads * kEach});
  run_together(kThreads, [&](int) {
    while (steady_clock::now() < end || runs <= kThreads) {  // a busy machine needs longer
      for (int i = 0; i < 100; ++i) {
        std::array<Timeout, kEach> mine;
        for (Timeout& timeout : mine) {
          timeout = timer.try_new_timeout([] {}, kFar);
          refused += timeout ? 0 : 1;
        }
        for (Timeout& timeout : mine) timeout.cancel();
      }
      // Its place is free when its task runs.
      std::atomic<bool> ran = false;
      timer.new_timeout([&] { ran = true; }, 0ns);
      EXPECT_TRUE(eventually([&] { return ran.load(); }));
      ++runs;
    }
  });
  EXPECT_EQ(refused, 0);
  EXPECT_GT(runs, kThreads);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// Only an accepted timeout takes a place. A callable that is still being copied, which may throw, takes none.
TEST(Limit, CopyingACallableTakesNoPlace) {
  struct SlowToCopy {
    SlowToCopy(Latch* entered, Latch* released) : entered_(entered), released_(released) {}
    SlowToCopy(const SlowToCopy& other) : SlowToCopy(other.entered_, other.released_) {
      entered_->count_down();
      EXPECT_TRUE(released_->wait());
      throw std::runtime_error("no copy");
    }
    void operator()() const {}

   private:
    Latch* entered_;
    Latch* released_;
  };
  HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = 1});
  Latch entered, released;
  const SlowToCopy slow(&entered, &released);
  std::jthread other([&] { EXPECT_THROW(timer.new_timeout(slow, kFar), std::runtime_error); });
  ASSERT_TRUE(entered.wait());
  EXPECT_EQ(timer.pending_timeouts(), 0);
  const Timeout mine = timer.try_new_timeout([] {}, kFar);
  EXPECT_TRUE(mine);
  released.count_down();
  other.join();
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_EQ(timer.stats().rejected, 0);
}

/// The place is lost to another while the callable is copied: refused, and the copy is destroyed.
TEST(Limit, ACallerWhoLosesThePlaceWhileCopyingIsRefused) {
  struct Copied {
    explicit Copied(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}
    Copied(const Copied& other) : token_(std::make_shared<int>()), meanwhile_(other.meanwhile_) {
      other.watch = token_;
      meanwhile_();
    }
    void operator()() const {}
    mutable std::weak_ptr<int> watch;

   private:
    std::shared_ptr<int> token_;
    std::function<void()> meanwhile_;
  };
  for (const bool by_id : {false, true}) {
    HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = 1});
    Timeout winner;
    const Copied copied([&] { winner = timer.new_timeout([] {}, kFar); });
    if (by_id) {
      EXPECT_THROW(timer.add(copied, kFar), RejectedExecution);
    } else {
      EXPECT_THROW(timer.new_timeout(copied, kFar), RejectedExecution);
    }
    EXPECT_TRUE(winner);
    EXPECT_TRUE(copied.watch.expired());
    EXPECT_EQ(timer.pending_timeouts(), 1);
    EXPECT_EQ(timer.stats().rejected, 1);
    EXPECT_TRUE(winner.cancel());
    EXPECT_EQ(timer.pending_timeouts(), 0);
    // It leaves no memory in use.
    const std::int64_t bytes = bytes_in_use;
    for (int i = 0; i < 10'000; ++i) {
      if (by_id) {
        EXPECT_THROW(timer.add(copied, kFar), RejectedExecution);
      } else {
        EXPECT_THROW(timer.new_timeout(copied, kFar), RejectedExecution);
      }
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
  class Reader : public TimerTask {
   public:
    void run(Timeout&) override { ADD_FAILURE() << "ran"; }
    void cancelled(Timeout&) override {
      sum += written;
      done.count_down();
    }
    int written = 0;  // not atomic: ordered by cancel() alone
    int sum = 0;
    Latch done;
  };
  constexpr int kThreads = 2;
  constexpr int kTasks = 300;
  HashedWheelTimer timer(1ms);
  run_together(kThreads, [&](int thread) {
    std::vector<std::shared_ptr<Reader>> tasks;
    std::vector<Timeout> timeouts;
    for (int i = 0; i < kTasks; ++i) {
      tasks.push_back(std::make_shared<Reader>());
      timeouts.push_back(timer.new_timeout(tasks.back(), kFar));
    }
    if (thread == 0) const Gate all_are_in_the_wheel(timer);
    for (int i = 0; i < kTasks; ++i) {
      tasks[static_cast<std::size_t>(i)]->written = 7;
      EXPECT_TRUE(timeouts[static_cast<std::size_t>(i)].cancel());
    }
    for (const std::shared_ptr<Reader>& task : tasks) {
      EXPECT_TRUE(task->done.wait());
      EXPECT_EQ(task->sum, 7);
    }
  });
}

/// The core of a timer goes with the last handle, whichever thread drops it, and only then.
TEST(Handles, OutliveTheTimerInManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kPerThread = 50;
  constexpr std::int64_t kLittle = 16 << 10;  // what threads remember of timers
  const auto end = steady_clock::now() + 1s;
  int rounds = 0;
  std::int64_t before = 0;
  do {
    if (rounds == 1) before = bytes_in_use;
    const auto task = std::make_shared<RecordingTask>();
    std::array<std::vector<Timeout>, kThreads> handles;
    std::optional<HashedWheelTimer> timer(std::in_place, 1ms, 8);
    for (int i = 0; i < kPerThread; ++i) {
      Timeout timeout;
      switch (i % 3) {
        case 0:
          timeout = timer->new_timeout(task, kFar);
          break;
        case 1:
          timeout = timer->new_timeout([task] {}, i % 2 == 0 ? 0ns : std::chrono::nanoseconds(kFar));
          break;
        default:
          timeout = timer->new_timeout([] {}, kFar);
          timeout.cancel();
      }
      for (std::vector<Timeout>& copies : handles) copies.push_back(timeout);
    }
    // In every third round the timer is destroyed while the threads drop their handles.
    if (rounds % 3 != 0) timer.reset();
    run_together(kThreads + 1, [&](int thread) {
      if (thread == kThreads) {
        timer.reset();
        return;
      }
      std::vector<Timeout>& mine = handles[static_cast<std::size_t>(thread)];
      for (Timeout& timeout : mine) {
        EXPECT_FALSE(timeout.is_expired() && timeout.cancel());
        const Timeout copy = timeout;
        timeout = Timeout();
        EXPECT_TRUE(copy);
      }
    });
    EXPECT_EQ(task.use_count(), 1);
    EXPECT_EQ(task->runs, 0);
    EXPECT_EQ(task->cancellations, (kPerThread + 2) / 3);
    ++rounds;
  } while ((steady_clock::now() < end || rounds <= 5) && !::testing::Test::HasFailure());
  EXPECT_LE(bytes_in_use - before, kLittle) << "after " << rounds << " timers";
}

/// One timer after the other, and threads that keep handles of all.
TEST(Handles, OfManyTimersAreKeptByThreads) {
  constexpr int kThreads = 3;
  constexpr int kTimers = 60;
  std::array<std::optional<HashedWheelTimer>, kTimers> timers;
  std::atomic<int> wrong = 0;
  std::array<std::vector<Timeout>, kThreads> kept;
  for (std::size_t t = 0; t < timers.size(); ++t) {
    timers[t].emplace(1ms, 8);
    run_together(kThreads, [&](int thread) {
      std::vector<Timeout>& mine = kept[static_cast<std::size_t>(thread)];
      for (int i = 0; i < 20; ++i) {
        mine.push_back(timers[t]->new_timeout([] {}, kFar));
        Timeout& old = mine[static_cast<std::size_t>(i) * 7 % mine.size()];
        const bool gone = old.timer() == nullptr;
        if (old.cancel() && gone) ++wrong;
      }
    });
    // A few live at once.
    if (t >= 3) timers[t - 3].reset();
  }
  for (auto& timer : timers) timer.reset();
  EXPECT_EQ(wrong, 0);
  run_together(kThreads, [&](int thread) {
    for (Timeout& timeout : kept[static_cast<std::size_t>(thread)]) {
      if (timeout.timer() != nullptr || timeout.cancel() || !timeout.is_cancelled()) ++wrong;
      timeout = Timeout();
    }
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hwt
