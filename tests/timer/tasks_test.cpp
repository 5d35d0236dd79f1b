// Where tasks run, when the worker calls cancelled(), and how the timer treats executors and exceptions.

#if __has_include(<pthread.h>)
#include <pthread.h>
#include <unistd.h>
#endif

#include <cstdlib>

#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "tests/support/counted_abort.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

TEST(Cancelled, RunsOnceOnTheWorkerWithinATick) {
  const auto in_wheel = std::make_shared<RecordingTask>();
  const auto in_queue = std::make_shared<RecordingTask>();
  std::atomic<std::thread::id> worker{};
  std::atomic<int> called_by_then = 0;
  Latch two_ticks_later;
  HashedWheelTimer timer(1ms);
  ASSERT_TRUE(ran_in_task(timer, [&] { worker = std::this_thread::get_id(); }));
  Timeout first = timer.new_timeout(in_wheel, kFar);
  {
    const Gate gate(timer);
    Timeout second = timer.new_timeout(in_queue, kFar);
    EXPECT_TRUE(first.cancel() && second.cancel());
    EXPECT_EQ(timer.pending_timeouts(), 0) << "counted at cancel(), not at the hook";
    after(timer, 2ms, [&] {
      called_by_then = in_wheel->cancellations + in_queue->cancellations;
      two_ticks_later.count_down();
    });
  }
  ASSERT_TRUE(two_ticks_later.wait());
  EXPECT_EQ(called_by_then, 2);
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

TEST(Cancelled, RunsForACancelThatStopOvertakes) {
  const auto task = std::make_shared<RecordingTask>();
  HashedWheelTimer timer(1ms);
  Gate gate(timer);  // so that the worker meets stop() before it looks into its inbox
  timer.new_timeout(task, kFar).cancel();
  std::jthread stopping([&] { EXPECT_TRUE(timer.stop().empty()); });
  wait_until_refusing(timer);
  EXPECT_EQ(task->cancellations, 0);
  gate.open();
  stopping.join();
  EXPECT_EQ(task->cancellations, 1);
  EXPECT_EQ(task.use_count(), 1);
}

TEST(Cancelled, MaySchedule) {
  Latch ran;
  HashedWheelTimer timer(1ms);
  const auto schedule = [&](Timeout& self) { self.timer()->new_timeout([&] { ran.count_down(); }, 0ms); };
  timer.new_timeout(on_cancelled(schedule), kFar).cancel();
  EXPECT_TRUE(ran.wait());
}

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
  const std::function<void()> job = jobs.take().front();
  const std::function<void()> copy = job;  // NOLINT(performance-unnecessary-copy-initialization)
  job();
  copy();
  job();
  EXPECT_EQ(runs, 1) << "a job runs its task once, however often it is called";
}

TEST(Executor, AJobOutlivesTheTimer) {
  JobQueue jobs;
  std::atomic<int> runs = 0;
  const auto resource = std::make_shared<int>();
  {
    HashedWheelTimer timer{{.tick_duration = 1ms, .executor = jobs.executor()}};
    after(timer, 0ms, [&runs, resource](Timeout& self) {
      EXPECT_EQ(self.timer(), nullptr);
      ++runs;
    });
    ASSERT_TRUE(jobs.wait_for(1));
  }
  EXPECT_EQ(resource.use_count(), 2);
  jobs.run_all();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(resource.use_count(), 1);
}

TEST(Executor, ADroppedJobReleasesItsTask) {
  const auto resource = std::make_shared<int>();
  std::atomic<int> dropped = 0;
  HashedWheelTimer timer{{.tick_duration = 1ms, .executor = [&](const std::function<void()>&) { ++dropped; }}};
  const Timeout kept = timer.new_timeout([resource] { ADD_FAILURE(); }, 0ms);
  timer.new_timeout([resource] { ADD_FAILURE(); }, 0ms);  // no handle is held
  EXPECT_TRUE(eventually([&] { return dropped == 2 && resource.use_count() == 1; })) << "they can never run again";
  EXPECT_TRUE(kept.is_expired());
  EXPECT_EQ(timer.stats().expired, 2);
  EXPECT_TRUE(is_balanced(timer.stats()));
}

TEST(Executor, ThatThrowsAfterItOrAnotherThreadGotTheJob) {
  constexpr int kCount = 100;
  const std::function<void(std::function<void()>)> run = [](const std::function<void()>& job) { job(); };
  for (const bool elsewhere : {false, true}) {
    ErrorLog log;
    std::array<std::atomic<int>, kCount> runs{};
    {
      ThreadPerJob pool;
      const auto execute = [take = elsewhere ? pool.executor() : run](std::function<void()> job) {
        take(std::move(job));
        throw 7;
      };
      HashedWheelTimer timer{{.tick_duration = 1ms, .executor = execute, .on_task_error = log.handler()}};
      for (int i = 0; i < kCount; ++i) timer.new_timeout([&, i] { ++runs[i]; }, (i % 5) * 1ms);
      ASSERT_TRUE(log.wait_for(kCount));
      timer.stop();
    }
    for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1) << "once, on either thread";
  }
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

[[noreturn]] void throw_in_cancelled() { throw std::runtime_error("in cancelled()"); }

TEST(Errors, FromRunAndCancelledComeWithTheirTimeout) {
  ErrorLog log;
  Timeout taken;
  HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
  const Timeout first = timer.new_timeout([] { throw std::runtime_error("in run()"); }, 0ms);
  ASSERT_TRUE(log.wait_for(1));
  const Timeout second = after(timer, 0ms, [&](Timeout& self) {
    taken = std::move(self);
    throw 42;
  });
  ASSERT_TRUE(log.wait_for(2));
  Timeout third = timer.new_timeout(on_cancelled(throw_in_cancelled), kFar);
  third.cancel();
  ASSERT_TRUE(log.wait_for(3));
  EXPECT_EQ(log.errors(), (std::vector<std::string>{"in run()", "42", "in cancelled()"}));
  EXPECT_EQ(log.timeouts(), (std::vector<Timeout>{first, second, third}));
  EXPECT_EQ(timer.stats().task_errors, 3);
  EXPECT_TRUE(first.is_expired()) << "a task that failed has run";
}

TEST(Errors, FromCancelledDuringStopOrTheDestructorReachTheHandler) {
  for (const bool stops : {false, true}) {
    ErrorLog log;
    {
      HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
      for (int i = 0; i < 3; ++i) timer.new_timeout(on_cancelled(throw_in_cancelled), kFar);
      if (stops) {
        EXPECT_EQ(timer.stop().size(), 3U);
      }
    }
    EXPECT_EQ(log.errors(), std::vector<std::string>(3, "in cancelled()"));
  }
}

/// Returns the text that a timer without a handler writes to stderr about `count` tasks.
template <class Task>
std::string lines_about(int count, Task task) {
  testing::internal::CaptureStderr();
  HashedWheelTimer timer(1ms);
  for (int i = 0; i < count; ++i) timer.new_timeout(task, 0ms);
  EXPECT_TRUE(eventually([&] { return timer.stats().task_errors == count; }));
  EXPECT_TRUE(ran_in_task(timer, [] {}));
  return testing::internal::GetCapturedStderr();
}

TEST(Errors, WithoutAHandlerTheyAreOneLineASecondOnStderr) {
  const auto before = steady_clock::now();
  const std::string text = lines_about(50, [] { throw std::runtime_error("unhandled"); });
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(steady_clock::now() - before).count();
  EXPECT_TRUE(contains(text, "unhandled")) << text;
  EXPECT_GE(count_of(text, "\n"), 1) << text;
  EXPECT_LE(count_of(text, "\n"), seconds) << text;
}

TEST(Errors, WithoutAHandlerAnIntOrATextOfSeveralLinesIsOneLine) {
  EXPECT_EQ(count_of(lines_about(1, [] { throw 42; }), "\n"), 1);
  const std::string text =
      lines_about(1, [] { throw std::runtime_error("first\nsecond\r\n" + std::string(5000, 'x')); });
  EXPECT_TRUE(contains(text, "first?second")) << text;
  EXPECT_EQ(count_of(text, "\n"), 1) << text;
  EXPECT_EQ(text.back(), '\n');
}

#if defined(__GLIBC__)
void leave_by_exit() { pthread_exit(nullptr); }

void leave_by_cancel() {
  pthread_cancel(pthread_self());
  pthread_testcancel();
}

class LeavesInDestructor {
 public:
  LeavesInDestructor() = default;
  LeavesInDestructor(LeavesInDestructor&& other) noexcept : owns_(std::exchange(other.owns_, false)) {}
  ~LeavesInDestructor() {
    if (owns_) leave_by_exit();
  }
  void operator()() const {}

 private:
  bool owns_ = true;
};

/// Expects that the use of a timer ends the program, with a line on stderr that matches `line`.
void expect_end(const char* line, const std::function<void()>& use) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        count_until_abort();
        use();
        pause();
      },
      std::string("^") + line + "[^\n]*\n$");
}

Options with_handler() {
  return {.tick_duration = 1ms, .on_task_error = [](const std::exception_ptr&, const Timeout&) { std::_Exit(1); }};
}

TEST(ErrorsDeathTest, ATaskThatEndsItsThreadEndsTheProgramWithALine) {
  const char* const line = "hashed_wheel_timer: a task was ended by pthread_exit\\(\\), pthread_cancel\\(\\)";
  for (void (*leave)() : {leave_by_exit, leave_by_cancel}) {
    for (const bool handled : {false, true}) {
      const Options options = handled ? with_handler() : Options{.tick_duration = 1ms};
      expect_end(line, [&] {
        HashedWheelTimer timer(options);
        timer.new_timeout(leave, 0ms);
        pause();
      });
    }
    expect_end(line, [&] {
      ManualTimer timer(1ms);
      timer.new_timeout(leave, 0ms);
      timer.advance(1s);
    });
    expect_end(line, [&] {
      Options options = with_handler();
      options.executor = [](std::function<void()> job) { std::thread(std::move(job)).detach(); };
      HashedWheelTimer timer(options);
      timer.new_timeout(leave, 0ms);
      pause();
    });
  }
}

TEST(ErrorsDeathTest, AnyFunctionThatEndsItsThreadEndsTheProgramWithALine) {
  const std::string end = " was ended by pthread_exit";
  expect_end(("hashed_wheel_timer: cancelled\\(\\) of a task" + end).c_str(), [] {
    ManualTimer timer(1ms);
    timer.new_timeout(on_cancelled(leave_by_exit), kFar).cancel();
    timer.advance(1s);
  });
  expect_end(("hashed_wheel_timer: the executor" + end).c_str(), [] {
    HashedWheelTimer timer{{.tick_duration = 1ms, .executor = [](const std::function<void()>&) { leave_by_exit(); }}};
    timer.new_timeout([] {}, 0ms);
    pause();
  });
  expect_end(("hashed_wheel_timer: on_slow_task" + end).c_str(), [] {
    HashedWheelTimer timer{{.tick_duration = 1ms,
                            .slow_task = 1ns,
                            .on_slow_task = [](const Timeout&, std::chrono::nanoseconds) { leave_by_exit(); }}};
    timer.new_timeout([] { std::this_thread::sleep_for(1ms); }, 0ms);
    pause();
  });
  expect_end(("hashed_wheel_timer: a schedule" + end).c_str(), [] {
    ManualTimer timer(1ms);
    const auto every = schedule(timer, Schedule::fixed_delay(1s, 1s), leave_by_exit);
    timer.advance(2s);
  });
  expect_end(("hashed_wheel_timer: a hook of a RepeatedTimer" + end).c_str(), [] {
    ManualTimer timer(1ms);
    RepeatedTimer repeated("", 1s, timer, {.on_trigger = leave_by_exit});
    repeated.start();
    timer.advance(2s);
  });
  // The C++ library ends the program: two must not throw, and one runs while an exception is handled.
  expect_end("terminate called", [] {
    HashedWheelTimer timer{
        {.tick_duration = 1ms, .on_task_error = [](const std::exception_ptr&, const Timeout&) { leave_by_exit(); }}};
    timer.new_timeout([] { throw 1; }, 0ms);
    pause();
  });
  expect_end("terminate called", [] {
    ManualTimer timer(1ms);
    timer.new_timeout(LeavesInDestructor(), 0ms);
    timer.advance(1s);
  });
  expect_end("terminate called", [] {
    LoopTimer timer{{.tick_duration = 1ms}};
    timer.on_earlier(leave_by_exit);
    timer.run_due();
    timer.new_timeout([] {}, 0ms);
  });
}
#endif

}  // namespace
}  // namespace hwt::test
