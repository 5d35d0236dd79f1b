// No thread waits for a thread that may not run, and the worker does not sleep while it has work. The tests hold
// threads and the worker at chosen points, as if the system had preempted them.

#include "tests/support/any_timer.h"
#include "tests/support/stopped_thread.h"

namespace hwt::test {
namespace {

/// Far as well, but earlier than kFar.
constexpr std::chrono::minutes kHalfWay{30};

/// Calls f on the worker, after a pass has begun and before the sleep that follows: in a cancelled(), which the worker
/// calls while it takes from its inbox. Timeouts that come then are not part of that pass. The next sleep must not
/// outlast them.
void call_between_pass_and_sleep(Timer& timer, const std::function<void()>& f) {
  Latch called;
  const auto call = [&] {
    f();
    called.count_down();
  };
  EXPECT_TRUE(timer.new_timeout(on_cancelled(call), kFar).cancel());
  ASSERT_TRUE(called.wait());
}

/// A timeout that comes, or is moved, between a pass and a sleep must run.
TEST(BeforeASleep, ATimeoutThatIsScheduledOrMovedToEarlierIsFound) {
  const auto move = [](Timeout& timeout) { EXPECT_TRUE(timeout.reschedule(5ms)); };
  const auto move_twice = [&](Timeout& timeout) {
    EXPECT_TRUE(timeout.reschedule(kHalfWay));
    move(timeout);
  };
  const auto move_elsewhere = [&](Timeout& timeout) { std::jthread([&] { move(timeout); }).join(); };
  const auto move_by_two = [&](Timeout& timeout) {
    EXPECT_TRUE(timeout.reschedule(kHalfWay));
    move_elsewhere(timeout);
  };
  const auto schedule_another = [](Timeout& far) {
    far.timer()->new_timeout([far]() mutable { far.task().run(far); }, 5ms);
  };
  const std::vector<std::function<void(Timeout&)>> ways{move, move_twice, move_elsewhere, move_by_two,
                                                        schedule_another};
  for (std::size_t way = 0; way < ways.size(); ++way) {
    for (const bool in_the_wheel : {false, true}) {
      SCOPED_TRACE("way " + std::to_string(way));
      Latch ran;
      HashedWheelTimer timer(1ms);
      const auto count = [&] { ran.count_down(); };
      Timeout timeout;
      if (in_the_wheel) {
        timeout = timer.new_timeout(count, kFar);
        await_transfer(timer);
      }
      call_between_pass_and_sleep(timer, [&] {
        if (!in_the_wheel) timeout = timer.new_timeout(count, kFar);
        ways[way](timeout);
      });
      EXPECT_TRUE(ran.wait(10s)) << "the worker sleeps although a timeout is due";
    }
  }
}

class WithAThreadInReschedule : public ::testing::Test {
 protected:
  WithAThreadInReschedule() { await_transfer(timer_); }

  /// Starts a thread that stops in its reschedule(), in the allocation that its first recheck request needs.
  void stop_in_reschedule(std::chrono::nanoseconds delay) {
    const auto take_a_place = [this] { EXPECT_TRUE(timer_.new_timeout([] {}, kFar).cancel()); };
    stopped_.emplace(0, take_a_place,
                     [this, timeout = timeout_, delay]() mutable { moved_ = timeout.reschedule(delay); });
    EXPECT_TRUE(stopped_->in_the_midst());
  }
  /// Lets the thread go on, and returns the result of its reschedule().
  bool go_on() {
    stopped_->go_on();
    return moved_;
  }

  std::atomic<int> runs_ = 0;
  Latch ran_;
  HashedWheelTimer timer_{1ms};
  Timeout timeout_ = after(timer_, kFar, [this] {
    ++runs_;
    ran_.count_down();
  });
  bool moved_ = false;  // the thread's until it is joined
  std::optional<StoppedThread> stopped_;
};

TEST_F(WithAThreadInReschedule, AnotherReschedulesToEarlier) {
  stop_in_reschedule(kHalfWay);
  std::jthread([&] { EXPECT_TRUE(timeout_.reschedule(5ms)); }).join();
  EXPECT_TRUE(ran_.wait(10s));
  EXPECT_FALSE(go_on());
  EXPECT_EQ(runs_, 1);
}

/// The new deadline lies between that of the stopped thread and the old one, for which the timeout is in the wheel.
TEST_F(WithAThreadInReschedule, AnotherReschedulesToAfterwards) {
  stop_in_reschedule(5ms);
  std::jthread([&] { EXPECT_TRUE(timeout_.reschedule(50ms)); }).join();
  const auto deadline = timeout_.deadline();
  EXPECT_TRUE(ran_.wait(10s)) << "it waits for a thread that has stopped";
  EXPECT_GE(steady_clock::now(), deadline);
  go_on();  // either result is right: the timeout has run, and not before the stopped thread's deadline
  EXPECT_EQ(runs_, 1);
}

TEST_F(WithAThreadInReschedule, AnotherCancels) {
  stop_in_reschedule(5ms);
  std::jthread([&] { EXPECT_TRUE(timeout_.cancel()); }).join();
  EXPECT_FALSE(go_on());
  EXPECT_EQ(runs_, 0);
}

TEST_F(WithAThreadInReschedule, TheWorkerGoesOnAndTheTimerStops) {
  stop_in_reschedule(5ms);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(ran_in_task(timer_, [] {}));
  EXPECT_EQ(timer_.stop(), std::vector<Timeout>{timeout_});
  EXPECT_FALSE(go_on());
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
