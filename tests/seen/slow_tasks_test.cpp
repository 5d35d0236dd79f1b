// What TimerStats::running_for, slow_tasks, busy, in_tasks and Options::slow_task promise.

#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using std::chrono::nanoseconds;
using Executor = std::function<void(std::function<void()>)>;

/// Keeps its thread for longer than this.
void work_longer_than(nanoseconds time) {
  const auto end = steady_clock::now() + time;
  if (time >= 1ms) std::this_thread::sleep_until(end);
  while (steady_clock::now() <= end) {
  }
}

/// An Options::on_slow_task that records its calls.
class Reports {
 public:
  struct Report {
    Timeout timeout;
    nanoseconds ran;
    std::thread::id thread;
  };

  std::function<void(const Timeout&, nanoseconds)> handler() {
    return [this](const Timeout& timeout, nanoseconds ran) {
      const std::lock_guard lock(mutex_);
      reports_.push_back({timeout, ran, std::this_thread::get_id()});
    };
  }
  std::vector<Report> all() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  std::size_t size() { return all().size(); }

 private:
  std::mutex mutex_;
  std::vector<Report> reports_;
};

/// Tasks are slow after 5 ms.
template <class T>
class SlowTasks : public ::testing::Test {
 protected:
  static void slow() { work_longer_than(10ms); }
  bool is_reported(std::size_t times = 1) {
    return eventually([&] { return reports_.size() == times; });
  }

  Reports reports_;
  ErrorLog errors_;
  CountingFactory factory_;
  Options options_{.tick_duration = 1ms,
                   .thread_factory = factory_.factory(),
                   .on_task_error = errors_.handler(),
                   .slow_task = 5ms,
                   .on_slow_task = reports_.handler()};
};
TYPED_TEST_SUITE(SlowTasks, ThreadedTimers);

template <class T>
class RunningFor : public ::testing::Test {};
TYPED_TEST_SUITE(RunningFor, ThreadedTimers);

TYPED_TEST(SlowTasks, AreCountedAndReportedOnTheWorkerAfterTheyRanAlsoIfAnExecutorRefusesThem) {
  std::size_t reported = 0;
  const Executor refusing = [](const std::function<void()>&) { throw std::runtime_error("full"); };
  for (const Executor& executor : {Executor(), refusing}) {
    std::atomic<std::thread::id> worker{};
    std::size_t reported_before = reported + 1;
    this->options_.executor = executor;
    TypeParam timer{this->options_};
    Timeout slow = after(timer, 0ns, [&] {
      worker = std::this_thread::get_id();
      this->slow();
      reported_before = this->reports_.size();
    });
    ASSERT_TRUE(this->is_reported(reported + 1));
    EXPECT_EQ(reported_before, reported);
    const Reports::Report report = this->reports_.all()[reported++];
    EXPECT_EQ(report.timeout, slow);
    EXPECT_GT(report.ran, 10ms);
    EXPECT_EQ(report.thread, worker.load());
    EXPECT_EQ(timer.stats().slow_tasks, 1);
  }
}

TYPED_TEST(SlowTasks, AreReportedAlsoIfTheirEndIsSlowOrTheyMoveTheirHandleAwayOrAreSharedAndThrow) {
  struct Shared : TimerTask {
    void run(Timeout&) override {
      SlowTasks<TypeParam>::slow();
      throw std::runtime_error("slow and wrong");
    }
  };
  Timeout kept;
  TypeParam timer{this->options_};
  timer.new_timeout([end = std::shared_ptr<void>(nullptr, [](void*) { SlowTasks<TypeParam>::slow(); })] {}, 0ns);
  after(timer, 0ns, [&](Timeout& self) {
    kept = std::move(self);
    this->slow();
  });
  timer.new_timeout(std::make_shared<Shared>(), 0ns);
  ASSERT_TRUE(this->is_reported(3));
  EXPECT_EQ(this->reports_.all()[1].timeout, kept);
  EXPECT_TRUE(kept.is_expired());
  EXPECT_EQ(this->errors_.errors(), std::vector<std::string>{"slow and wrong"});
}

TYPED_TEST(SlowTasks, AreThoseThatRanStrictlyLongerAndNoOther) {
  constexpr nanoseconds kLimit = 2us;
  constexpr int kTasks = 200;
  std::atomic<int> ran = 0;
  int longer_inside = 0;  // the worker's
  this->options_.slow_task = kLimit;
  TypeParam timer{this->options_};
  for (int i = 0; i < kTasks; ++i) {
    after(timer, 0ns, [&, i] {
      const auto began = steady_clock::now();
      if (i % 2 == 0) work_longer_than(kLimit);
      if (steady_clock::now() - began > kLimit) ++longer_inside;
      ++ran;
    });
  }
  ASSERT_TRUE(eventually([&] { return ran == kTasks; }));
  timer.stop();
  for (const Reports::Report& report : this->reports_.all()) EXPECT_GT(report.ran, kLimit);
  EXPECT_EQ(timer.stats().slow_tasks, static_cast<std::int64_t>(this->reports_.size()));
  EXPECT_GE(timer.stats().slow_tasks, longer_inside);
  EXPECT_GE(longer_inside, kTasks / 2);
}

template <class T>
class LongTasks : public ::testing::Test {};
TYPED_TEST_SUITE(LongTasks, ThreadedTimersAnd<LoopTimer>);

/// By default the worker reads no clock for a task, so the line cannot name the task.
TYPED_TEST(LongTasks, ALineTellsByDefaultThatTheyHeldTheWorkerForMoreThanASecond) {
  const auto lines_with = [](Options options) {
    options.tick_duration = 1ms;
    TypeParam timer(options);
    testing::internal::CaptureStderr();
    timer.new_timeout([] { work_longer_than(1001ms); }, 0ns);
    EXPECT_TRUE(passes_until(timer, [&] { return timer.stats().in_tasks > 1s; }));
    EXPECT_EQ(timer.stats().slow_tasks, 0);
    timer.stop();
    return testing::internal::GetCapturedStderr();
  };
  const std::string line = lines_with({});
  EXPECT_EQ(count_of(line, "\n"), 1) << line;
  EXPECT_TRUE(contains(line, "hashed_wheel_timer: tasks held the worker for ")) << line;
  EXPECT_EQ(lines_with({.slow_task = 0ns}), "") << "off";
  EXPECT_EQ(lines_with({.slow_task = 1h}), "") << "it has a limit of its own";
}

TYPED_TEST(SlowTasks, NoneIsCountedOrReportedWithinTheLimitOrWhileItIsOffOrInAnExecutor) {
  ThreadPerJob elsewhere;
  const Executor in_place = [](const std::function<void()>& job) { job(); };
  const std::vector<std::pair<nanoseconds, Executor>> rows{
      {1h, nullptr}, {0ns, nullptr}, {5ms, elsewhere.executor()}, {5ms, in_place}};
  for (const auto& [limit, executor] : rows) {
    this->options_.slow_task = limit;
    this->options_.executor = executor;
    TypeParam timer{this->options_};
    ASSERT_TRUE(ran_in_task(timer, this->slow));
    timer.stop();
    EXPECT_EQ(this->reports_.size(), 0U) << limit.count();
    EXPECT_EQ(timer.stats().slow_tasks, 0) << limit.count();
  }
}

TYPED_TEST(SlowTasks, AnExceptionOfTheHandlerGoesToOnTaskErrorWithItsTimeout) {
  this->options_.on_slow_task = [](const Timeout&, nanoseconds) { throw std::runtime_error("from the handler"); };
  TypeParam timer{this->options_};
  Timeout slow = timer.new_timeout(this->slow, 0ns);
  ASSERT_TRUE(this->errors_.wait_for(1));
  EXPECT_EQ(this->errors_.errors(), std::vector<std::string>{"from the handler"});
  EXPECT_EQ(this->errors_.timeouts(), std::vector<Timeout>{slow});
  EXPECT_EQ(timer.stats().task_errors, 1);
  EXPECT_TRUE(ran_in_task(timer, [] {})) << "the worker goes on";
}

TYPED_TEST(SlowTasks, NothingIsReportedOfATaskThatDestroyedItsTimer) {
  auto timer = std::make_unique<TypeParam>(this->options_);
  TypeParam& armed = *timer;
  after(armed, 0ns, [&] {
    timer.reset();
    this->slow();
  });
  ASSERT_TRUE(this->factory_.wait_until_ended());
  EXPECT_EQ(this->reports_.size(), 0U);
}

TYPED_TEST(SlowTasks, OneIsReportedThatRanWhileAnotherThreadDestroyedTheTimer) {
  Latch entered;
  {
    TypeParam timer{this->options_};
    after(timer, 0ns, [&](Timeout& self) {
      entered.count_down();
      EXPECT_TRUE(eventually([&] { return self.timer() == nullptr; }));
      this->slow();
    });
    ASSERT_TRUE(entered.wait());
  }
  EXPECT_EQ(this->reports_.size(), 1U);
}

TYPED_TEST(SlowTasks, TheHandlerMayUseTheTimerAndMayDestroyIt) {
  std::atomic<bool> refused = false, ran_after = false;
  std::unique_ptr<TypeParam> timer;
  this->options_.on_slow_task = [&](const Timeout& slow, nanoseconds) {
    timer->new_timeout([&] { ran_after = true; }, 0ns);
    refused = !Timeout(slow).cancel();
    timer.reset();
    throw std::runtime_error("after the end");
  };
  timer = std::make_unique<TypeParam>(this->options_);
  timer->new_timeout(this->slow, 0ns);
  ASSERT_TRUE(this->factory_.wait_until_ended());
  EXPECT_TRUE(refused);
  EXPECT_FALSE(ran_after);
  EXPECT_EQ(this->errors_.errors(), std::vector<std::string>{"after the end"});
}

TYPED_TEST(SlowTasks, WithoutAHandlerThereIsOneLineOnStderrASecond) {
  testing::internal::CaptureStderr();
  steady_clock::duration took{};
  {
    const auto began = steady_clock::now();
    TypeParam timer{{.tick_duration = 1ms, .slow_task = 3ms}};
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(ran_in_task(timer, [] { work_longer_than(4ms); }));
    timer.stop();
    EXPECT_EQ(timer.stats().slow_tasks, 5);
    took = steady_clock::now() - began;
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const int lines = count_of(said, "\n");
  EXPECT_EQ(lines, count_of(said, "hashed_wheel_timer: a task ran for "));
  EXPECT_GE(lines, 1);
  EXPECT_LE(lines, 1 + took / 1s);
  EXPECT_TRUE(contains(said, " ms on the worker (slow_task: 3.000 ms)")) << said;
}

TYPED_TEST(SlowTasks, ANegativeLimitIsRefused) {
  for (const nanoseconds limit : {-1ns, nanoseconds::min()}) {
    const std::string message = message_of<std::invalid_argument>([&] { TypeParam timer{{.slow_task = limit}}; });
    const std::string end = " ns (expected: 1 ns or more, or 0 for off)";
    EXPECT_TRUE(message.ends_with("WheelTimer: slow_task: " + std::to_string(limit.count()) + end)) << message;
  }
  TypeParam longest{{.tick_duration = 1ms, .slow_task = nanoseconds::max()}};
  EXPECT_TRUE(ran_in_task(longest, [] {}));
}

TYPED_TEST(RunningFor, GrowsWhileATaskIsBlockedAndIsZeroWhenNoTaskRuns) {
  for (const nanoseconds slow_task : {0ns, nanoseconds(1h)}) {
    TypeParam timer{{.tick_duration = 1ms, .slow_task = slow_task}};
    EXPECT_EQ(timer.stats().running_for, 0ns);
    Gate gate(timer);
    const auto entered = steady_clock::now();
    ASSERT_TRUE(eventually([&] { return steady_clock::now() - entered > 20ms; }));
    const nanoseconds before = timer.stats().running_for;
    EXPECT_GT(before, 20ms);
    std::this_thread::sleep_for(1ms);
    EXPECT_GT(timer.stats().running_for, before);
    gate.open();
    EXPECT_TRUE(eventually([&] { return timer.stats().running_for == 0ns; }));
    timer.stop();
    EXPECT_EQ(timer.stats().running_for, 0ns);
  }
}

/// The second of two tasks looks, after the first ran for 200 ms. Tries again until both ran in one tick.
TYPED_TEST(RunningFor, CountsFromTheBeginningOfTheTickOrOfTheTaskWhileSlowTasksAreWatched) {
  for (const nanoseconds slow_task : {0ns, nanoseconds(1h)}) {
    bool in_one_tick = false;
    for (int attempt = 0; attempt < 10 && !in_one_tick; ++attempt) {
      std::atomic<std::int64_t> seen = -1;
      TypeParam timer{{.tick_duration = 50ms, .slow_task = slow_task}};
      timer.start();
      timer.new_timeout([] { work_longer_than(200ms); }, 0ns);
      timer.new_timeout([&] { seen = timer.stats().running_for.count(); }, 0ns);
      EXPECT_TRUE(eventually([&] { return seen != -1; }));
      timer.stop();
      in_one_tick = timer.stats().ticks == 1;
      if (in_one_tick) {
        EXPECT_EQ(nanoseconds(seen) > 200ms, slow_task == 0ns) << seen;
      }
    }
    EXPECT_TRUE(in_one_tick);
  }
}

TYPED_TEST(RunningFor, AnExecutorThatBlocksShowsButNotATaskInIt) {
  Latch released;
  Hold hold;
  ThreadPerJob elsewhere;
  TypeParam timer{{.tick_duration = 1ms, .executor = [&](std::function<void()> job) {
                     EXPECT_TRUE(released.wait());
                     elsewhere.executor()(std::move(job));
                   }}};
  timer.new_timeout([&] { hold(); }, 0ns);
  EXPECT_TRUE(eventually([&] { return timer.stats().running_for > 10ms; }));
  released.count_down();
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_TRUE(eventually([&] { return timer.stats().running_for == 0ns; }));
  hold.let_go();
}

// --- busy and in_tasks ---

template <class T>
class Busy : public ::testing::Test {};
TYPED_TEST_SUITE(Busy, AllTimers, TimerNames);

TYPED_TEST(Busy, HasTheTimeOfTasksButNotOfTheSleep) {
  const auto begin = steady_clock::now();
  const auto timer = make_timer<TypeParam>();
  bool ran = false;
  after(*timer, 200ms, [&] {
    std::this_thread::sleep_for(20ms);
    ran = true;
  });
  EXPECT_TRUE(
      passes_until(*timer, [&] { return timer->stats().max_lag > 0ns || std::is_same_v<TypeParam, ManualTimer>; }));
  ASSERT_TRUE(passes_until(*timer, [&] { return timer->stats().ticks > 0; }));
  const TimerStats stats = timer->stats();
  const auto end = steady_clock::now();
  if (std::is_same_v<TypeParam, ManualTimer>) {
    EXPECT_EQ(stats.busy, 0ns) << "its clock stands still";
    EXPECT_EQ(stats.in_tasks, 0ns);
    return;
  }
  EXPECT_TRUE(ran);
  EXPECT_GE(stats.in_tasks, 20ms);
  EXPECT_GE(stats.busy, stats.in_tasks);
  EXPECT_LE(stats.busy, end - begin - 20ms) << "it has slept for most of the 200 ms before the task";
}

TYPED_TEST(Busy, StandsStillWhileNothingIsDue) {
  const auto timer = make_timer<TypeParam>();
  timer->new_timeout(must_not_run, kFar);
  turn(*timer);
  come_to_rest(*timer);
  EXPECT_TRUE(eventually([&] {
    const std::chrono::nanoseconds before = timer->stats().busy;
    std::this_thread::sleep_for(20ms);
    turn(*timer);
    return timer->stats().busy == before;
  }));
  EXPECT_EQ(timer->stats().in_tasks, 0ns);
}

/// A worker that never sleeps must not hide it.
TYPED_TEST(Busy, GrowsWhileTheWorkerNeverSleeps) {
  if (kDriven<TypeParam>) GTEST_SKIP() << "it has no worker";
  const auto timer = make_timer<TypeParam>();
  std::atomic<bool> ended = false;
  std::function<void()> again = [&] {
    if (!ended) timer->new_timeout([&] { again(); }, 0ns);
    std::this_thread::sleep_for(2ms);  // longer than a tick
  };
  again();
  std::chrono::nanoseconds last{0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(eventually([&] { return timer->stats().busy >= last + 2ms; }));
    last = timer->stats().busy;
  }
  ended = true;
  timer->stop();
}

}  // namespace
}  // namespace hwt
