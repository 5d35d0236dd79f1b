// ThreadedTimer::run(): a thread of the user's own turns the wheel, whether it came first or takes over.

#include "tests/support/any_timer.h"
#if !defined(_WIN32)
#include "tests/support/forked_child.h"
#endif

namespace hwt::test {
namespace {

/// A thread that is in run().
class Runner {
 public:
  explicit Runner(ThreadedTimer& timer) : thread_([&timer] { timer.run(); }) {}
  std::thread::id id() const { return thread_.get_id(); }
  void join() { thread_.join(); }

 private:
  std::jthread thread_;
};

/// Returns the thread that runs a task now.
std::thread::id worker_of(Timer& timer) {
  std::thread::id worker;
  EXPECT_TRUE(ran_in_task(timer, [&] { worker = std::this_thread::get_id(); }));
  return worker;
}

/// Waits until the thread `id` is the worker.
void await_worker(Timer& timer, std::thread::id id) {
  EXPECT_TRUE(eventually([&] { return worker_of(timer) == id; }));
}

template <class T>
class RunTest : public ::testing::Test {};
TYPED_TEST_SUITE(RunTest, ThreadedTimers);

TYPED_TEST(RunTest, RunsTasksOnTheCallingThreadWithoutAFactory) {
  TypeParam timer{{.tick_duration = 1ms, .thread_factory = [](std::function<void()>) -> std::thread {
                     throw std::runtime_error("no thread");
                   }}};
  Runner runner(timer);
  // Until run() has begun.
  EXPECT_TRUE(eventually([&] { return !throws<std::runtime_error>([&] { timer.start(); }); }));
  EXPECT_EQ(worker_of(timer), runner.id());
  timer.stop();
}

TYPED_TEST(RunTest, TakesOverFromAWorkerThatANewTimeoutHasStarted) {
  CountingFactory workers;
  TypeParam timer{{.tick_duration = 1ms, .thread_factory = workers.factory()}};
  EXPECT_NE(worker_of(timer), std::this_thread::get_id());
  Latch far_ran;
  timer.new_timeout([&] { far_ran.count_down(); }, 50ms);
  Runner runner(timer);
  EXPECT_TRUE(workers.wait_until_ended());
  EXPECT_EQ(worker_of(timer), runner.id());
  EXPECT_TRUE(far_ran.wait()) << "the timeout that the first worker knew";
  EXPECT_EQ(workers.calls(), 1);
  timer.stop();
}

/// The worker sleeps for an hour then.
TYPED_TEST(RunTest, TakesOverFromAWorkerThatSleeps) {
  auto timer = make_timer<TypeParam>();
  timer->new_timeout(must_not_run, kFar);
  come_to_rest(*timer);
  Runner runner(*timer);
  await_worker(*timer, runner.id());
  EXPECT_EQ(timer->stop().size(), 1U);
}

TYPED_TEST(RunTest, TakesOverAfterTheTaskThatRuns) {
  auto timer = make_timer<TypeParam>();
  Gate gate(*timer);
  std::atomic<int> ran = 0;
  timer->new_timeout([&] { ++ran; }, 0ns);
  Runner runner(*timer);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(ran, 0) << "one task at a time";
  gate.open();
  await_worker(*timer, runner.id());
  EXPECT_EQ(ran, 1);
  timer->stop();
}

/// Each thread's timeouts with one deadline keep their order, whichever thread turns the wheel.
TYPED_TEST(RunTest, LosesNothingAndKeepsTheOrderWhileItTakesOver) {
  for (int round = 0; round < 30; ++round) {
    auto timer = make_timer<TypeParam>();
    constexpr int kThreads = 3, kEach = 300;
    std::array<std::atomic<int>, kThreads> next{};
    std::atomic<int> out_of_order = 0;
    std::optional<Runner> runner;
    run_together(kThreads + 1, [&](int thread) {
      if (thread == kThreads) {
        runner.emplace(*timer);
        return;
      }
      auto& mine = next[static_cast<std::size_t>(thread)];
      for (int i = 0; i < kEach; ++i) {
        after(*timer, 0ns, [&mine, &out_of_order, i] {
          if (mine.exchange(i + 1) != i) ++out_of_order;
        });
      }
    });
    for (const auto& ran : next) EXPECT_TRUE(eventually([&] { return ran == kEach; })) << ran;
    EXPECT_EQ(out_of_order, 0);
    timer->stop();
    EXPECT_TRUE(is_balanced(timer->stats()));
  }
}

TYPED_TEST(RunTest, ReturnsWhenATaskHasDestroyedTheTimer) {
  auto timer = make_timer<TypeParam>();
  Runner runner(*timer);
  await_worker(*timer, runner.id());
  TypeParam* const raw = timer.release();
  raw->new_timeout([raw] { delete raw; }, 0ns);
  runner.join();
}

/// The first worker is in the task that destroys the timer, while run() waits for the end of that task. Of two threads
/// that call run(), one is refused. So the other is inside.
TYPED_TEST(RunTest, ReturnsWhenATaskDestroysTheTimerThatItWaitsFor) {
  for (int round = 0; round < 50; ++round) {
    TypeParam* const raw = make_timer<TypeParam>().release();
    const auto hold = std::make_shared<Hold>();
    after(*raw, 0ns, [raw, hold] {
      (*hold)();
      delete raw;
    });
    ASSERT_TRUE(hold->wait_until_entered());
    int refused = 0;
    run_together(2, [&](int) {
      if (!throws<IllegalState>([&] { raw->run(); })) return;
      ++refused;
      hold->let_go();
    });
    EXPECT_EQ(refused, 1);
  }
}

TYPED_TEST(RunTest, IsRefusedInsideATask) {
  auto timer = make_timer<TypeParam>();
  auto other = make_timer<TypeParam>();
  EXPECT_TRUE(ran_in_task(*timer, [&] {
    for (TypeParam* const each : {timer.get(), other.get()}) {
      EXPECT_EQ(message_of<IllegalState>([&] { each->run(); }), "run() cannot be called from inside a task");
    }
  }));
  EXPECT_TRUE(ran_in_task(*other, [] {})) << "the refused call has changed nothing";
}

TYPED_TEST(RunTest, IsRefusedWhileAnotherThreadIsInIt) {
  auto timer = make_timer<TypeParam>();
  Runner runner(*timer);
  await_worker(*timer, runner.id());
  EXPECT_EQ(message_of<IllegalState>([&] { timer->run(); }), "run: another thread is in run()");
  EXPECT_EQ(worker_of(*timer), runner.id());
  timer->stop();
}

/// AddressSanitizer and ThreadSanitizer see it if it does.
TYPED_TEST(RunTest, TouchesTheTimerNoMoreOnceStopOrTheDestructorHasReturned) {
  for (int round = 0; round < 100; ++round) {
    auto timer = make_timer<TypeParam>();
    if (round % 2 == 0) timer->start();
    Runner runner(*timer);
    await_worker(*timer, runner.id());
    if (round % 4 < 2) timer->stop();
    timer.reset();
  }
}

#if !defined(_WIN32)

TYPED_TEST(RunTest, IsRefusedInAForkedChild) {
  auto timer = make_timer<TypeParam>();
  timer->start();
  EXPECT_EQ(status_of_child([&] { return throws<IllegalState>([&] { timer->run(); }) ? 0 : 1; }), 0);
}

TYPED_TEST(RunTest, ReturnsInTheChildOfATaskThatDestroysTheTimer) {
  if (kSanitized) GTEST_SKIP() << "the child has a thread that the sanitizer does not know";
  auto timer = make_timer<TypeParam>();
  bool is_child = false;  // of each process its own
  std::jthread own([&] {
    timer->run();
    if (is_child) end_child(0);
  });
  await_worker(*timer, own.get_id());
  int status = -1;
  EXPECT_TRUE(ran_in_task(*timer, [&] {
    const pid_t child = fork();
    if (child == 0) {
      is_child = true;
      alarm(20);
      timer.reset();
      return;
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
  }));
  EXPECT_EQ(status, 0);
  EXPECT_EQ(worker_of(*timer), own.get_id()) << "the parent's own";
  timer->stop();
}

#endif

}  // namespace
}  // namespace hwt::test
