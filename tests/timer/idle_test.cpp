// An idle timer costs nothing (promise 11), and still misses nothing: what wakes the worker, what does not, and how
// much it does at once (promise 10).

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/system.h"
#include "tests/support/test_support.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#endif

namespace hwt::test {
namespace {

constexpr int kSlower = kSanitized ? 5 : 1;

/// A timer whose worker's thread is known to the system.
class Watched : public ::testing::Test {
 protected:
  /// How often the worker has woken up: by the timer's count and by the system's.
  std::pair<std::int64_t, std::int64_t> wakeups() {
    std::int64_t switches = 0;
#if defined(__linux__)
    switches = std::stoll(system_says("voluntary_ctxt_switches:"));
#endif
    return {timer_.stats().wakeups, switches};
  }

  /// Returns whether the worker sleeps. Returns false while it only waits for a processor.
  bool worker_sleeps() {
#if defined(__linux__)
    return contains(system_says("State:"), "sleeping");
#else
    return true;
#endif
  }

#if defined(__linux__)
  /// The system's value for the worker under that key.
  std::string system_says(const std::string& key) {
    EXPECT_TRUE(eventually([&] { return worker_id_ != 0; }));
    std::ifstream status("/proc/self/task/" + std::to_string(worker_id_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.compare(0, key.size(), key) == 0) return line.substr(key.size());
    }
    ADD_FAILURE() << "no " << key;
    return "-1";
  }
#endif

  /// Waits until the worker has nothing more to do.
  void expect_rest() {
    EXPECT_TRUE(eventually([&] {
      const auto before = wakeups();
      std::this_thread::sleep_for(600ms);
      return wakeups() == before && worker_sleeps();
    })) << "the worker never comes to rest";
  }

  /// An earlier timeout still comes, in time.
  void expect_wakes_for(std::chrono::milliseconds delay) {
    RunLog run;
    const Timeout timeout = timer_.new_timeout([&] { run(); }, delay);
    const auto late = run.lateness(timeout);
    EXPECT_GE(late, 0ns);
    EXPECT_LT(late, 5s);
  }

  std::atomic<long> worker_id_ = 0;
  // A large wheel: no bucket comes up again while the test runs.
  HashedWheelTimer timer_{{.tick_duration = 1ms, .ticks_per_wheel = 1 << 17, .thread_factory = [this](auto body) {
                             return std::thread([this, body = std::move(body)] {
#if defined(__linux__)
                               worker_id_ = syscall(SYS_gettid);
#endif
                               body();
                             });
                           }}};
};

TEST_F(Watched, NothingIsPendingBeforeAndAfterUse) {
  timer_.start();
  expect_rest();
  EXPECT_EQ(timer_.stats().ticks, 0);
  expect_wakes_for(5ms);
  Latch ran(100);
  for (int i = 0; i < 100; ++i) timer_.new_timeout([&] { ran.count_down(); }, i % 20 * 1ms);
  ASSERT_TRUE(ran.wait());
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(timer_.new_timeout([] {}, kFar).cancel());
  expect_rest();
  EXPECT_EQ(timer_.pending_timeouts(), 0);
  expect_wakes_for(0ms);
  expect_rest();
}

TEST_F(Watched, OnlyFarTimeoutsPending) {
  std::vector<Timeout> timeouts;
  for (int i = 0; i < 1000; ++i) timeouts.push_back(timer_.new_timeout([] {}, kFar - i * 1s));
  // The worker leaves far timeouts in the inbox. This task is due now, in the same place, so its pass takes them all.
  ASSERT_TRUE(ran_in_task(timer_, [] {}));
  ASSERT_TRUE(eventually([&] { return timer_.stats().backlog == 0; }));
  expect_rest();
  // Some are cancelled after they came into the wheel: the worker learns of it when it is awake anyway.
  for (std::size_t i = 0; i < timeouts.size(); i += 2) EXPECT_TRUE(timeouts[i].cancel());
  expect_rest();
  expect_wakes_for(3ms);
  // The worker sleeps again, until the next that is left.
  expect_rest();
  EXPECT_EQ(timer_.pending_timeouts(), 500);
}

/// Dubbo on Windows sleeps for 0 ms in a loop.
TEST(Defects, DefectD9_WaitingForATickDoesNotSpin) {
  HashedWheelTimer timer(1ms);
  for (int i = 1; i <= 10; ++i) timer.new_timeout([] {}, i * 30ms);
  const double before = processor_seconds();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(processor_seconds() - before, 0.2) << "of processor time in 0.3 s";
  EXPECT_TRUE(none_pending(timer));
  timer.stop();
  EXPECT_LE(timer.stats().ticks, 10) << "it jumps over empty ticks";
  EXPECT_LE(timer.stats().wakeups, 10 * 4)
      << "the start of the sleep, the tick after the transfer, the end; not each of 30 ticks";
}

TEST(Idle, CancelledIsCalledInTheNextTickIfTheWorkerCancels) {
  constexpr auto kTick = 50ms;
  struct CancelsNext final : RecordingTask {
    void cancelled(Timeout& self) override {
      called = steady_clock::now().time_since_epoch() / 1ns;
      next.cancel();
      RecordingTask::cancelled(self);
    }
    std::int64_t called = 0;
    Timeout next;
  };
  std::int64_t least = 10;  // ticks between the two; more than one if the worker was preempted for long
  for (int attempt = 0; attempt < 10 && least > 1; ++attempt) {
    const auto first = std::make_shared<CancelsNext>();
    const auto second = std::make_shared<CancelsNext>();
    HashedWheelTimer timer(kTick);
    Timeout timeout = timer.new_timeout(first, kFar);
    first->next = timer.new_timeout(second, kFar);
    await_transfer(timer);
    EXPECT_TRUE(timeout.cancel());
    ASSERT_TRUE(second->was_cancelled.wait());
    const internal::TickGrid grid{internal::Node::of(timeout)->core().lifecycle().start_time(), kTick / 1ns};
    least = std::min(least, grid.at(second->called) - grid.at(first->called));
  }
  EXPECT_LE(least, 1) << "ticks between the two calls";
}

/// The inbox remembers the deadline of a cancelled request, so later ones need no other wake-up.
TEST(Idle, ARequestNowAndThenWakesTheWorkerOnce) {
  HashedWheelTimer timer(1ms);
  timer.new_timeout([] {}, kFar).cancel();
  std::this_thread::sleep_for(50ms);
  const std::int64_t before = timer.stats().wakeups;
  for (int i = 0; i < 5; ++i) {
    Timeout request = timer.new_timeout(must_not_run, kFar - 1min);
    std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(request.cancel());
    std::this_thread::sleep_for(600ms);
  }
  EXPECT_LE(timer.stats().wakeups - before, 2);
}

/// The worker goes to sleep for long again and again, and each time a timeout comes just then. If its wake-up is lost,
/// it waits for ever: nothing else would wake the worker.
TEST(Idle, NoWakeUpIsLost) {
  constexpr auto kHunt = 2s;
  constexpr int kThreads = 2;
  // Threads with a place in the inbox. Each place has an entry that is due far in the future. The worker must notice
  // an entry that comes to one of the places just as it goes to sleep.
  constexpr int kCrowd = 1000 / kSlower;
  constexpr int kRounds = 100 / kSlower;
  std::atomic<int> rounds = 0;
  run_together(kThreads, [&](int thread) {
    std::atomic<bool> ran = false;
    HashedWheelTimer timer(1ms);
    {
      Latch all_here(kCrowd);
      Latch go_home;
      auto crowd = start_threads(kCrowd, [&](int) {
        timer.new_timeout([] {}, kFar);
        all_here.count_down();
        EXPECT_TRUE(go_home.wait());
      });
      EXPECT_TRUE(all_here.wait());
      timer.new_timeout([] {}, kFar);
      go_home.count_down();
    }
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (const Deadline end(kHunt); !end.passed() || rounds <= kRounds;) {  // a busy machine needs longer
      ran = false;
      const auto scheduled_at = steady_clock::now();
      timer.new_timeout([&] { ran = true; }, 0ns);
      std::this_thread::sleep_for(500us);
      while (!ran && steady_clock::now() - scheduled_at < kGenerous) std::this_thread::yield();
      if (!ran) {
        ADD_FAILURE() << "lost, after " << rounds << " rounds";
        break;
      }
      ++rounds;
      // After the due tasks, the worker finds nothing more to do and falls asleep for long.
      for (auto spin = random() % 4096; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
    }
  });
  EXPECT_GT(rounds, kRounds);
}

/// While a cancelled() holds up the worker, it has taken more entries from the queue.
TEST(Transfers, EntriesInTheWorkersHandAreBacklog) {
  Hold hold;
  HashedWheelTimer timer(1ms);
  {
    Gate gate(timer);
    timer.new_timeout(on_cancelled([&] { hold(); }), kFar).cancel();
    for (int i = 0; i < 99; ++i) timer.new_timeout([] {}, kFar);
    EXPECT_EQ(timer.stats().backlog, 100);
  }
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_EQ(timer.stats().backlog, 99);
  hold.let_go();
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
}

/// The entry that the worker looks at is no longer backlog. This also holds while stop() cancels.
TEST(Transfers, TimeoutsThatStopCancelsAreNoBacklogAnyMore) {
  std::vector<std::int64_t> left;
  std::int64_t all = 0;
  HashedWheelTimer timer(1ms);
  {
    std::jthread stopper;
    Gate gate(timer);
    for (int i = 0; i < 3; ++i) timer.new_timeout(on_cancelled([&] { left.push_back(timer.stats().backlog); }), kFar);
    stopper = std::jthread([&] { timer.stop(); });
    wait_until_refusing(timer);
    all = timer.stats().backlog;
    gate.open();
  }
  EXPECT_EQ(left, (std::vector<std::int64_t>{all - 1, all - 2, all - 3}));
}

/// A thread factory that holds the worker up until then.
std::function<std::thread(std::function<void()>)> begins_with(Latch& go) {
  return [&go](std::function<void()> body) {
    return std::thread([&go, body = std::move(body)] {
      EXPECT_TRUE(go.wait());
      body();
    });
  };
}

TEST(Transfers, GoOnInsteadOfSleeping) {
  constexpr int kFlood = 350'000;
  constexpr auto kTick = 20s;
  Latch go;  // when everything is queued
  HashedWheelTimer timer({.tick_duration = kTick, .thread_factory = begins_with(go)});
  for (int i = 0; i < kFlood; ++i) timer.new_timeout([] {}, kFar);
  EXPECT_EQ(timer.stats().backlog, kFlood);
  const auto begin = steady_clock::now();
  go.count_down();
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; }, kTick));
  EXPECT_LT(steady_clock::now() - begin, kTick / 2);
  EXPECT_EQ(timer.pending_timeouts(), kFlood);
  EXPECT_EQ(timer.stats().ticks, 0);
  EXPECT_LE(timer.stats().wakeups, 2) << "it slept between the passes";
}

/// The worker takes a timeout when it starts, and sleeps until the end of the tick of that one. It is woken for a
/// timeout that is due before, also if its deadline has passed. But it does not take the timeout before the end of its
/// tick, because most are cancelled before.
TEST(Transfers, WaitForTheEndOfTheTickThatTheTimeoutIsDueIn) {
  constexpr auto kTick = 10h;
  const When past = steady_clock::now() - 1h;
  for (const std::optional<When>& when : {std::optional<When>(), {0ns}, {past}, {steady_clock::time_point::min()}}) {
    Latch go;  // when the first timeout is queued
    HashedWheelTimer timer({.tick_duration = kTick, .thread_factory = begins_with(go)});
    Timeout first = timer.new_timeout([] {}, when ? When(10 * kTick) : When(0ns));
    const internal::Sleeper& sleeper = internal::Node::of(first)->core().sleeper();
    go.count_down();
    ASSERT_TRUE(eventually([&] { return timer.stats().backlog == 0 && !sleeper.awake(); }));
    if (when) {
      const std::int64_t before = timer.stats().wakeups;
      Timeout soon = timer.new_timeout(must_not_run, *when);
      ASSERT_TRUE(eventually([&] { return timer.stats().wakeups > before && !sleeper.awake(); })) << "not told";
      EXPECT_EQ(timer.stats().backlog, 1);
      EXPECT_TRUE(first.reschedule(*when)) << "to the past, too";
      EXPECT_TRUE(soon.cancel());
      EXPECT_TRUE(first.cancel());
    } else {
      come_to_rest(timer);
      EXPECT_TRUE(first.cancel());
    }
  }
}

/// A worker that has just had something to do sleeps as long as any other, and is woken in time. Ticks below 1 ms are
/// those of a HierarchicalWheelTimer.
class AfterAPass : public ::testing::TestWithParam<std::chrono::nanoseconds> {
 protected:
  static constexpr int kRounds = 12;

  void make_busy() {
    await_transfer(*timer_);
    std::this_thread::sleep_for(4ms);  // some ticks: it sleeps by now
  }

  /// Schedules a timeout that is later than all others, so that it does not wake the worker. It is in the queue or in
  /// the wheel, and the worker has slept for some ticks or for long. Judges what end(timeout, state) returns.
  template <class State, class Schedule, class End>
  void expect_in_time_anywhere(Schedule schedule, End end) {
    for (const bool queued : {true, false}) {
      SCOPED_TRACE(queued ? "queued" : "in the wheel");
      expect_in_time(kRounds, [&](int round) {
        const auto state = std::make_shared<State>();
        Timeout timeout;
        if (!queued) timeout = schedule(state);
        make_busy();
        if (round % 3 == 0) come_to_rest(*timer_, 10ms);
        if (queued) timeout = schedule(state);
        return end(timeout, *state);
      });
    }
  }

  const std::unique_ptr<Timer> timer_ = []() -> std::unique_ptr<Timer> {
    if (GetParam() < 1ms) return std::make_unique<HierarchicalWheelTimer>(GetParam());
    return std::make_unique<HashedWheelTimer>(GetParam(), 1 << 17);  // no bucket comes up again while the test runs
  }();
};

INSTANTIATE_TEST_SUITE_P(Ticks, AfterAPass, ::testing::Values(1ms, 1us, 10us, 333us),
                         [](const auto& info) { return std::to_string(info.param / 1us) + "us"; });

TEST_P(AfterAPass, AnEarlierTimeoutIsInTime) {
  expect_in_time(kRounds, [&](int) {
    make_busy();
    RunLog run;
    const Timeout timeout = timer_->new_timeout([&] { run(); }, 2ms);
    return run.lateness(timeout);
  });
}

TEST_P(AfterAPass, CancelledIsCalledInTime) {
  expect_in_time_anywhere<RecordingTask>([&](const auto& task) { return timer_->new_timeout(task, 2 * kFar); },
                                         [](Timeout& timeout, RecordingTask& task) {
                                           const auto time = time_until_cancelled(timeout, task);
                                           EXPECT_EQ(task.cancellations, 1);
                                           return time;
                                         });
}

TEST_P(AfterAPass, AnEarlierDeadlineIsInTime) {
  timer_->new_timeout([] {}, kFar);
  expect_in_time_anywhere<RunLog>([&](const auto& run) { return timer_->new_timeout([run] { (*run)(); }, 2 * kFar); },
                                  [](Timeout& timeout, RunLog& run) {
                                    EXPECT_TRUE(timeout.reschedule(2ms));
                                    return run.lateness(timeout);
                                  });
}

}  // namespace
}  // namespace hwt::test
