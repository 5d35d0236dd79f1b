// The promise of cancel_and_wait(), for every Timer: after it, objects of the task may be destroyed.

#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/any_timer.h"
#include "tests/support/held_task.h"
#include "tests/support/job_thread.h"

#if !defined(_WIN32)
#include "tests/support/forked_child.h"
#endif

namespace hwt::test {
namespace {

/// A timer of one kind with a tick of 1 ms. One without a worker gets a thread that lets time pass.
template <class T>
class Rig {
 public:
  explicit Rig(const Options& options = {}) : timer_(make_timer<T>(options)) {
    if constexpr (kDriven<T>) {
      turner_ = std::jthread([this] {
        while (!over_) {
          turn(*timer_);
          std::this_thread::sleep_for(50us);
        }
      });
    }
  }
  ~Rig() { destroy(); }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  Timer& operator*() { return *timer_; }
  T* operator->() { return timer_.get(); }

  /// Schedules a task that is due now, and waits until it is held.
  Timeout run_held(Story& story) {
    const Timeout timeout = timer_->new_timeout(Actor(story), 0ns);
    EXPECT_TRUE(story.hold.wait_until_entered());
    return timeout;
  }

  /// In a task of this timer, too.
  void destroy() {
    over_ = true;
    if (turner_.joinable() && turner_.get_id() != std::this_thread::get_id()) turner_.join();
    timer_.reset();
  }

 private:
  std::atomic<bool> over_ = false;
  std::unique_ptr<T> timer_;
  std::jthread turner_;
};

/// A thread in cancel_and_wait().
class Waiter {
 public:
  explicit Waiter(const Timeout& timeout) : timeout_(timeout) {
    thread_ = std::jthread([this] {
      result_ = timeout_.cancel_and_wait();
      returned_ = true;
    });
  }
  /// Waits until a thread has marked the timeout as awaited. If that is this thread, only the end of the task or of its
  /// callable ends its wait. If another thread came first, the mark says nothing about this one.
  [[nodiscard]] bool is_waiting() {
    return eventually(
        [this] { return (internal::Node::of(timeout_)->word.load() & internal::Node::kAwaited) != 0 && !returned_; });
  }
  [[nodiscard]] bool has_returned() const { return returned_; }
  bool result() {
    thread_.join();
    return result_;
  }

 private:
  Timeout timeout_;
  bool result_ = false;
  std::atomic<bool> returned_ = false;
  std::jthread thread_;
};

/// Expects that cancel_and_wait() of another thread waits until `hold` lets go, and that it returns false then.
void expect_waits_until(Hold& hold, const Timeout& timeout, const char* although = "") {
  EXPECT_TRUE(hold.wait_until_entered());
  Waiter waiter(timeout);
  EXPECT_TRUE(waiter.is_waiting()) << although;
  hold.let_go();
  EXPECT_FALSE(waiter.result());
}

using Executor = std::function<void(std::function<void()>)>;
const Executor kInline = [](const std::function<void()>& job) { job(); };

template <class T>
class CancelAndWait : public ::testing::Test {};

TYPED_TEST_SUITE(CancelAndWait, AllTimers, TimerNames);

TYPED_TEST(CancelAndWait, IsTrueOnceForAPendingTimeoutAndDestroysTheCallable) {
  Story story;
  Rig<TypeParam> timer;
  Timeout timeout = timer->new_timeout(Actor(story), kFar);
  Timeout ran = timer->new_timeout([] {}, 0ns);
  Timeout cancelled = timer->new_timeout([] {}, kFar);
  EXPECT_TRUE(cancelled.cancel());
  EXPECT_TRUE(timeout.cancel_and_wait());
  EXPECT_TRUE(story.destroyed);
  EXPECT_FALSE(story.ran);
  EXPECT_TRUE(timeout.is_cancelled());
  ASSERT_TRUE(ran_in_task(*timer, [] {}));
  EXPECT_EQ(timer->pending_timeouts(), 0);
  for (Timeout* ended : {&timeout, &cancelled, &ran}) EXPECT_FALSE(ended->cancel_and_wait() || ended->cancel());
}

TYPED_TEST(CancelAndWait, WaitsWhileTheTaskRunsOrItsCallableIsDestroyedAlsoInAnExecutorOfATimerThatIsGone) {
  enum class Where { Worker, Inline, Elsewhere, ElsewhereAndTheTimerIsGone };
  for (const Where where : {Where::Worker, Where::Inline, Where::Elsewhere, Where::ElsewhereAndTheTimerIsGone})
    for (const In held_in : {In::Run, In::Destructor}) {
      Story story(held_in);
      ThreadPerJob threads;
      const Executor executor = where == Where::Worker   ? nullptr
                                : where == Where::Inline ? kInline
                                                         : threads.executor();
      Rig<TypeParam> timer({.executor = executor});
      const Timeout timeout = timer.run_held(story);
      if (where == Where::ElsewhereAndTheTimerIsGone) timer.destroy();
      expect_waits_until(story.hold, timeout);
      EXPECT_TRUE(story.ran);
      EXPECT_TRUE(story.destroyed);
    }
}

TYPED_TEST(CancelAndWait, WaitsForACallableThatNeedsNoDestructionAndForATimerTask) {
  struct Held : TimerTask {
    explicit Held(const std::function<void()>& task) : its_task(task) {}
    void run(Timeout&) override { its_task(); }
    const std::function<void()>& its_task;
  };
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "shared" : "not shared");
    Hold hold;
    bool ran = false;
    Rig<TypeParam> timer;
    const auto task = [&hold, &ran] {
      hold();
      ran = true;
    };
    static_assert(std::is_trivially_destructible_v<decltype(task)>);
    const std::function<void()> function = task;
    expect_waits_until(
        hold, shared ? timer->new_timeout(std::make_shared<Held>(function), 0ns) : timer->new_timeout(task, 0ns));
    EXPECT_TRUE(ran);
  }
}

TYPED_TEST(CancelAndWait, WaitsForATaskThatThrowsAndForItsReport) {
  Story story;
  Hold hold;
  bool reported = false;
  Rig<TypeParam> timer({.on_task_error = [&](std::exception_ptr, const Timeout&) {
    hold();
    reported = true;
  }});
  const Timeout timeout = timer->new_timeout([actor = Actor(story)] { throw 1; }, 0ns);
  expect_waits_until(hold, timeout);
  EXPECT_TRUE(reported);
  EXPECT_TRUE(story.destroyed);
}

TYPED_TEST(CancelAndWait, WaitsForATaskThatMovesItsHandleAwayOrDestroysItsTimer) {
  for (const bool destroys : {false, true}) {
    SCOPED_TRACE(destroys ? "destroys" : "does not destroy");
    Story story;
    Hold hold;
    Timeout taken;
    Rig<TypeParam> timer;
    const Timeout timeout = after(*timer, 0ns, [&, destroys, actor = Actor(story)](Timeout& self) mutable {
      taken = std::move(self);
      if (destroys) timer.destroy();
      hold();
      actor();
    });
    expect_waits_until(hold, timeout);
    EXPECT_TRUE(story.destroyed);
    EXPECT_EQ(taken, timeout);
  }
}

TYPED_TEST(CancelAndWait, IsFalseAtOnceInsideTheTaskHoweverDeepAndCancelsAnother) {
  ThreadPerJob threads;
  for (const Options& options :
       {Options{}, Options{.slow_task = 1h}, Options{.executor = kInline}, Options{.executor = threads.executor()}}) {
    Story story;
    Rig<TypeParam> timer(options);
    Timeout far = timer->new_timeout(Actor(story), kFar);
    EXPECT_TRUE(ran_in_task(*timer, [&](Timeout& self) {
      Timeout copy = self;
      EXPECT_TRUE(far.cancel_and_wait() && story.destroyed);
      EXPECT_FALSE(self.cancel_and_wait());
      EXPECT_FALSE(copy.cancel_and_wait());
      ManualTimer inner;
      after(inner, 0ns, [&](Timeout& in_inner) {
        EXPECT_FALSE(self.cancel_and_wait());
        EXPECT_FALSE(in_inner.cancel_and_wait());
      });
      EXPECT_EQ(inner.advance(1s), 1U);
      EXPECT_FALSE(self.cancel_and_wait()) << "after it was in another one";
    }));
  }
}

TYPED_TEST(CancelAndWait, IsFalseAtOnceInTheDestructorOfACallableThatHasRunOrIsCancelledOrDisarmed) {
  enum class Way { CancelledElsewhere, CancelledHere, Disarmed, Runs, RunsInline, RunsElsewhere };
  for (const Way way :
       {Way::CancelledElsewhere, Way::CancelledHere, Way::Disarmed, Way::Runs, Way::RunsInline, Way::RunsElsewhere}) {
    Timeout own;
    bool answer = true;
    Latch answered;
    std::shared_ptr<void> asks_at_its_end(nullptr, [&](void*) {
      answer = own.cancel_and_wait();
      answered.count_down();
    });
    JobQueue queue;
    ThreadPerJob threads;
    Rig<TypeParam> timer({.executor = way == Way::Disarmed        ? queue.executor()
                                      : way == Way::RunsInline    ? kInline
                                      : way == Way::RunsElsewhere ? threads.executor()
                                                                  : nullptr});
    const bool pends = way == Way::CancelledElsewhere || way == Way::CancelledHere;
    const bool runs = way >= Way::Runs;
    Timeout timeout = after(*timer, pends ? When(kFar) : When(0ns),
                            [&own, asks = std::move(asks_at_its_end)](Timeout& self) { own = self; });
    if (way == Way::Disarmed) {
      ASSERT_TRUE(queue.wait_for(1));
    }
    if (!runs) own = timeout;
    if (way == Way::CancelledElsewhere) std::jthread([&] { EXPECT_TRUE(timeout.cancel()); }).join();
    EXPECT_TRUE(runs || way == Way::CancelledElsewhere || timeout.cancel_and_wait());
    ASSERT_TRUE(runs ? answered.wait() : answered.is_open());
    EXPECT_FALSE(answer);
  }
}

TYPED_TEST(CancelAndWait, ATaskWaitsForATaskOfAnotherTimer) {
  Story story(In::Run);
  Latch waited;
  Rig<TypeParam> one;
  HashedWheelTimer other(1ms);
  Timeout timeout = one->new_timeout(Actor(story), 0ns);
  ASSERT_TRUE(story.hold.wait_until_entered());
  after(other, 0ns, [&] {
    EXPECT_FALSE(timeout.cancel_and_wait());
    EXPECT_TRUE(story.destroyed);
    waited.count_down();
  });
  EXPECT_TRUE(eventually([&] { return (internal::Node::of(timeout)->word & internal::Node::kAwaited) != 0; }));
  story.hold.let_go();
  EXPECT_TRUE(waited.wait());
}

TYPED_TEST(CancelAndWait, DoesNotWaitForCancelled) {
  Hold hold;
  Rig<TypeParam> timer;
  const auto task = on_cancelled([&](Timeout& self) {
    EXPECT_FALSE(self.cancel_and_wait());
    hold();
  });
  Timeout timeout = timer->new_timeout(task, kFar);
  EXPECT_TRUE(timeout.cancel_and_wait());
  ASSERT_TRUE(hold.wait_until_entered());
  EXPECT_FALSE(timeout.cancel_and_wait()) << "while cancelled() runs";
  hold.let_go();
}

TYPED_TEST(CancelAndWait, IsFalseAtOnceAfterStopAndAfterTheTimersEnd) {
  Story stopped, ended;
  Rig<TypeParam> timer;
  Timeout timeout = timer->new_timeout(Actor(stopped), kFar);
  {
    const std::vector<Timeout> returned = timer->stop();
    EXPECT_EQ(returned, std::vector<Timeout>{timeout});
    EXPECT_FALSE(timeout.cancel_and_wait());
    EXPECT_FALSE(stopped.destroyed) << "it is the caller's now";
  }
  EXPECT_FALSE(timeout.cancel_and_wait());
  Rig<TypeParam> other;
  timeout = other->new_timeout(Actor(ended), kFar);
  other.destroy();
  EXPECT_TRUE(ended.destroyed);
  EXPECT_FALSE(timeout.cancel_and_wait());
}

TYPED_TEST(CancelAndWait, ManyThreadsWaitForTheSameTaskBesideStop) {
  Story story(In::Run);
  Rig<TypeParam> timer;
  const Timeout timeout = timer.run_held(story);
  std::array<std::unique_ptr<Waiter>, 4> waiters;
  waiters[0] = std::make_unique<Waiter>(timeout);
  EXPECT_TRUE(waiters[0]->is_waiting());
  std::jthread stopper([&] { EXPECT_TRUE(timer->stop().empty()); });
  wait_until_refusing(*timer);
  for (std::size_t i = 1; i < waiters.size(); ++i) waiters[i] = std::make_unique<Waiter>(timeout);
  std::this_thread::sleep_for(20ms);  // no event tells that they are asleep: the first one has set the mark
  for (auto& waiter : waiters) EXPECT_FALSE(waiter->has_returned());
  story.hold.let_go();
  for (auto& waiter : waiters) EXPECT_FALSE(waiter->result());
  EXPECT_TRUE(story.destroyed);
}

#if !defined(_WIN32)
/// The thread that runs the task is not there.
TYPED_TEST(CancelAndWait, DoesNotWaitInAForkedChildForATaskThatRunsInTheParent) {
  Story story(In::Run);
  Rig<TypeParam> timer;
  Timeout timeout = timer.run_held(story);
  EXPECT_EQ(status_of_child([&] { return timeout.cancel_and_wait() ? 1 : 0; }), 0);
  story.hold.let_go();
  EXPECT_FALSE(timeout.cancel_and_wait());
  EXPECT_TRUE(story.destroyed);
}
#endif

TYPED_TEST(CancelAndWait, DisarmsATaskThatWaitsAlsoWhenTheTimerIsGone) {
  for (const bool gone : {false, true}) {
    SCOPED_TRACE(gone ? "gone" : "not gone");
    Story story;
    const auto task = std::make_shared<RecordingTask>();
    JobQueue queue;
    Rig<TypeParam> timer({.executor = queue.executor()});
    Timeout timeout = timer->new_timeout(Actor(story), 0ns);
    Timeout of_task = timer->new_timeout(task, 0ns);
    const TimeoutId with_id = timer->add(must_not_run, 0ns);
    ASSERT_TRUE(queue.wait_for(3));
    EXPECT_EQ(timer->cancel(with_id), CancelResult::Running);
    EXPECT_EQ(timer->cancel_and_wait(with_id), CancelResult::Cancelled);
    EXPECT_FALSE(timeout.cancel() || timeout.is_pending() || timeout.reschedule(1ms) || timeout.reschedule(kFar));
    if (gone) timer.destroy();
    EXPECT_TRUE(timeout.cancel_and_wait() && of_task.cancel_and_wait());
    EXPECT_TRUE(story.destroyed);
    EXPECT_FALSE(timeout.cancel_and_wait());
    queue.run_all();
    EXPECT_FALSE(story.ran);
    EXPECT_EQ(task->runs + task->cancellations, 0) << "it was not pending any more";
    EXPECT_TRUE(timeout.is_expired());
    EXPECT_FALSE(timeout.is_cancelled());
    if (gone) continue;
    EXPECT_TRUE(eventually([&] { return timer->stats().expired == 3; }));
    EXPECT_EQ(timer->stats().cancelled, 0);
    EXPECT_TRUE(is_balanced(timer->stats()));
  }
}

TYPED_TEST(CancelAndWait, WaitsWhileAnotherThreadDestroysTheCallable) {
  enum class Way { Cancels, Disarms, DropsTheJob };
  for (const Way way : {Way::Cancels, Way::Disarms, Way::DropsTheJob}) {
    Story story(In::Destructor);
    JobQueue queue;
    Rig<TypeParam> timer({.executor = queue.executor()});
    Timeout timeout = timer->new_timeout(Actor(story), way == Way::Cancels ? When(kFar) : When(0ns));
    ASSERT_TRUE(way == Way::Cancels || queue.wait_for(1));
    std::jthread other([&, copy = timeout]() mutable {
      EXPECT_TRUE(way != Way::Cancels || copy.cancel());
      EXPECT_TRUE(way != Way::Disarms || copy.cancel_and_wait());
      queue.take();
    });
    expect_waits_until(story.hold, timeout);
    EXPECT_TRUE(story.destroyed);
    EXPECT_FALSE(story.ran);
  }
}

/// Two jobs of one thread, one inside the other.
TYPED_TEST(CancelAndWait, IsFalseAtOnceInsideATaskThatRunsOtherJobs) {
  JobQueue queue;
  Timeout outer;
  int ran = 0;
  Rig<TypeParam> timer({.executor = queue.executor()});
  outer = after(*timer, 0ns, [&] {
    ASSERT_TRUE(queue.wait_for(2));
    queue.run_all();
    ++ran;
  });
  ASSERT_TRUE(queue.wait_for(1));
  const auto first = queue.take();  // before the second comes, which the first must run
  after(*timer, 0ns, [&](Timeout& self) {
    EXPECT_FALSE(outer.cancel_and_wait());
    EXPECT_FALSE(self.cancel_and_wait());
    ++ran;
  });
  first.at(0)();
  EXPECT_EQ(ran, 2);
}

TYPED_TEST(CancelAndWait, WaitsForATaskThatTheExecutorKeptAndRefused) {
  Story story(In::Run);
  std::function<void()> kept;
  ErrorLog errors;
  Rig<TypeParam> timer({.executor =
                            [&](std::function<void()> job) {
                              kept = std::move(job);
                              throw 1;
                            },
                        .on_task_error = errors.handler()});
  const Timeout timeout = timer.run_held(story);
  kept();
  expect_waits_until(story.hold, timeout, "although the job has returned");
  EXPECT_TRUE(story.destroyed);
}

TYPED_TEST(CancelAndWait, DisarmsATaskThatTheExecutorRefuses) {
  Story story;
  Latch told;
  Rig<TypeParam> timer({.executor = [](const std::function<void()>&) { throw 1; },
                        .on_task_error =
                            [&](std::exception_ptr, const Timeout& timeout) {
                              EXPECT_TRUE(Timeout(timeout).cancel_and_wait());
                              EXPECT_TRUE(story.destroyed);
                              told.count_down();
                            }});
  timer->new_timeout(Actor(story), 0ns);
  EXPECT_TRUE(told.wait());
  timer->stop();
  EXPECT_FALSE(story.ran);
}

// Objects of a task are destroyed at once: AddressSanitizer and ThreadSanitizer watch.

/// Each thread schedules timeouts that are about to expire, and ends each by cancel_and_wait(). Then it destroys the
/// story that the task tells. In some rounds a second thread cancels the same timeouts, by handles of its own.
template <class Rig>
void race(Rig& timer) {
  constexpr int kThreads = 2;
  constexpr int kRounds = 250 / (kSanitized ? 4 : 1);
  constexpr int kAtOnce = 16;
  std::atomic<int> cancelled = 0, ran = 0;
  run_together(kThreads, [&](int seed) {
    std::minstd_rand random(static_cast<unsigned>(seed + 1));
    for (int round = 0; round < kRounds; ++round) {
      std::array<std::unique_ptr<Story>, kAtOnce> stories;
      std::array<Timeout, kAtOnce> timeouts;
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        stories[i] = std::make_unique<Story>();
        timeouts[i] = timer->new_timeout(Actor(*stories[i]), std::chrono::microseconds(random() % 2000));
      }
      std::jthread second;
      std::atomic<int> by_second = 0;
      if (round % 4 == 0) {
        second = std::jthread([&by_second, copies = timeouts]() mutable {
          for (Timeout& copy : copies) by_second += copy.cancel() ? 1 : 0;
        });
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 1500));
      for (std::size_t i = 0; i < kAtOnce; ++i) {
        cancelled += timeouts[i].cancel_and_wait() ? 1 : 0;
        ran += stories[i]->ran;
        EXPECT_EQ(stories[i]->destroyed, 1);
        stories[i].reset();
      }
      if (second.joinable()) second.join();
      cancelled += by_second;
    }
  });
  EXPECT_EQ(cancelled + ran, kThreads * kRounds * kAtOnce) << "each ran, or was cancelled once";
  EXPECT_GT(cancelled, 0);
}

TYPED_TEST(CancelAndWait, AnObjectOfTheTaskMayBeDestroyedAfterIt) {
  JobThread elsewhere;
  JobThread later(20);
  JobQueue never;
  for (const Executor& executor : {Executor(), kInline, elsewhere.executor(), later.executor(), never.executor()}) {
    Rig<TypeParam> timer({.executor = executor});
    race(timer);
  }
}

// A thread that learns how a timeout has ended sees all that the task wrote. The objects are plain, so ThreadSanitizer
// reports an order that is missing.

template <class T>
class Visibility : public ::testing::Test {};
TYPED_TEST_SUITE(Visibility, AllTimers, TimerNames);

constexpr int kRounds = kSanitized ? 50 : 300;

/// Cancels until the task does not run. Returns whether it has run.
bool has_run(Timer& timer, TimeoutId id) {
  CancelResult result{};
  while ((result = timer.cancel(id)) == CancelResult::Running) {
  }
  return result == CancelResult::Gone;
}

/// Nothing but the result of cancel() or cancel_and_wait() tells the thread that the task has ended.
TYPED_TEST(Visibility, AfterGoneAndAfterCancelAndWaitEverythingThatTheTaskWrote) {
  for (const bool in_executor : {false, true}) {
    SCOPED_TRACE(in_executor ? "in an executor" : "on the worker");
    JobQueue jobs;
    Rig<TypeParam> timer(in_executor ? Options{.executor = jobs.executor()} : Options{});
    std::jthread runner([&](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::yield()) jobs.run_all();
    });
    for (int round = 1; round <= kRounds; ++round) {
      const bool in_the_wheel = round % 5 == 0;
      int written = 0;
      const TimeoutId id = timer->add([&] { written = round; }, in_the_wheel ? 2ms : 0ms);
      Timeout handle = round % 4 == 0 ? timer->find(id) : Timeout();
      if (round % 2 == 0) std::this_thread::sleep_for(in_the_wheel ? 4ms : 1ms);
      const bool ran = handle           ? !handle.cancel_and_wait()
                       : round % 4 == 1 ? timer->cancel_and_wait(id) != CancelResult::Cancelled
                                        : has_run(*timer, id);
      EXPECT_EQ(written, ran ? round : 0);
    }
  }
}

TYPED_TEST(Visibility, AfterRunningEverythingThatEarlierTasksWrote) {
  Rig<TypeParam> timer;
  int running = 0;
  for (int round = 1; round <= kRounds / 5; ++round) {
    int written = 0;
    const auto hold = std::make_shared<Hold>();
    std::atomic<bool> began = false;
    timer->add([&] { written = round; }, 0ns);
    const TimeoutId id = add_after(*timer, 0ns, [&, round, hold] {
      began.store(true, std::memory_order_relaxed);  // which orders nothing
      (*hold)();
      written = -round;
    });
    while (!began.load(std::memory_order_relaxed)) std::this_thread::yield();
    if (timer->cancel(id) == CancelResult::Running) {
      ++running;
      EXPECT_EQ(written, round);
    }
    hold->let_go();
    EXPECT_EQ(timer->cancel_and_wait(id), CancelResult::Gone);
    EXPECT_EQ(written, -round);
  }
  EXPECT_GT(running, 0);
}

}  // namespace
}  // namespace hwt::test
