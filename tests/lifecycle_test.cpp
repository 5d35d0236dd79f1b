// start(), stop(), the destructor; where tasks run, and what happens to the exceptions they throw.

#ifdef __linux__
#include <pthread.h>
#endif

#include <array>
#include <stdexcept>

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "hashed_wheel_timer/schedule.h"
#include "test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

// Starting.

TEST(Start, IsLazy) {
  CountingFactory workers;
  HashedWheelTimer timer{{.thread_factory = workers.factory()}};
  timer.pending_timeouts();
  timer.stats();
  timer.now();
  EXPECT_EQ(workers.calls(), 0);
  timer.new_timeout([] {}, kFar);
  EXPECT_EQ(workers.calls(), 1);
}

TEST(Start, IsIdempotent) {
  CountingFactory workers;
  HashedWheelTimer timer{{.thread_factory = workers.factory()}};
  for (int i = 0; i < 3; ++i) timer.start();
  EXPECT_EQ(workers.calls(), 1);
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

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

TEST(Start, FailsForAllWhoWaitedAndCanBeRepeated) {
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

#ifdef __linux__
TEST(Start, TheWorkerHasAName) {
  std::array<char, 16> name{};
  Latch done;
  HashedWheelTimer timer(1ms);
  timer.new_timeout(
      [&] {
        pthread_getname_np(pthread_self(), name.data(), name.size());
        done.count_down();
      },
      0ms);
  ASSERT_TRUE(done.wait());
  EXPECT_STREQ(name.data(), "hwt-worker");
}
#endif

TEST(Start, AllTasksRunOnTheOneWorker) {
  std::atomic<std::thread::id> worker{};
  std::atomic<int> elsewhere = 0;
  Latch done(20);
  HashedWheelTimer timer(1ms);
  timer.new_timeout([&] { worker = std::this_thread::get_id(); }, 0ms);
  for (int i = 0; i < 20; ++i) {
    timer.new_timeout(
        [&] {
          if (worker != std::this_thread::get_id()) ++elsewhere;
          done.count_down();
        },
        i * 1ms);
  }
  ASSERT_TRUE(done.wait());
  EXPECT_EQ(elsewhere, 0);
  EXPECT_NE(worker, std::this_thread::get_id());
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

TEST(Stop, TwiceReturnsEmpty) {
  HashedWheelTimer timer;
  timer.new_timeout([] {}, kFar);
  EXPECT_EQ(timer.stop().size(), 1U);
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

TEST(Stop, ReturnsWhatWasPendingAndNothingElse) {
  Latch ran;
  HashedWheelTimer timer(1ms);
  const Timeout pending = timer.new_timeout([] {}, kFar);
  timer.new_timeout([&] { ran.count_down(); }, 0ms);
  timer.new_timeout([] {}, kFar).cancel();
  ASSERT_TRUE(ran.wait());
  EXPECT_EQ(timer.stop(), std::vector<Timeout>{pending});
  EXPECT_TRUE(pending.is_cancelled());
}

TEST(Stop, EndsTheWorker) {
  CountingFactory workers;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = workers.factory()}};
  timer.start();
  timer.stop();
  EXPECT_TRUE(workers.wait_until_ended());
}

TEST(Stop, DoesNotWaitForATick) {
  HashedWheelTimer timer(1h);
  timer.new_timeout([] {}, 0ms);
  const auto before = steady_clock::now();
  EXPECT_EQ(timer.stop().size(), 1U);
  EXPECT_LT(steady_clock::now() - before, kGenerous);
}

TEST(Stop, WaitsForTheRunningTask) {
  std::atomic<bool> finished = false;
  Latch running;
  HashedWheelTimer timer(1ms);
  timer.new_timeout(
      [&] {
        running.count_down();
        std::this_thread::sleep_for(30ms);
        finished = true;
      },
      0ms);
  ASSERT_TRUE(running.wait());
  timer.stop();
  EXPECT_TRUE(finished);
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
  EXPECT_GE(returned, 10U);  // and the probes that were accepted and cancelled are not in it
  EXPECT_EQ(static_cast<std::int64_t>(returned), timer.stats().unprocessed);
}

TEST(Stop, WhileAFactoryBlocksInStart) {
  Latch in_factory;
  Latch go_on;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()> body) {
                            in_factory.count_down();
                            EXPECT_TRUE(go_on.wait());
                            return std::thread(std::move(body));
                          }}};
  std::atomic<bool> started = false;
  std::jthread starter([&] {
    try {
      timer.start();
    } catch (const IllegalState&) {
    }
    started = true;
  });
  ASSERT_TRUE(in_factory.wait());
  std::atomic<bool> stopped = false;
  std::jthread stopper([&] {
    timer.stop();
    stopped = true;
  });
  go_on.count_down();
  EXPECT_TRUE(eventually([&] { return started && stopped; }));
  EXPECT_THROW(timer.start(), IllegalState);
}

TEST(Stop, WhileAFactoryFailsInStart) {
  Latch in_factory;
  Latch go_on;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()>) -> std::thread {
                            in_factory.count_down();
                            EXPECT_TRUE(go_on.wait());
                            throw std::runtime_error("no thread");
                          }}};
  std::jthread starter([&] { EXPECT_ANY_THROW(timer.start()); });
  ASSERT_TRUE(in_factory.wait());
  std::atomic<bool> stopped = false;
  std::jthread stopper([&] {
    EXPECT_TRUE(timer.stop().empty());
    stopped = true;
  });
  go_on.count_down();
  EXPECT_TRUE(eventually([&] { return stopped.load(); }));
  EXPECT_THROW(timer.start(), IllegalState);
}

TEST(Stop, InsideATaskThrows) {
  std::string in_run, in_run_again;
  Latch done;
  HashedWheelTimer timer(1ms);
  timer.new_timeout(
      [&](Timeout& timeout) {
        in_run = message_of<IllegalState>([&] { timeout.timer()->stop(); });
        in_run_again = message_of<IllegalState>([&] { timer.stop(); });
        done.count_down();
      },
      0ms);
  ASSERT_TRUE(done.wait());
  EXPECT_TRUE(contains(in_run, "stop")) << in_run;
  EXPECT_EQ(in_run_again, in_run);
  EXPECT_NO_THROW(timer.new_timeout([] {}, kFar)) << "the refused stop() changed nothing";
  EXPECT_EQ(timer.stop().size(), 1U);
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
  Latch running;
  Latch stop_requested;
  std::atomic<bool> refused = false;
  HashedWheelTimer timer(1ms);
  timer.new_timeout(
      [&] {
        running.count_down();
        EXPECT_TRUE(stop_requested.wait());
        EXPECT_THROW(timer.stop(), IllegalState);
        EXPECT_THROW(timer.new_timeout([] {}, 0ms), IllegalState);
        refused = true;
      },
      0ms);
  ASSERT_TRUE(running.wait());
  std::jthread stopper([&] { timer.stop(); });
  wait_until_refusing(timer);
  stop_requested.count_down();
  stopper.join();
  EXPECT_TRUE(refused);
}

TEST(Stop, FromAnExecutorThread) {
  std::atomic<std::size_t> unprocessed = 0;
  Latch stopped;
  ThreadPerJob pool;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = pool.executor()}};
  timer.new_timeout([] {}, kFar);
  timer.new_timeout(
      [&] {
        unprocessed = timer.stop().size();
        stopped.count_down();
      },
      0ms);
  ASSERT_TRUE(stopped.wait());
  EXPECT_EQ(unprocessed, 1U);
  EXPECT_THROW(timer.start(), IllegalState);
}

TEST(Stop, FromATaskOfAnotherTimer) {
  std::atomic<std::size_t> unprocessed = 0;
  Latch stopped;
  HashedWheelTimer victim(1ms);
  HashedWheelTimer timer(1ms);
  victim.new_timeout([] {}, kFar);
  timer.new_timeout(
      [&] {
        unprocessed = victim.stop().size();
        stopped.count_down();
      },
      0ms);
  ASSERT_TRUE(stopped.wait());
  EXPECT_EQ(unprocessed, 1U);
}

TEST(Stop, ATaskThatSchedulesDuringItIsRefusedAndReported) {
  ErrorLog log;
  Latch running;
  Latch stop_requested;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
  timer.new_timeout(
      [&](Timeout& timeout) {
        running.count_down();
        EXPECT_TRUE(stop_requested.wait());
        timeout.timer()->new_timeout([] {}, 0ms);
      },
      0ms);
  ASSERT_TRUE(running.wait());
  std::jthread stopper([&] { EXPECT_TRUE(timer.stop().empty()); });
  wait_until_refusing(timer);
  stop_requested.count_down();
  stopper.join();
  EXPECT_EQ(log.errors().size(), 1U);
}

// The destructor.

TEST(Destructor, WithoutStart) {
  CountingFactory workers;
  { const HashedWheelTimer timer{{.thread_factory = workers.factory()}}; }
  EXPECT_EQ(workers.calls(), 0);
}

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
  std::atomic<bool> finished = false;
  {
    Latch running;
    HashedWheelTimer timer(1ms);
    timer.new_timeout(
        [&] {
          running.count_down();
          std::this_thread::sleep_for(20ms);
          finished = true;
        },
        0ms);
    ASSERT_TRUE(running.wait());
  }
  EXPECT_TRUE(finished);
}

TEST(Destructor, InsideATaskOnTheWorker) {
  CountingFactory workers;
  Latch gone;
  const auto task = std::make_shared<RecordingTask>();
  std::atomic<int> later_runs = 0;
  auto timer = std::make_unique<HashedWheelTimer>(Options{.tick_duration = 1ms, .thread_factory = workers.factory()});
  timer->new_timeout(task, kFar);
  {
    const Gate gate(*timer);
    timer->new_timeout(
        [&](Timeout& self) {
          timer.reset();
          EXPECT_EQ(self.timer(), nullptr);
          EXPECT_TRUE(self.is_expired());
          gone.count_down();
        },
        0ms);
    for (int i = 0; i < 5; ++i) timer->new_timeout([&] { ++later_runs; }, 0ms);
  }
  ASSERT_TRUE(gone.wait());
  ASSERT_TRUE(workers.wait_until_ended());
  EXPECT_EQ(later_runs, 0) << "due in the same tick, behind the one that destroyed the timer";
  EXPECT_EQ(task->cancellations, 1);
  EXPECT_EQ(task.use_count(), 1);
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
  timer->new_timeout(
      [&] {
        timer.reset();
        gone.count_down();
      },
      5ms);
  ASSERT_TRUE(gone.wait());
  EXPECT_TRUE(workers.wait_until_ended());
  EXPECT_TRUE(pending.is_cancelled());
}

TEST(Destructor, AfterStop) {
  CountingFactory workers;
  {
    HashedWheelTimer timer{{.thread_factory = workers.factory()}};
    timer.start();
    timer.stop();
  }
  EXPECT_TRUE(workers.wait_until_ended());
}

// TimerTask::cancelled().

TEST(Cancelled, RunsOnceOnTheWorkerWithinATick) {
  const auto in_wheel = std::make_shared<RecordingTask>();
  const auto in_queue = std::make_shared<RecordingTask>();
  std::atomic<std::thread::id> worker{};
  Latch known;
  HashedWheelTimer timer(1ms);
  timer.new_timeout(
      [&] {
        worker = std::this_thread::get_id();
        known.count_down();
      },
      0ms);
  ASSERT_TRUE(known.wait());
  Timeout first = timer.new_timeout(in_wheel, kFar);
  {
    const Gate gate(timer);
    Timeout second = timer.new_timeout(in_queue, kFar);
    EXPECT_TRUE(first.cancel() && second.cancel());
    EXPECT_EQ(timer.pending_timeouts(), 0) << "counted at cancel(), not at the hook";
  }
  for (const auto& task : {in_wheel, in_queue}) {
    ASSERT_TRUE(task->was_cancelled.wait());
    EXPECT_EQ(task->cancelled_on, worker);
    EXPECT_TRUE(task->saw_cancelled);
  }
  timer.stop();
  for (const auto& task : {in_wheel, in_queue}) {
    EXPECT_EQ(task->cancellations, 1);
    EXPECT_EQ(task->runs, 0);
  }
}

TEST(Cancelled, WakesTheWorkerThatSleepsForLonger) {
  const auto task = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1ms);
  Timeout timeout = timer.new_timeout(task, kFar);
  { const Gate transferred(timer); }
  std::this_thread::sleep_for(20ms);  // by now it sleeps until the far timeout
  EXPECT_TRUE(timeout.cancel());
  EXPECT_TRUE(task->was_cancelled.wait());
}

TEST(Cancelled, IsNotCalledForAnExpiredOne) {
  const auto task = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1ms);
  Timeout timeout = timer.new_timeout(task, 0ms);
  ASSERT_TRUE(task->ran.wait());
  EXPECT_FALSE(timeout.cancel());
  timer.stop();
  EXPECT_EQ(task->runs, 1);
  EXPECT_EQ(task->cancellations, 0);
}

TEST(Cancelled, RunsForACancelThatStopOvertakes) {
  const auto task = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1h);  // the hook's tick will not come
  timer.new_timeout(task, kFar).cancel();
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_EQ(task->cancellations, 1);
}

class SchedulesInCancelled : public RecordingTask {
 public:
  explicit SchedulesInCancelled(std::shared_ptr<RecordingTask> next) : next_(std::move(next)) {}
  void cancelled(Timeout& timeout) override {
    timeout.timer()->new_timeout(next_, 0ms);
    RecordingTask::cancelled(timeout);
  }

 private:
  std::shared_ptr<RecordingTask> next_;
};

TEST(Cancelled, MaySchedule) {
  const auto next = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1ms);
  timer.new_timeout(std::make_shared<SchedulesInCancelled>(next), kFar).cancel();
  EXPECT_TRUE(next->ran.wait());
}

// Tasks that use their timer.

TEST(Tasks, MayScheduleAndCancel) {
  Latch done;
  HashedWheelTimer timer(1ms);
  Timeout victim = timer.new_timeout([] { ADD_FAILURE(); }, kFar);
  timer.new_timeout(
      [&](Timeout& self) {
        EXPECT_TRUE(victim.cancel());
        self.timer()->new_timeout([&] { done.count_down(); }, 0ms);
      },
      0ms);
  EXPECT_TRUE(done.wait());
}

TEST(Tasks, AnEarlierTimeoutWakesTheSleepingWorker) {
  Latch ran;
  HashedWheelTimer timer(1ms);
  timer.new_timeout([] {}, kFar);
  { const Gate transferred(timer); }
  timer.new_timeout([&] { ran.count_down(); }, 5ms);
  EXPECT_TRUE(ran.wait());
}

// The executor.

TEST(Executor, ReceivesTasksAndNotCancellations) {
  JobQueue jobs;
  const auto cancelled = std::make_shared<RecordingTask>();
  std::atomic<int> runs = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = jobs.executor()}};
  const Timeout timeout = timer.new_timeout([&] { ++runs; }, 0ms);
  timer.new_timeout(cancelled, kFar).cancel();
  ASSERT_TRUE(jobs.wait_for(1));
  ASSERT_TRUE(cancelled->was_cancelled.wait());
  EXPECT_TRUE(timeout.is_expired()) << "claimed, though it has not run";
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(runs, 0);
  for (const auto& job : jobs.take()) job();
  EXPECT_EQ(runs, 1);
}

TEST(Executor, AJobThatIsCalledTwiceRunsItsTaskOnce) {
  JobQueue jobs;
  std::atomic<int> runs = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = jobs.executor()}};
  timer.new_timeout([&] { ++runs; }, 0ms);
  ASSERT_TRUE(jobs.wait_for(1));
  const std::function<void()> job = jobs.take().front();
  const std::function<void()> copy = job;  // NOLINT(performance-unnecessary-copy-initialization)
  job();
  copy();
  job();
  EXPECT_EQ(runs, 1);
}

TEST(Executor, AJobOutlivesTheTimer) {
  JobQueue jobs;
  std::atomic<int> runs = 0;
  const auto resource = std::make_shared<int>();
  {
    HashedWheelTimer timer{{.tick_duration = 1ms, .executor = jobs.executor()}};
    timer.new_timeout(
        [&runs, resource](Timeout& self) {
          EXPECT_EQ(self.timer(), nullptr);
          ++runs;
        },
        0ms);
    ASSERT_TRUE(jobs.wait_for(1));
  }
  EXPECT_EQ(resource.use_count(), 2);
  for (const auto& job : jobs.take()) job();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(resource.use_count(), 1);
}

TEST(Executor, ADroppedJobReleasesItsTask) {
  const auto resource = std::make_shared<int>();
  std::atomic<int> dropped = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = [&](const std::function<void()>&) { ++dropped; }}};
  timer.new_timeout([resource] { ADD_FAILURE(); }, 0ms);
  EXPECT_TRUE(eventually([&] { return dropped == 1 && resource.use_count() == 1; }));
  EXPECT_EQ(timer.stats().expired, 1);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

TEST(Executor, ADroppedJobReleasesItsTaskThoughAHandleIsHeld) {
  const auto resource = std::make_shared<int>();
  std::atomic<int> dropped = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = [&](const std::function<void()>&) { ++dropped; }}};
  const Timeout kept = timer.new_timeout([resource] { ADD_FAILURE(); }, 0ms);
  EXPECT_TRUE(eventually([&] { return dropped == 1; }));
  timer.stop();
  EXPECT_EQ(resource.use_count(), 1) << "it can never run again";
  EXPECT_TRUE(kept.is_expired());
}

TEST(Executor, ThatThrowsBeforeItStoredTheJob) {
  ErrorLog log;
  std::atomic<int> runs = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms,
                          .executor = [](const std::function<void()>&) { throw 7; },
                          .on_task_error = log.handler()}};
  for (int i = 0; i < 10; ++i) timer.new_timeout([&] { ++runs; }, i * 1ms);
  EXPECT_TRUE(eventually([&] { return runs == 10; }));
  timer.stop();
  EXPECT_EQ(runs, 10);
  EXPECT_EQ(log.errors(), std::vector<std::string>(10, "7"));
  EXPECT_EQ(timer.stats().task_errors, 10);
}

TEST(Executor, ThatThrowsAfterItRanTheJob) {
  ErrorLog log;
  std::atomic<int> runs = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms,
                          .executor =
                              [](const std::function<void()>& job) {
                                job();
                                throw 7;
                              },
                          .on_task_error = log.handler()}};
  for (int i = 0; i < 10; ++i) timer.new_timeout([&] { ++runs; }, i * 1ms);
  ASSERT_TRUE(log.wait_for(10));
  timer.stop();
  EXPECT_EQ(runs, 10);
}

TEST(Executor, ThatThrowsAfterAnotherThreadGotTheJob) {
  constexpr int kCount = 100;
  ErrorLog log;
  std::array<std::atomic<int>, kCount> runs{};
  {
    ThreadPerJob pool;
    const auto store = pool.executor();
    HashedWheelTimer timer{{.tick_duration = 1ms,
                            .executor =
                                [&](std::function<void()> job) {
                                  store(std::move(job));
                                  throw 7;
                                },
                            .on_task_error = log.handler()}};
    for (int i = 0; i < kCount; ++i) timer.new_timeout([&, i] { ++runs[i]; }, (i % 5) * 1ms);
    ASSERT_TRUE(log.wait_for(kCount));
    timer.stop();
  }
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1) << "once, on either thread";
}

TEST(Executor, AnErrorOfATaskIsReportedWhereItWasThrown) {
  ErrorLog log;
  JobQueue jobs;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = jobs.executor(), .on_task_error = log.handler()}};
  timer.new_timeout([] { throw std::runtime_error("in the pool"); }, 0ms);
  ASSERT_TRUE(jobs.wait_for(1));
  for (const auto& job : jobs.take()) EXPECT_NO_THROW(job()) << "it must not end the pool's thread";
  EXPECT_EQ(log.errors(), std::vector<std::string>{"in the pool"});
  EXPECT_EQ(log.threads(), std::vector<std::thread::id>{std::this_thread::get_id()});
}

// Errors.

class ThrowsInCancelled : public RecordingTask {
 public:
  void cancelled(Timeout& timeout) override {
    RecordingTask::cancelled(timeout);
    throw std::runtime_error("in cancelled()");
  }
};

TEST(Errors, FromRunAndCancelledComeWithTheirTimeout) {
  ErrorLog log;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
  const Timeout first = timer.new_timeout([] { throw std::runtime_error("in run()"); }, 0ms);
  ASSERT_TRUE(log.wait_for(1));
  const Timeout second = timer.new_timeout([] { throw 42; }, 0ms);
  ASSERT_TRUE(log.wait_for(2));
  Timeout third = timer.new_timeout(std::make_shared<ThrowsInCancelled>(), kFar);
  third.cancel();
  ASSERT_TRUE(log.wait_for(3));
  EXPECT_EQ(log.errors(), (std::vector<std::string>{"in run()", "42", "in cancelled()"}));
  EXPECT_EQ(log.timeouts(), (std::vector<Timeout>{first, second, third}));
  EXPECT_EQ(timer.stats().task_errors, 3);
  EXPECT_TRUE(first.is_expired()) << "a task that failed has run";
}

TEST(Errors, ComeWithTheirTimeoutThoughTheTaskMovedItAway) {
  ErrorLog log;
  Timeout taken;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
  const Timeout timeout = timer.new_timeout(
      [&](Timeout& self) {
        taken = std::move(self);
        throw 42;
      },
      0ms);
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_EQ(log.timeouts(), std::vector<Timeout>{timeout});
}

TEST(Errors, FromCancelledDuringStopReachTheHandler) {
  ErrorLog log;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
  for (int i = 0; i < 3; ++i) timer.new_timeout(std::make_shared<ThrowsInCancelled>(), kFar);
  EXPECT_EQ(timer.stop().size(), 3U);
  EXPECT_EQ(log.errors(), std::vector<std::string>(3, "in cancelled()"));
}

TEST(Errors, FromCancelledDuringTheDestructorReachTheHandler) {
  ErrorLog log;
  {
    HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
    for (int i = 0; i < 3; ++i) timer.new_timeout(std::make_shared<ThrowsInCancelled>(), kFar);
  }
  EXPECT_EQ(log.errors(), std::vector<std::string>(3, "in cancelled()"));
}

TEST(Errors, WithoutAHandlerTheyAreOneLineASecondOnStderr) {
  constexpr int kErrors = 50;
  Latch done;
  std::string text;
  const auto before = steady_clock::now();
  testing::internal::CaptureStderr();
  {
    HashedWheelTimer timer(1ms);
    for (int i = 0; i < kErrors; ++i) timer.new_timeout([] { throw std::runtime_error("unhandled"); }, 0ms);
    timer.new_timeout([&] { done.count_down(); }, 1ms);
    EXPECT_TRUE(done.wait());
    text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(timer.stats().task_errors, kErrors);
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(steady_clock::now() - before).count();
  EXPECT_TRUE(contains(text, "unhandled")) << text;
  EXPECT_GE(count_of(text, "\n"), 1) << text;
  EXPECT_LE(count_of(text, "\n"), seconds) << text;
}

TEST(Errors, WithoutAHandlerAnIntIsALineToo) {
  Latch done;
  testing::internal::CaptureStderr();
  HashedWheelTimer timer(1ms);
  timer.new_timeout([] { throw 42; }, 0ms);
  timer.new_timeout([&] { done.count_down(); }, 1ms);
  EXPECT_TRUE(done.wait());
  EXPECT_EQ(count_of(testing::internal::GetCapturedStderr(), "\n"), 1);
}

TEST(Errors, WithoutAHandlerATextOfSeveralLinesIsOneToo) {
  Latch done;
  testing::internal::CaptureStderr();
  HashedWheelTimer timer(1ms);
  timer.new_timeout([] { throw std::runtime_error("first\nsecond\r\n" + std::string(5000, 'x')); }, 0ms);
  timer.new_timeout([&] { done.count_down(); }, 1ms);
  EXPECT_TRUE(done.wait());
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(text, "first?second")) << text;
  EXPECT_EQ(count_of(text, "\n"), 1) << text;
  EXPECT_EQ(text.back(), '\n');
}

#if !defined(_WIN32)
/// The wait status of a forked child that ends with what f returns.
template <class F>
int status_of_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that waits for a worker it does not have ends by this
    _exit(f());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// Schedules keep the timer from going while they make their next wait, and a fork may fall into any moment of that.
TEST(Fork, AChildOfATimerWithBusySchedulesCanDestroyIt) {
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  for (int i = 0; i < 5000; ++i) schedule(*timer, Schedule::fixed_rate(0ms, 1ms), [] {});
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(status_of_child([&] { return timer.reset(), 0; }), 0);
  }
}

TEST(Fork, AChildCanStopAndDestroyAnInheritedTimer) {
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  timer->new_timeout([] {}, kFar);
  const int status = status_of_child([&] {
    const bool nothing_returned = timer->stop().empty();
    timer.reset();
    return nothing_returned ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(timer->stop().size(), 1u) << "the parent's own is untouched";
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
#endif

TEST(Executor, GoesWithTheTimerThoughAHandleIsHeld) {
  const auto pool = std::make_shared<int>();
  Timeout held;
  {
    HashedWheelTimer timer{{.executor = [pool](const std::function<void()>& job) { job(); }}};
    held = timer.new_timeout([] {}, kFar);
    EXPECT_GT(pool.use_count(), 1);
  }
  EXPECT_EQ(pool.use_count(), 1) << "a job that outlives the timer must not keep the pool that runs it";
}

}  // namespace
}  // namespace hwt
