// Schedules: a thread stands still inside a call, as if the system had preempted it. The worker does not wait for it,
// and no run is lost.

#include "hashed_wheel_timer/schedule.h"
#include "tests/support/held_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// A thread is held in schedule(): the timeout is pending, but its handle is not stored yet.
class ScheduleHeld : public ::testing::Test {
 protected:
  void hold(const Schedule& plan) {
    timer_.hold_next(HeldTimer::At::Exit);
    scheduling_ = std::jthread([this, plan] { task_ = schedule(timer_, plan, [this] { ++runs_; }); });
    ASSERT_TRUE(timer_.wait_until_held());
  }
  /// Waits for so many runs, and for tasks of others. Then the held thread goes on.
  void go_on_after(int runs) {
    EXPECT_TRUE(eventually([&] { return runs_ >= runs; }));
    expect_others_run(timer_);
    timer_.go_on();
    scheduling_.join();
  }

  std::atomic<int> runs_ = 0;
  HeldTimer timer_;
  std::shared_ptr<ScheduledTask> task_;
  std::jthread scheduling_;
};

TEST_F(ScheduleHeld, RunsDoNotWaitForTheThreadThatSchedules) {
  hold(Schedule::fixed_rate(0s, 1ms));
  go_on_after(4);
  EXPECT_FALSE(task_->done());
  EXPECT_TRUE(eventually([&] { return task_->next() != std::nullopt; })) << "next() stays empty between two runs";
  task_->cancel();
  EXPECT_TRUE(none_pending(timer_)) << "cancel() cancelled another timeout";
}

TEST_F(ScheduleHeld, AThreadThatStoresTheFirstTimeoutLateKeepsTheLaterOne) {
  hold(Schedule::fixed_delay(0s, kFar));
  go_on_after(1);  // the second wait has begun
  EXPECT_TRUE(task_->cancel());
  EXPECT_TRUE(none_pending(timer_)) << "cancel() cancelled the first timeout";
}

TEST_F(ScheduleHeld, ASingleRunMayEndBeforeScheduleReturns) {
  hold(Schedule::once(0s));
  go_on_after(1);
  EXPECT_TRUE(task_->done());
  EXPECT_FALSE(task_->cancel());
  EXPECT_EQ(task_->runs(), 1U);
}

// A thread of the executor is held at the end of the first run, in new_timeout().

TEST(ScheduleHeldInExecutor, AnExpiryLeavesTheRunToTheThreadThatArms) {
  std::atomic<int> runs = 0, inside = 0;
  ThreadPerJob threads;
  HeldTimer timer{{.tick_duration = 1ms, .executor = threads.executor()}};
  const auto task = schedule(timer, Schedule::fixed_rate(0s, 1ms), [&] {
    EXPECT_EQ(++inside, 1) << "runs overlap";
    if (++runs == 1) timer.hold_next(HeldTimer::At::Exit);
    --inside;
  });
  ASSERT_TRUE(timer.wait_until_held());
  EXPECT_TRUE(none_pending(timer)) << "the second timeout has not expired";
  expect_others_run(timer);
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(task->runs(), 1U);
  EXPECT_FALSE(task->done());
  task->next();  // must not wait for the held thread
  timer.go_on();
  EXPECT_TRUE(eventually([&] { return runs > 3; }));
  task->cancel();
  EXPECT_TRUE(none_pending(timer));
}

TEST(ScheduleHeldInExecutor, CancelDoesNotWaitAndNothingIsLeftBehind) {
  for (const auto at : {HeldTimer::At::Entry, HeldTimer::At::Exit}) {
    SCOPED_TRACE(static_cast<int>(at));
    const auto token = std::make_shared<int>();
    std::atomic<int> runs = 0;
    ThreadPerJob threads;
    HeldTimer timer({.tick_duration = 1ms, .executor = threads.executor()});
    const auto task = schedule(timer, Schedule::fixed_delay(0s, kFar), [&, token] {
      if (++runs == 1) timer.hold_next(at);
    });
    ASSERT_TRUE(timer.wait_until_held());
    expect_others_run(timer);
    EXPECT_TRUE(task->cancel()) << "cancel() found a run under way";
    EXPECT_TRUE(task->done());
    timer.go_on();
    EXPECT_TRUE(eventually([&] { return token.use_count() == 1; })) << "the held thread has not destroyed the job";
    EXPECT_TRUE(none_pending(timer));
    EXPECT_EQ(runs, 1);
  }
}

TEST(ScheduleHeldInExecutor, TheDestructorOfTheTimerWaitsForTheThreadThatArms) {
  ThreadPerJob threads;
  auto timer = std::make_unique<HeldTimer>(Options{.tick_duration = 1ms, .executor = threads.executor()});
  HeldTimer& held = *timer;
  const Timeout far = held.new_timeout([] {}, kFar);
  const auto task = schedule(held, Schedule::fixed_delay(0s, kFar), [&] { held.hold_next(HeldTimer::At::Entry); });
  ASSERT_TRUE(held.wait_until_held());
  held.stay_held();
  std::atomic<bool> gone = false;
  std::jthread destroying([&] {
    timer.reset();
    gone = true;
  });
  EXPECT_TRUE(eventually([&] { return far.timer() == nullptr; }));
  std::this_thread::sleep_for(50ms);  // no event tells that the destructor waits
  EXPECT_FALSE(gone);
  held.go_on();
  EXPECT_TRUE(eventually([&] { return gone && task->done(); }));
  EXPECT_EQ(task->runs(), 1U);
}

}  // namespace
}  // namespace hwt
