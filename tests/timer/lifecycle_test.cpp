// start(), stop(), the destructor and fork().

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "hashed_wheel_timer/schedule.h"
#include "tests/support/system.h"
#include "tests/support/test_support.h"
#if !defined(_WIN32)
#include "tests/support/forked_child.h"
#endif

namespace hwt::test {
namespace {

// Starting.

TEST(Start, ConcurrentlyMakesOneWorker) {
  for (int round = 0; round < 50; ++round) {
    CountingFactory workers;
    HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = workers.factory()}};
    run_together(4, [&](int thread) {
      if (thread % 2 == 0) timer.start();
      if (thread % 2 == 1) timer.new_timeout([] {}, kFar);
    });
    EXPECT_EQ(workers.calls(), 1);
    EXPECT_EQ(timer.pending_timeouts(), 2);
  }
}

TEST(Start, FailsForAllCallersThatWaitedAndCanBeRepeated) {
  std::atomic<bool> fail = true;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()> body) {
                            std::this_thread::sleep_for(1ms);
                            if (fail) throw std::runtime_error("no thread");
                            return std::thread(std::move(body));
                          }}};
  std::atomic<int> failures = 0;
  run_together(4, [&](int) {
    try {
      timer.start();
    } catch (const std::runtime_error&) {
      ++failures;
    }
  });
  EXPECT_EQ(failures, 4);
  fail = false;
  EXPECT_NO_THROW(timer.start());
  EXPECT_NO_THROW(timer.new_timeout([] {}, kFar));
}

TEST(Start, TheWorkerHasAName) {
  std::optional<std::string> name;
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&] { name = thread_name(); }));
  if (!name) GTEST_SKIP() << "the system does not tell";
  EXPECT_EQ(name, "hwt-worker");
}

// Stopping.

TEST(Stop, BeforeStart) {
  CountingFactory workers;
  HashedWheelTimer timer{{.thread_factory = workers.factory()}};
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_THROW(timer.start(), IllegalState);
  EXPECT_THROW(timer.new_timeout([] {}, 0ms), IllegalState);
  EXPECT_THROW(timer.new_timeout(std::make_shared<RecordingTask>(), 0ms), IllegalState);
  EXPECT_FALSE(timer.try_new_timeout([] {}, 0ms));
  EXPECT_EQ(workers.calls(), 0);
}

/// Returns once a task of some 20 ms is running. Its result becomes true when that task ends.
std::shared_ptr<const std::atomic<bool>> start_long_task(Timer& timer) {
  const auto running = std::make_shared<Latch>();
  const auto finished = std::make_shared<std::atomic<bool>>(false);
  after(timer, 0ms, [running, finished] {
    running->count_down();
    std::this_thread::sleep_for(20ms);
    *finished = true;
  });
  EXPECT_TRUE(running->wait());
  return finished;
}

TEST(Stop, ConcurrentlyAllWaitAndOneGetsTheSet) {
  constexpr int kStoppers = 4;
  std::array<std::vector<Timeout>, kStoppers> results;
  std::atomic<bool> gate_is_open = false;
  std::atomic<int> too_soon = 0;
  HashedWheelTimer timer(1ms);
  for (int i = 0; i < 10; ++i) timer.new_timeout([] {}, kFar);
  Gate gate(timer);
  std::vector<std::jthread> stoppers;
  for (std::vector<Timeout>& result : results) {
    stoppers.emplace_back([&] {
      result = timer.stop();
      if (!gate_is_open) ++too_soon;
    });
  }
  wait_until_refusing(timer);
  std::this_thread::sleep_for(20ms);
  gate_is_open = true;
  gate.open();
  stoppers.clear();
  EXPECT_EQ(too_soon, 0) << "stop() returned while the worker was in a task";
  std::size_t non_empty = 0;
  std::size_t returned = 0;
  for (const std::vector<Timeout>& result : results) {
    non_empty += result.empty() ? 0 : 1;
    returned += result.size();
  }
  EXPECT_EQ(non_empty, 1U);
  EXPECT_EQ(returned, 10U);  // without the probes, which were cancelled before the gate opened
  EXPECT_EQ(static_cast<std::int64_t>(returned), timer.stats().unprocessed);
}

TEST(Stop, WhileAFactoryFailsInStart) {
  Hold hold;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()>) -> std::thread {
                            hold();
                            throw std::runtime_error("no thread");
                          }}};
  std::jthread starter([&] { EXPECT_ANY_THROW(timer.start()); });
  ASSERT_TRUE(hold.wait_until_entered());
  std::atomic<bool> stopped = false;
  std::jthread stopper([&] {
    EXPECT_TRUE(timer.stop().empty());
    stopped = true;
  });
  std::this_thread::sleep_for(20ms);  // stop() waits for the start
  EXPECT_FALSE(stopped);
  hold.let_go();
  EXPECT_TRUE(eventually([&] { return stopped.load(); }));
  EXPECT_THROW(timer.start(), IllegalState);
}

class StopsInCancelled : public RecordingTask {
 public:
  void cancelled(Timeout& timeout) override {
    EXPECT_THROW(timeout.timer()->stop(), IllegalState);
    RecordingTask::cancelled(timeout);
  }
};

TEST(Stop, InsideCancelledThrows) {
  const auto task = std::make_shared<StopsInCancelled>();
  HashedWheelTimer timer(1ms);
  timer.new_timeout(task, kFar).cancel();
  EXPECT_TRUE(task->was_cancelled.wait());
}

TEST(Stop, InsideATaskThrowsEvenWhileAnotherThreadStops) {
  Hold hold;
  std::atomic<bool> refused = false;
  HashedWheelTimer timer(1ms);
  after(timer, 0ms, [&] {
    hold();
    EXPECT_THROW(timer.stop(), IllegalState);
    EXPECT_THROW(timer.new_timeout([] {}, 0ms), IllegalState);
    refused = true;
  });
  ASSERT_TRUE(hold.wait_until_entered());
  std::jthread stopper([&] { timer.stop(); });
  wait_until_refusing(timer);
  hold.let_go();
  stopper.join();
  EXPECT_TRUE(refused);
}

TEST(Stop, FromAnExecutorThread) {
  std::atomic<std::size_t> unprocessed = 0;
  ThreadPerJob pool;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = pool.executor()}};
  timer.new_timeout([] {}, kFar);
  ASSERT_TRUE(ran_in_task(timer, [&] { unprocessed = timer.stop().size(); }));
  EXPECT_EQ(unprocessed, 1U);
  EXPECT_THROW(timer.start(), IllegalState);
}

TEST(Stop, FromATaskOfAnotherTimer) {
  std::atomic<std::size_t> unprocessed = 0;
  HashedWheelTimer victim(1ms);
  HashedWheelTimer timer(1ms);
  victim.new_timeout([] {}, kFar);
  ASSERT_TRUE(ran_in_task(timer, [&] { unprocessed = victim.stop().size(); }));
  EXPECT_EQ(unprocessed, 1U);
}

TEST(Stop, ATaskThatSchedulesDuringItIsRefusedAndReported) {
  ErrorLog log;
  Hold hold;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
  after(timer, 0ms, [&](Timeout& timeout) {
    hold();
    timeout.timer()->new_timeout([] {}, 0ms);
  });
  ASSERT_TRUE(hold.wait_until_entered());
  std::jthread stopper([&] { EXPECT_TRUE(timer.stop().empty()); });
  wait_until_refusing(timer);
  hold.let_go();
  stopper.join();
  EXPECT_EQ(log.errors().size(), 1U);
}

// The destructor.

TEST(Destructor, WithoutStopEndsTheWorkerAndCancels) {
  CountingFactory workers;
  Timeout plain, shared;
  const auto task = std::make_shared<RecordingTask>();
  {
    HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = workers.factory()}};
    plain = timer.new_timeout([] { ADD_FAILURE(); }, kFar);
    shared = timer.new_timeout(task, kFar);
  }
  EXPECT_TRUE(workers.wait_until_ended());
  EXPECT_TRUE(plain.is_cancelled() && shared.is_cancelled());
  EXPECT_FALSE(plain.cancel() || shared.cancel());
  EXPECT_EQ(task->cancellations, 1);
}

TEST(Destructor, WaitsForTheRunningTask) {
  std::shared_ptr<const std::atomic<bool>> finished;
  {
    HashedWheelTimer timer(1ms);
    finished = start_long_task(timer);
  }
  EXPECT_TRUE(*finished);
}

TEST(Destructor, InsideATaskOnTheWorker) {
  CountingFactory workers;
  Latch gone;
  const auto task = std::make_shared<RecordingTask>();
  std::atomic<int> later_runs = 0;
  const auto of_options = std::make_shared<int>();
  auto timer = std::make_unique<HashedWheelTimer>(
      Options{.tick_duration = 1ms, .thread_factory = workers.factory(), .on_task_error = [of_options](auto&&...) {}});
  timer->new_timeout(task, kFar);
  {
    const Gate gate(*timer);
    after(*timer, 0ms, [&](Timeout& self) {
      timer.reset();
      EXPECT_EQ(self.timer(), nullptr);
      EXPECT_TRUE(self.is_expired());
      gone.count_down();
    });
    for (int i = 0; i < 5; ++i) timer->new_timeout([&] { ++later_runs; }, 0ms);
  }
  ASSERT_TRUE(gone.wait());
  ASSERT_TRUE(workers.wait_until_ended());
  EXPECT_EQ(later_runs, 0) << "due in the same tick, behind the one that destroyed the timer";
  EXPECT_EQ(task->cancellations, 1);
  EXPECT_EQ(task.use_count(), 1);
  EXPECT_EQ(of_options.use_count(), 1);
}

class DestroysInCancelled : public TimerTask {
 public:
  explicit DestroysInCancelled(std::unique_ptr<HashedWheelTimer>& timer) : timer_(timer) {}
  void run(Timeout&) override { ADD_FAILURE(); }
  void cancelled(Timeout&) override { timer_.reset(); }

 private:
  std::unique_ptr<HashedWheelTimer>& timer_;
};

TEST(Destructor, InsideCancelledOnTheWorker) {
  CountingFactory workers;
  auto timer = std::make_unique<HashedWheelTimer>(Options{.tick_duration = 1ms, .thread_factory = workers.factory()});
  const auto task = std::make_shared<DestroysInCancelled>(timer);
  const auto other = std::make_shared<RecordingTask>();
  Timeout timeout = timer->new_timeout(task, kFar);
  timer->new_timeout(other, kFar);
  EXPECT_TRUE(timeout.cancel());
  ASSERT_TRUE(workers.wait_until_ended());
  EXPECT_EQ(timeout.timer(), nullptr);
  EXPECT_EQ(other->cancellations, 1);
}

TEST(Destructor, InsideATaskOnAnExecutorThread) {
  CountingFactory workers;
  Latch gone;
  ThreadPerJob pool;
  auto timer = std::make_unique<HashedWheelTimer>(
      Options{.tick_duration = 1ms, .executor = pool.executor(), .thread_factory = workers.factory()});
  const Timeout pending = timer->new_timeout([] {}, kFar);
  after(*timer, 5ms, [&] {
    timer.reset();
    gone.count_down();
  });
  ASSERT_TRUE(gone.wait());
  EXPECT_TRUE(workers.wait_until_ended());
  EXPECT_TRUE(pending.is_cancelled());
}

// fork().

#if !defined(_WIN32)
// Schedules keep the timer alive while they make their next wait, and fork() may come at any moment of that.
TEST(Fork, AChildOfATimerWithBusySchedulesCanDestroyIt) {
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  for (int i = 0; i < 5000; ++i) schedule(*timer, Schedule::fixed_rate(0ms, 1ms), [] {});
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(status_of_child([&] { return timer.reset(), 0; }), 0);
  }
}

TEST(Fork, AChildOfATimerThatIsBeingStoppedCanDestroyIt) {
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  std::jthread stopper;
  {
    const Gate gate(*timer);
    stopper = std::jthread([&] { timer->stop(); });
    wait_until_refusing(*timer);
    EXPECT_EQ(status_of_child([&] { return timer.reset(), 0; }), 0);
  }
}

TEST(Fork, AChildMayStopTheTimerInsideItsThreadFactory) {
  const pid_t parent = getpid();
  int status = -1;
  HashedWheelTimer* started = nullptr;
  HashedWheelTimer timer({.thread_factory = [&](std::function<void()> body) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      started->stop();
      throw std::runtime_error("no thread for a child");
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return std::thread(std::move(body));
  }});
  started = &timer;
  try {
    timer.start();
  } catch (const std::runtime_error&) {
    if (getpid() == parent) throw;
    end_child(0);
  }
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace hwt::test
