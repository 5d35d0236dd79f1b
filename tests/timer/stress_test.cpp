// Conservation: many threads schedule, cancel each other's timeouts, copy and drop handles, come and go, while the
// timer is stopped or destroyed under them. Each timeout is counted: it ends exactly once, its task is destroyed
// exactly once, and the timer's own counts agree.

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <random>

#include "tests/support/allocation_hook.h"
#include "tests/support/job_thread.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// What became of one timeout, and of its task.
struct Fate {
  std::atomic<int> runs = 0;
  std::atomic<int> cancels = 0;   // cancel() returned true
  std::atomic<int> returned = 0;  // stop() returned it
  std::atomic<int> told = 0;      // TimerTask::cancelled()
  std::atomic<int> alive = 0;     // tasks, copies on their way included
  bool accepted = false;
  bool shared = false;  // a TimerTask
};

// The task that runs now was returned by stop() and is run by the test.
constinit thread_local bool running_returned = false;

/// Counts the tasks that are alive; not trivial, so the timer must destroy it.
class Life {
 public:
  explicit Life(Fate& fate) : fate_(&fate) { ++fate_->alive; }
  Life(const Life& other) : fate_(other.fate_) { ++fate_->alive; }
  Life& operator=(const Life&) = delete;
  ~Life() { --fate_->alive; }

  void run() const {
    EXPECT_GE(fate_->alive, 1) << "ran after its destruction";
    ++(running_returned ? fate_->returned : fate_->runs);
  }
  Fate& fate() const { return *fate_; }

 private:
  Fate* fate_;
};

class StressTask : public TimerTask {
 public:
  explicit StressTask(Fate& fate) : life_(fate) {}
  void run(Timeout&) override { life_.run(); }
  void cancelled(Timeout& timeout) override {
    EXPECT_TRUE(timeout.is_cancelled());
    ++life_.fate().told;
  }

 private:
  Life life_;
};

/// Handles that all threads share.
class Exchange {
 public:
  struct Entry {
    Timeout timeout;
    Fate* fate = nullptr;
  };

  /// Leaves an entry and takes the one that was there.
  Entry swap(std::size_t place, Entry entry) {
    Slot& slot = slots_[place % slots_.size()];
    const std::lock_guard lock(slot.mutex);
    return std::exchange(slot.entry, std::move(entry));
  }
  Entry copy(std::size_t place) {
    Slot& slot = slots_[place % slots_.size()];
    const std::lock_guard lock(slot.mutex);
    return slot.entry;
  }
  void clear() {
    for (std::size_t i = 0; i < slots_.size(); ++i) swap(i, {});
  }

 private:
  struct Slot {
    std::mutex mutex;
    Entry entry;
  };
  std::array<Slot, 257> slots_;
};

enum class End { Stop, Destruction };

struct Setup {
  const char* name;
  End end;
  bool executor;
  std::int64_t max_pending;
  std::chrono::milliseconds length;  // of a round
};
void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.name; }

class Round {
 public:
  Round(const Setup& setup, unsigned seed) : setup_(setup), seed_(seed) {
    Options options{.tick_duration = 1ms, .ticks_per_wheel = 8, .max_pending_timeouts = setup.max_pending};
    if (setup.executor) {
      executor_.emplace(20);  // runs them late, because a job waits for up to 19 others
      options.executor = executor_->executor();
    }
    timer_.emplace(options);
  }

  void go() {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 3; ++i) threads.emplace_back([this, i] { schedule_and_cancel(seed_ * 16 + i); });
    threads.emplace_back([this] { come_and_go(seed_ * 16 + 8); });
    std::thread canceller([this] { cancel_only(seed_ * 16 + 9); });
    std::thread sampler([this] { sample(); });
    std::this_thread::sleep_for(setup_.length);  // how long the load lasts: there is no event to wait for

    std::vector<Timeout> unprocessed;
    if (setup_.end == End::Stop) {
      unprocessed = timer_->stop();  // in the middle of it all
      no_more_ = true;
      for (std::thread& thread : threads) thread.join();
      sampler_may_end_ = true;
      sampler.join();
      canceller_may_end_ = true;
      canceller.join();
      executor_.reset();
      check_counts(unprocessed.size());
      EXPECT_TRUE(timer_->stop().empty());
    } else {  // must not race new_timeout(), but may race everything that handles can do
      no_more_ = true;
      for (std::thread& thread : threads) thread.join();
      sampler_may_end_ = true;
      sampler.join();
      timer_.reset();
      canceller_may_end_ = true;
      canceller.join();
      executor_.reset();
    }
    running_returned = true;
    for (Timeout& timeout : unprocessed) timeout.task().run(timeout);
    running_returned = false;
    unprocessed.clear();
    exchange_.clear();
    timer_.reset();
    check_fates();
  }

  std::int64_t accepted() const { return accepted_; }
  std::int64_t runs() const { return total(&Fate::runs); }
  std::int64_t cancels() const { return total(&Fate::cancels); }
  std::int64_t returned() const { return total(&Fate::returned); }
  std::int64_t samples() const { return samples_; }

 private:
  Fate& new_fate() {
    const std::lock_guard lock(mutex_);
    return fates_.emplace_back();
  }

  /// Null when it is refused.
  Exchange::Entry schedule(std::minstd_rand& random, std::chrono::microseconds delay) {
    Fate& fate = new_fate();
    Timeout timeout;
    switch (random() % 4) {
      case 0: {
        fate.shared = true;
        timeout = timer_->try_new_timeout(std::make_shared<StressTask>(fate), delay);
        break;
      }
      case 1: {  // too large for the node
        const std::array<char, 40> more{};
        timeout = timer_->try_new_timeout(
            [life = Life(fate), more] {
              (void)more;
              life.run();
            },
            delay);
        break;
      }
      case 2:  // schedules another one; the timer is alive as long as tasks run on its worker
        timeout = timer_->try_new_timeout(
            [this, life = Life(fate), seed = static_cast<unsigned>(random())](Timeout& self) {
              life.run();
              if (no_more_ || setup_.executor || self.timer() == nullptr) return;
              std::minstd_rand own(seed);
              exchange_.swap(own(), schedule(own, 1ms));
            },
            delay);
        break;
      default:
        timeout = timer_->try_new_timeout([life = Life(fate)] { life.run(); }, delay);
    }
    if (!timeout) {
      EXPECT_EQ(fate.alive, 0) << "a refused task lives on";
      return {};
    }
    fate.accepted = true;
    ++accepted_;
    return {std::move(timeout), &fate};
  }

  static void cancel(Exchange::Entry& entry) {
    if (!entry.timeout) return;
    if (entry.timeout.cancel()) ++entry.fate->cancels;
  }

  void step(std::minstd_rand& random) {
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const std::array<std::chrono::microseconds, 4> delays{0us, 1500us, 20ms, 1h};
        Exchange::Entry old = exchange_.swap(random(), schedule(random, delays[random() % delays.size()]));
        if (random() % 2 == 0) cancel(old);
        break;
      }
      case 3: {  // at once, as most are
        Exchange::Entry entry = schedule(random, 5ms);
        cancel(entry);
        break;
      }
      case 4: {
        Exchange::Entry entry = exchange_.copy(random());
        const Exchange::Entry copy = entry;
        cancel(entry);
        EXPECT_TRUE(!copy.timeout || copy.timeout.is_cancelled() || copy.timeout.is_expired());
        break;
      }
      case 5:
        exchange_.swap(random(), exchange_.copy(random()));
        break;
      default:
        Exchange::Entry dropped = exchange_.swap(random(), {});
        if (dropped.timeout && random() % 2 == 0) cancel(dropped);
    }
  }

  void schedule_and_cancel(unsigned seed) {
    std::minstd_rand random(seed);
    for (int i = 0; !no_more_ && i < kMostSteps; ++i) step(random);
  }

  /// Threads that live for a few timeouts only.
  void come_and_go(unsigned seed) {
    for (int i = 0; !no_more_ && i < kMostSteps / 100; ++i) {
      std::thread([this, seed, i] {
        std::minstd_rand random(seed + static_cast<unsigned>(i));
        for (int k = 0; k < 10; ++k) step(random);
      }).join();
    }
  }

  /// Uses handles only, before and after the end of the timer.
  void cancel_only(unsigned seed) {
    std::minstd_rand random(seed);
    while (!canceller_may_end_) {
      Exchange::Entry entry = exchange_.copy(random());
      cancel(entry);
      std::this_thread::yield();
    }
  }

  void sample() {
    while (!sampler_may_end_) {
      const std::int64_t pending = timer_->pending_timeouts();
      const TimerStats stats = timer_->stats();
      ++samples_;
      if (pending < 0 || stats.pending < 0) ADD_FAILURE() << "pending: " << pending << ", " << stats.pending;
      EXPECT_TRUE(setup_.max_pending <= 0 || pending <= setup_.max_pending) << pending;
      std::this_thread::yield();
    }
  }

  void check_counts(std::size_t unprocessed) {
    const TimerStats stats = timer_->stats();
    EXPECT_TRUE(is_balanced(stats));
    EXPECT_EQ(stats.pending, 0);
    EXPECT_EQ(timer_->pending_timeouts(), 0);
    EXPECT_EQ(stats.scheduled, accepted_);
    EXPECT_EQ(stats.expired, runs());
    EXPECT_EQ(stats.cancelled, cancels());
    EXPECT_EQ(stats.unprocessed, static_cast<std::int64_t>(unprocessed));
  }

  void check_fates() {
    std::int64_t wrong_ends = 0;
    std::int64_t unprocessed = 0;
    std::int64_t wrongly_told = 0;
    std::int64_t refused_but_used = 0;
    std::int64_t alive = 0;
    for (const Fate& fate : fates_) {
      const int ends = fate.runs + fate.cancels + fate.returned;
      alive += fate.alive != 0 ? 1 : 0;
      if (!fate.accepted) {
        refused_but_used += ends + fate.told != 0 ? 1 : 0;
        continue;
      }
      const bool dropped = setup_.end == End::Destruction && ends == 0;  // pending when the timer went
      unprocessed += dropped ? 1 : 0;
      wrong_ends += ends != 1 && !dropped ? 1 : 0;
      wrongly_told += fate.told != (fate.shared && fate.runs == 0 ? 1 : 0) ? 1 : 0;
    }
    EXPECT_EQ(wrong_ends, 0) << "ended twice or never, of " << fates_.size();
    EXPECT_EQ(alive, 0) << "tasks were not destroyed exactly once";
    EXPECT_EQ(wrongly_told, 0) << "TimerTasks were not told exactly once that they had been cancelled";
    EXPECT_EQ(refused_but_used, 0) << "refused, and heard of the timer all the same";
    EXPECT_EQ(accepted_, runs() + cancels() + returned() + unprocessed);
  }

  std::int64_t total(std::atomic<int> Fate::* count) const {
    std::int64_t sum = 0;
    for (const Fate& fate : fates_) sum += fate.*count;
    return sum;
  }

  static constexpr int kMostSteps = 200'000;

  const Setup setup_;
  const unsigned seed_;
  std::mutex mutex_;
  std::deque<Fate> fates_;
  std::atomic<std::int64_t> accepted_ = 0;
  std::int64_t samples_ = 0;  // the sampler's
  std::atomic<bool> no_more_ = false;
  std::atomic<bool> canceller_may_end_ = false;
  std::atomic<bool> sampler_may_end_ = false;
  Exchange exchange_;
  std::optional<JobThread> executor_;
  std::optional<HashedWheelTimer> timer_;
};

class Conservation : public ::testing::TestWithParam<Setup> {};

/// Short rounds end the timer often, long ones let it work.
TEST_P(Conservation, EveryTimeoutEndsExactlyOnce) {
  const auto end = steady_clock::now() + 1s;
  std::int64_t accepted = 0;
  std::int64_t runs = 0;
  std::int64_t cancels = 0;
  std::int64_t returned = 0;
  std::int64_t samples = 0;
  unsigned rounds = 0;
  do {
    SCOPED_TRACE("round " + std::to_string(rounds));
    Round round(GetParam(), ++rounds);
    round.go();
    accepted += round.accepted();
    runs += round.runs();
    cancels += round.cancels();
    returned += round.returned();
    samples += round.samples();
  } while (steady_clock::now() < end && !HasFailure());
  // Timeouts have ended in every way.
  EXPECT_GT(accepted, 100);
  EXPECT_GT(runs, 0);
  EXPECT_GT(cancels, 0);
  EXPECT_GT(samples, 0) << "a short round may pass before the sampler has its turn, not all of them";
  EXPECT_EQ(returned > 0, GetParam().end == End::Stop);
}

INSTANTIATE_TEST_SUITE_P(Setups, Conservation,
                         ::testing::Values(Setup{"StopEarly", End::Stop, false, -1, 3ms},
                                           Setup{"StopLate", End::Stop, false, -1, 250ms},
                                           Setup{"StopWithALimit", End::Stop, false, 50, 20ms},
                                           Setup{"StopWithAnExecutor", End::Stop, true, -1, 20ms},
                                           Setup{"DestroyEarly", End::Destruction, false, -1, 3ms},
                                           Setup{"DestroyLate", End::Destruction, false, -1, 250ms},
                                           Setup{"DestroyWithAnExecutor", End::Destruction, true, 1000, 20ms}),
                         [](const auto& info) { return std::string(info.param.name); });

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
