// No thread waits for a thread that may not run, and the worker does not sleep while it has work. The tests hold
// threads and the worker at chosen points, as if the system had preempted them.

#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

/// Far as well, but earlier than kFar.
constexpr std::chrono::minutes kHalfWay{30};

/// A task whose cancelled() the worker calls while it takes from its inbox. Timeouts that come then are not part of
/// that pass. The next sleep must not outlast them.
class Hook : public TimerTask {
 public:
  explicit Hook(std::function<void()> f) : f_(std::move(f)) {}
  void run(Timeout&) override { ADD_FAILURE() << "ran although it was cancelled"; }
  void cancelled(Timeout&) override {
    f_();
    called.count_down();
  }

  Latch called;

 private:
  const std::function<void()> f_;
};

/// Calls f on the worker, after a pass has begun and before the sleep that follows.
void call_between_pass_and_sleep(Timer& timer, std::function<void()> f) {
  const auto hook = std::make_shared<Hook>(std::move(f));
  EXPECT_TRUE(timer.new_timeout(hook, kFar).cancel());
  ASSERT_TRUE(hook->called.wait());
}

class BeforeASleep : public ::testing::Test {
 protected:
  Timeout schedule(std::chrono::nanoseconds delay) {
    return timer_.new_timeout([this] { ran_.count_down(); }, delay);
  }
  void expect_it_runs() { EXPECT_TRUE(ran_.wait(10s)) << "the worker sleeps although a timeout is due"; }

  Latch ran_;
  HashedWheelTimer timer_{1ms};
};

TEST_F(BeforeASleep, AScheduledTimeoutIsFound) {
  call_between_pass_and_sleep(timer_, [&] { schedule(5ms); });
  expect_it_runs();
}

TEST_F(BeforeASleep, ATimeoutRescheduledToEarlierInTheWheelIsFound) {
  Timeout timeout = schedule(kFar);
  await_transfer(timer_);
  call_between_pass_and_sleep(timer_, [&] { EXPECT_TRUE(timeout.reschedule(5ms)); });
  expect_it_runs();
}

TEST_F(BeforeASleep, ATimeoutRescheduledToEarlierTwiceIsFound) {
  Timeout timeout = schedule(kFar);
  await_transfer(timer_);
  call_between_pass_and_sleep(timer_, [&] {
    EXPECT_TRUE(timeout.reschedule(kHalfWay));
    EXPECT_TRUE(timeout.reschedule(5ms));
  });
  expect_it_runs();
}

TEST_F(BeforeASleep, ATimeoutRescheduledToEarlierByTwoThreadsIsFound) {
  Timeout timeout = schedule(kFar);
  await_transfer(timer_);
  call_between_pass_and_sleep(timer_, [&] {
    EXPECT_TRUE(timeout.reschedule(kHalfWay));
    std::jthread([&] { EXPECT_TRUE(timeout.reschedule(5ms)); }).join();
  });
  expect_it_runs();
}

TEST_F(BeforeASleep, ATimeoutRescheduledToEarlierInTheQueueIsFound) {
  call_between_pass_and_sleep(timer_, [&] { EXPECT_TRUE(schedule(kFar).reschedule(5ms)); });
  expect_it_runs();
}

TEST_F(BeforeASleep, ATimeoutThatAnotherThreadReschedulesToEarlierInTheQueueIsFound) {
  call_between_pass_and_sleep(timer_, [&] {
    Timeout timeout = schedule(kFar);
    std::jthread([&] { EXPECT_TRUE(timeout.reschedule(5ms)); }).join();
  });
  expect_it_runs();
}

/// A thread that stops in the midst of reschedule(), in the allocation that its first recheck request needs.
class StoppedInReschedule {
 public:
  StoppedInReschedule(Timer& timer, Timeout timeout, std::chrono::nanoseconds delay) {
    thread_ = std::jthread([this, &timer, timeout, delay]() mutable {
      EXPECT_TRUE(timer.new_timeout([] {}, kFar).cancel());  // it has a place in the inbox, and no recheck requests yet
      const AllocationObserver observer([&](std::size_t) {
        if (std::exchange(stopped_, true)) return;
        arrived_.count_down();
        EXPECT_TRUE(go_on_.wait());
      });
      result_ = timeout.reschedule(delay);
      EXPECT_TRUE(stopped_) << "there was no allocation to stop in";
      arrived_.count_down();
    });
    EXPECT_TRUE(arrived_.wait());
  }
  ~StoppedInReschedule() { go_on_.count_down(); }
  StoppedInReschedule(const StoppedInReschedule&) = delete;
  StoppedInReschedule& operator=(const StoppedInReschedule&) = delete;

  /// Lets the thread go on, and returns the result of its reschedule().
  bool go_on() {
    go_on_.count_down();
    thread_.join();
    return result_;
  }

 private:
  Latch arrived_;
  Latch go_on_;
  bool stopped_ = false;  // its thread's
  bool result_ = false;   // its thread's until that is joined
  std::jthread thread_;
};

class WithAThreadInReschedule : public ::testing::Test {
 protected:
  WithAThreadInReschedule() { await_transfer(timer_); }

  std::atomic<int> runs_ = 0;
  Latch ran_;
  HashedWheelTimer timer_{1ms};
  Timeout timeout_ = after(timer_, kFar, [this] {
    ++runs_;
    ran_.count_down();
  });
};

TEST_F(WithAThreadInReschedule, AnotherReschedulesToEarlier) {
  StoppedInReschedule stopped(timer_, timeout_, kHalfWay);
  std::jthread([&] { EXPECT_TRUE(timeout_.reschedule(5ms)); }).join();
  EXPECT_TRUE(ran_.wait(10s));
  EXPECT_FALSE(stopped.go_on());
  EXPECT_EQ(runs_, 1);
}

/// The new deadline lies between that of the stopped thread and the old one, for which the timeout is in the wheel.
TEST_F(WithAThreadInReschedule, AnotherReschedulesToAfterwards) {
  StoppedInReschedule stopped(timer_, timeout_, 5ms);
  std::jthread([&] { EXPECT_TRUE(timeout_.reschedule(50ms)); }).join();
  const auto deadline = timeout_.deadline();
  EXPECT_TRUE(ran_.wait(10s)) << "it waits for a thread that has stopped";
  EXPECT_GE(steady_clock::now(), deadline);
  stopped.go_on();  // either result is right: the timeout has run, and not before the stopped thread's deadline
  EXPECT_EQ(runs_, 1);
}

TEST_F(WithAThreadInReschedule, AnotherCancels) {
  StoppedInReschedule stopped(timer_, timeout_, 5ms);
  std::jthread([&] { EXPECT_TRUE(timeout_.cancel()); }).join();
  EXPECT_FALSE(stopped.go_on());
  EXPECT_EQ(runs_, 0);
}

TEST_F(WithAThreadInReschedule, TheWorkerGoesOn) {
  const StoppedInReschedule stopped(timer_, timeout_, 5ms);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(ran_in_task(timer_, [] {}));
}

TEST_F(WithAThreadInReschedule, TheTimerStops) {
  StoppedInReschedule stopped(timer_, timeout_, 5ms);
  EXPECT_EQ(timer_.stop(), std::vector<Timeout>{timeout_});
  EXPECT_FALSE(stopped.go_on());
  EXPECT_TRUE(timeout_.is_cancelled());
  EXPECT_EQ(runs_, 0);
  EXPECT_TRUE(is_balanced(timer_.stats()));
}

/// A callable that notes when it was built in its node. From then on a new_timeout() allocates only to enqueue it.
struct Built {
  explicit Built(bool* is_built) : is_built(is_built) {}
  Built(const Built& other) : is_built(other.is_built) { *is_built = true; }
  void operator()() const {}

  bool* is_built;
};

template <class T>
class StoppedTimer : public ::testing::Test {};
TYPED_TEST_SUITE(StoppedTimer, AllTimers, TimerNames);

/// A thread was preempted while it enqueued a timeout. It has counted the timeout already, and will be refused.
TYPED_TEST(StoppedTimer, HasNonePendingWhenStopReturns) {
  for (const std::int64_t limit : {-1, 10}) {
    TypeParam timer(Options{.max_pending_timeouts = limit});
    timer.new_timeout([] {}, kFar);
    Latch enqueues;
    Latch stopped;
    std::jthread late([&] {
      bool is_built = false;
      bool held = false;
      const AllocationObserver observer([&](std::size_t) {
        if (!is_built || std::exchange(held, true)) return;
        enqueues.count_down();
        EXPECT_TRUE(stopped.wait());
      });
      const Built task(&is_built);
      const auto add = [&] {
        is_built = false;
        timer.new_timeout(task, kFar).cancel();
      };
      EXPECT_THROW(
          {
            for (int i = 0; i < 100'000; ++i) add();
          },
          IllegalState);
      EXPECT_TRUE(held);
    });
    ASSERT_TRUE(enqueues.wait());
    EXPECT_EQ(timer.stop().size(), 1u);
    EXPECT_EQ(timer.pending_timeouts(), 0);
    const TimerStats stats = timer.stats();
    EXPECT_EQ(stats.pending, 0);
    EXPECT_EQ(stats.scheduled, stats.cancelled + stats.unprocessed);
    stopped.count_down();
    late.join();
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_EQ(timer.stats().scheduled, stats.scheduled);
  }
}

}  // namespace
}  // namespace hwt::test
