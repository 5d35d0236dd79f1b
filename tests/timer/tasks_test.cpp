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

TEST(Executor, AJobOutlivesTheTimerAndDoesNotKeepItsExecutor) {
  JobQueue jobs;
  std::atomic<int> runs = 0;
  const auto resource = std::make_shared<int>();
  const auto pool = std::make_shared<int>();
  Timeout held;
  {
    HashedWheelTimer timer{{.tick_duration = 1ms, .executor = [pool, take = jobs.executor()](auto job) { take(job); }}};
    held = timer.new_timeout([] {}, kFar);
    after(timer, 0ms, [&runs, resource](Timeout& self) {
      EXPECT_EQ(self.timer(), nullptr);
      ++runs;
    });
    ASSERT_TRUE(jobs.wait_for(1));
    EXPECT_GT(pool.use_count(), 1);
  }
  EXPECT_EQ(pool.use_count(), 1) << "neither the job nor the handle keeps it";
  EXPECT_EQ(resource.use_count(), 2);
  jobs.run_all();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(resource.use_count(), 1);
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

[[noreturn]] void throw_in_cancelled() { throw std::runtime_error("in cancelled()"); }

TEST(Errors, FromCancelledDuringStopOrTheDestructorReachTheHandler) {
  for (const bool stops : {false, true}) {
    ErrorLog log;
    {
      HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
      for (int i = 0; i < 3; ++i) timer.new_timeout(on_cancelled(throw_in_cancelled), kFar);
      EXPECT_EQ(stops ? timer.stop().size() : 3U, 3U);
    }
    EXPECT_EQ(log.errors(), std::vector<std::string>(3, "in cancelled()"));
  }
}

#if defined(__GLIBC__)
void leave_by_exit() { pthread_exit(nullptr); }

void leave_by_cancel() {
  pthread_cancel(pthread_self());
  pthread_testcancel();
}

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

/// Lets a millisecond pass for a timer without a worker. Waits for ever beside a worker, which is to end the program.
void go_on(ManualTimer& timer) { timer.advance(2s); }
void go_on(HashedWheelTimer&) { pause(); }

/// Makes a timer, calls use(timer), and lets time pass.
template <class T>
std::function<void()> with(const Options& options, const std::function<void(T&)>& use) {
  return [=] {
    T timer(options);
    use(timer);
    go_on(timer);
  };
}

TEST(ErrorsDeathTest, ATaskThatEndsItsThreadEndsTheProgramWithALine) {
  const char* const line = "hashed_wheel_timer: a task was ended by pthread_exit\\(\\), pthread_cancel\\(\\)";
  Options elsewhere = with_handler();
  elsewhere.executor = [](std::function<void()> job) { std::thread(std::move(job)).detach(); };
  for (void (*leave)() : {leave_by_exit, leave_by_cancel}) {
    const auto use = [leave](Timer& timer) { timer.new_timeout(leave, 0ms); };
    for (const Options& options : {Options{.tick_duration = 1ms}, with_handler(), elsewhere}) {
      expect_end(line, with<HashedWheelTimer>(options, use));
    }
    expect_end(line, with<ManualTimer>({.tick_duration = 1ms}, use));
  }
}

TEST(ErrorsDeathTest, AnyFunctionThatEndsItsThreadEndsTheProgramWithALine) {
  const auto expect_line = [](const std::string& name, const std::function<void()>& use) {
    expect_end(("hashed_wheel_timer: " + name + " was ended by pthread_exit").c_str(), use);
  };
  const auto empty = [](Timer& timer) { timer.new_timeout([] {}, 0ms); };
  const auto leave = [](auto&&...) { leave_by_exit(); };
  expect_line("cancelled\\(\\) of a task", with<ManualTimer>({.tick_duration = 1ms}, [](Timer& timer) {
                timer.new_timeout(on_cancelled(leave_by_exit), kFar).cancel();
              }));
  expect_line("the executor", with<HashedWheelTimer>({.tick_duration = 1ms, .executor = leave}, empty));
  expect_line("on_slow_task",
              with<HashedWheelTimer>({.tick_duration = 1ms, .slow_task = 1ns, .on_slow_task = leave}, [](Timer& timer) {
                timer.new_timeout([] { std::this_thread::sleep_for(1ms); }, 0ms);
              }));
  expect_line("a schedule", with<ManualTimer>({.tick_duration = 1ms}, [](Timer& timer) {
                schedule(timer, Schedule::fixed_delay(1s, 1s), leave_by_exit);
              }));
  expect_line("a hook of a RepeatedTimer", [] {
    ManualTimer timer(1ms);
    RepeatedTimer repeated("", 1s, timer, {.on_trigger = leave_by_exit});
    repeated.start();
    timer.advance(2s);
  });
  // The C++ library ends the program: two must not throw, and one runs while an exception is handled.
  const char* const terminates = "terminate called";
  expect_end(terminates, with<HashedWheelTimer>({.tick_duration = 1ms, .on_task_error = leave},
                                                [](Timer& timer) { timer.new_timeout([] { throw 1; }, 0ms); }));
  expect_end(terminates, with<ManualTimer>({.tick_duration = 1ms}, [](Timer& timer) {
               const auto leave_at_end = [](void*) { leave_by_exit(); };
               timer.new_timeout([end = std::shared_ptr<void>(nullptr, leave_at_end)] {}, 0ms);
             }));
  expect_end(terminates, [] {
    LoopTimer timer{{.tick_duration = 1ms}};
    timer.on_earlier(leave_by_exit);
    timer.run_due();
    timer.new_timeout([] {}, 0ms);
  });
}
#endif

// How long a task and its captures are kept: docs/guide.md, "Task lifetime". And the callables that can be a task.

using Resource = std::shared_ptr<int>;

Resource make_resource() { return std::make_shared<int>(7); }
bool is_released(const Resource& resource) { return resource.use_count() == 1; }

TEST(TaskLifetime, ACallableIsDestroyedAfterItRanOrThrew) {
  for (const bool throws : {false, true}) {
    SCOPED_TRACE(throws ? "throws" : "returns");
    const Resource resource = make_resource();
    ErrorLog log;
    HashedWheelTimer timer{{.tick_duration = 1ms, .on_task_error = log.handler()}};
    const Timeout kept = after(timer, 0ms, [resource, throws] {
      if (throws) throw 1;
    });
    EXPECT_TRUE(eventually([&] { return is_released(resource); })) << "though the handle is still held";
    EXPECT_TRUE(kept.is_expired());
  }
}

TEST(TaskLifetime, ATaskThatIsCalledByHandStaysPending) {
  int calls = 0;
  ManualTimer timer;
  Timeout timeout = timer.new_timeout([&] { ++calls; }, kFar);
  timeout.task().run(timeout);
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(timeout.cancel()) << "calling the task by hand is not expiry";
}

TEST(TaskLifetime, ARefusedCallableIsDestroyedOrNeverTaken) {
  const Resource resource = make_resource();
  HashedWheelTimer timer{{.max_pending_timeouts = 1}};
  timer.new_timeout([] {}, kFar);
  EXPECT_THROW(timer.new_timeout([resource] {}, kFar), RejectedExecution);
  EXPECT_TRUE(is_released(resource));
  auto callable = [resource] {};
  EXPECT_FALSE(timer.try_new_timeout(std::move(callable), kFar));
  EXPECT_EQ(resource.use_count(), 2) << "a refused callable is not moved from";
  timer.stop();
  EXPECT_THROW(timer.new_timeout([resource] {}, kFar), IllegalState);
  EXPECT_EQ(resource.use_count(), 2);
}

TEST(TaskLifetime, ASharedTaskIsHeldUntilTheLastHandleGoesAndUntilItOrItsCancelledHasRun) {
  for (const bool cancels : {false, true}) {
    const auto task = std::make_shared<RecordingTask>();
    ManualTimer timer;
    Timeout timeout = timer.new_timeout(task, 0ms);
    Timeout copy = timeout;
    EXPECT_EQ(cancels && timeout.cancel(), cancels);
    timer.advance(1ms);
    EXPECT_EQ(task->runs + task->cancellations, 1);
    timeout = {};
    EXPECT_EQ(&copy.task(), task.get());
    EXPECT_EQ(task.use_count(), 2);
    copy = {};
    EXPECT_EQ(task.use_count(), 1);
    timeout = timer.new_timeout(task, 0ms);
    EXPECT_EQ(cancels && timeout.cancel(), cancels);
    timeout = {};
    EXPECT_EQ(task.use_count(), 2) << "without a handle";
    timer.advance(1ms);
    EXPECT_EQ(task.use_count(), 1);
  }
}

TEST(TaskLifetime, TheDestructorEndsTheWorkerCancelsAndKeepsSharedTasksForTheirHandles) {
  CountingFactory workers;
  const auto held = std::make_shared<RecordingTask>();
  const auto dropped = std::make_shared<RecordingTask>();
  Timeout handle;
  {
    HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = workers.factory()}};
    handle = timer.new_timeout(held, kFar);
    timer.new_timeout(dropped, kFar);
  }
  EXPECT_TRUE(workers.wait_until_ended());
  EXPECT_EQ(held->cancellations, 1);
  EXPECT_EQ(dropped->cancellations, 1);
  EXPECT_EQ(held->runs + dropped->runs, 0);
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_EQ(dropped.use_count(), 1);
  EXPECT_EQ(&handle.task(), held.get());
}

// A timeout returned by stop() keeps its task until its last handle goes, so that the caller can run it.

TEST(TaskLifetime, ATimeoutThatStopReturnsCanBeRun) {
  for (const bool timer_is_gone : {false, true}) {
    const Resource resource = make_resource();
    int runs = 0;
    const auto shared = std::make_shared<RecordingTask>();
    auto timer = std::make_unique<HashedWheelTimer>(1ms);
    timer->new_timeout([resource, &runs] { runs += *resource; }, kFar);
    await_transfer(*timer);
    timer->new_timeout([resource, &runs](Timeout& self) { runs += self.is_cancelled() ? 100 : 0; }, kFar);
    timer->new_timeout(shared, kFar);
    std::vector<Timeout> unprocessed = timer->stop();
    if (timer_is_gone) timer.reset();
    ASSERT_EQ(unprocessed.size(), 3U);
    for (Timeout& timeout : unprocessed) timeout.task().run(timeout);
    EXPECT_EQ(runs, 107);
    EXPECT_EQ(shared->runs, 1);
    EXPECT_FALSE(is_released(resource));
    unprocessed.clear();
    EXPECT_TRUE(is_released(resource));
    EXPECT_EQ(shared.use_count(), 1);
  }
}

TEST(TaskLifetime, ACallableThatOwnsItsOwnHandleGoesAfterItRanOrWithTheTimer) {
  std::weak_ptr<Timeout> watch;
  {
    ManualTimer timer;
    const auto schedule = [&](When when) {
      const auto owned = std::make_shared<Timeout>();
      *owned = timer.new_timeout([owned] {}, when);
      watch = owned;
    };
    schedule(0ms);
    timer.advance(1ms);
    EXPECT_TRUE(watch.expired());
    schedule(kFar);
    timer.advance(1ms);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(TaskLifetime, ACallableMayOwnItsTimerAndExpireOrBeReturnedByStop) {
  for (const bool expires : {true, false}) {
    CountingFactory workers;
    std::atomic<bool> ran = false;
    auto timer = std::make_shared<HashedWheelTimer>(Options{.tick_duration = 1ms, .thread_factory = workers.factory()});
    const Timeout other = timer->new_timeout([] {}, kFar);
    timer->new_timeout([&ran, timer] { ran = true; }, expires ? When(5ms) : When(kFar));
    std::vector<Timeout> unprocessed;
    if (!expires) unprocessed = timer->stop();
    timer.reset();
    EXPECT_TRUE(expires || other.timer() != nullptr);
    unprocessed.clear();
    ASSERT_TRUE(workers.wait_until_ended());
    EXPECT_EQ(other.timer(), nullptr);
    EXPECT_EQ(ran, expires);
  }
}

TEST(TaskLifetime, ATaskMayReplaceMoveOrDropItsHandle) {
  const auto next = std::make_shared<RecordingTask>();
  const Resource resource = make_resource();
  Timeout moved, taken;
  ManualTimer timer;
  timer.new_timeout([&, resource](Timeout& self) { self = timer.new_timeout(next, kFar); }, 0ms);
  after(timer, 0ms, [&, resource](Timeout& self) {
    moved = self;
    taken = std::move(self);
  });
  after(timer, 0ms, [&, resource](Timeout& self) {
    self = Timeout();
    EXPECT_EQ(*resource, 7);
  });
  EXPECT_EQ(timer.advance(1ms), 3U);
  EXPECT_EQ(timer.stop().size(), 1U);
  EXPECT_EQ(taken, moved);
  EXPECT_TRUE(is_released(resource));
  EXPECT_EQ(next.use_count(), 1) << "the handle was dropped with the task's argument";
}

TEST(TimerTasks, MayHaveMembersNamedExecutorAndWillNotRun) {
  struct Task : RecordingTask {
    int executor() const noexcept { return 1; }
    int will_not_run(detail::NotRun) { return 2; }
  };
  const auto task = std::make_shared<Task>();
  ManualTimer timer;
  timer.new_timeout(task, 1ms);
  EXPECT_EQ(timer.advance(1ms), 1U);
  EXPECT_EQ(task->runs + task->executor() + task->will_not_run(detail::NotRun::Stopped), 4);
}

int function_calls = 0;
void plain_function() { ++function_calls; }
void function_of_timeout(Timeout& timeout) { function_calls += timeout.is_expired() ? 10 : 0; }

TEST(Callables, MayBeFunctionsTakeTheTimeoutOrNotBeMutableAndReturnAnything) {
  struct Both {
    void operator()(Timeout&) const { function_calls += 100; }
    void operator()() const { ADD_FAILURE() << "f(Timeout&) is preferred"; }
  };
  function_calls = 0;
  int calls = 0;
  ManualTimer timer;
  timer.new_timeout(&plain_function, 0ms);
  timer.new_timeout(&function_of_timeout, 0ms);
  timer.new_timeout(plain_function, 0ms);
  timer.new_timeout(function_of_timeout, 0ms);
  timer.add(plain_function, 0ms);
  EXPECT_TRUE(timer.try_add(&plain_function, 0ms));
  timer.new_timeout(Both(), 0ms);
  timer.new_timeout([&](const Timeout&) { ++calls; }, 0ms);
  timer.new_timeout([&](Timeout) { ++calls; }, 0ms);
  timer.new_timeout([&](auto&&) { ++calls; }, 0ms);
  timer.new_timeout([&] { return ++calls, std::string("nobody reads this"); }, 0ms);
  timer.new_timeout([&, own = 0]() mutable { ++own == 1 ? ++calls : throw own; }, 0ms);
  const std::function<void()> function = [&] { ++calls; };
  timer.new_timeout(function, 0ms);
  EXPECT_EQ(timer.advance(1ms), 13U);
  EXPECT_EQ(calls, 6);
  EXPECT_EQ(function_calls, 124);
}

TEST(Callables, AnLvalueIsCopiedAnRvalueMoved) {
  const Resource resource = make_resource();
  HashedWheelTimer timer;
  auto callable = [captured = Resource(resource)] {};  // [resource] would be const, which cannot be moved from
  Timeout of_copy = timer.new_timeout(callable, kFar);
  EXPECT_EQ(resource.use_count(), 3);
  Timeout of_moved = timer.new_timeout(std::move(callable), kFar);
  EXPECT_EQ(resource.use_count(), 3);
  EXPECT_TRUE(of_copy.cancel() && of_moved.cancel());
  EXPECT_TRUE(is_released(resource));
}

int well_kept = 0;

template <std::size_t size, std::size_t alignment>
struct alignas(alignment) Sized {
  Sized() { bytes_.fill(std::byte{0x5A}); }
  void operator()() const {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(this) % alignment == 0;
    const bool is_whole = std::ranges::all_of(bytes_, [](std::byte byte) { return byte == std::byte{0x5A}; });
    well_kept += is_aligned && is_whole ? 1 : 0;
  }

 private:
  Resource resource_ = make_resource();
  std::array<std::byte, size> bytes_;
};

TEST(Callables, OfEverySizeAndAlignment) {
  well_kept = 0;
  ManualTimer timer;
  const auto schedule = [&](auto... tasks) { (timer.new_timeout(tasks, 0ms), ...); };
  schedule(Sized<1, 8>(), Sized<64, 8>(), Sized<16, 16>(), Sized<16, 32>(), Sized<64, 64>(), Sized<100, 256>(),
           Sized<10'000, 8>(), Sized<10'000, 4096>());
  timer.advance(1ms);
  EXPECT_EQ(well_kept, 8);
}

}  // namespace
}  // namespace hwt::test
