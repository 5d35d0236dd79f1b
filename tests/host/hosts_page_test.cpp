// The blocks of docs/hosts.md: brpc's TimerThread, and the TimerQueues of muduo and trantor on a stand-in for their
// loops.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

#include "brpc_block.h"
#include "loop_timers_block.h"
#include "muduo_block.h"
#include "trantor_block.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

timespec wall_clock_in(std::chrono::nanoseconds delay) {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  const std::int64_t ns = wall.tv_nsec + delay.count() % 1'000'000'000;
  return {wall.tv_sec + delay.count() / 1'000'000'000 + ns / 1'000'000'000, ns % 1'000'000'000};
}

class BrpcTimerThread : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(thread_.start(nullptr), 0); }

  bthread::TimerThread thread_;
};

TEST_F(BrpcTimerThread, RunsATaskAtAWallClockTime) {
  std::latch ran(1);
  const auto start = Clock::now();
  thread_.schedule([](void* latch) { static_cast<std::latch*>(latch)->count_down(); }, &ran, wall_clock_in(50ms));
  ran.wait();
  EXPECT_GE(Clock::now() - start, 50ms);
}

TEST_F(BrpcTimerThread, UnscheduleHasThreeAnswers) {
  struct Latches {
    std::latch inside{1};
    std::latch go_on{1};
  } latches;
  const auto nothing = [](void*) {};
  const auto removed = thread_.schedule(nothing, nullptr, wall_clock_in(1h));
  EXPECT_EQ(thread_.unschedule(removed), 0);
  EXPECT_EQ(thread_.unschedule(removed), -1);

  const auto running = thread_.schedule(
      [](void* both) {
        static_cast<Latches*>(both)->inside.count_down();
        static_cast<Latches*>(both)->go_on.wait();
      },
      &latches, wall_clock_in(0ms));
  latches.inside.wait();
  EXPECT_EQ(thread_.unschedule(running), 1);
  latches.go_on.count_down();
  for (const auto give_up = Clock::now() + 20s; thread_.unschedule(running) == 1 && Clock::now() < give_up;) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(thread_.unschedule(running), -1);
  EXPECT_EQ(thread_.unschedule(bthread::TimerThread::INVALID_TASK_ID), -1);
}

TEST_F(BrpcTimerThread, TakesTimesOfThePastAndOfTheFarFuture) {
  std::latch ran(1);
  const auto count_down = [](void* latch) { static_cast<std::latch*>(latch)->count_down(); };
  const auto never = thread_.schedule(count_down, &ran, {std::numeric_limits<time_t>::max(), 999'999'999});
  EXPECT_NE(never, bthread::TimerThread::INVALID_TASK_ID);
  thread_.schedule(count_down, &ran, {0, 0});
  ran.wait();
  EXPECT_EQ(thread_.unschedule(never), 0);
}

TEST_F(BrpcTimerThread, SchedulesNothingOnceStopped) {
  const auto id = thread_.schedule([](void*) {}, nullptr, wall_clock_in(1h));
  thread_.stop_and_join();
  EXPECT_EQ(thread_.unschedule(id), -1);
  EXPECT_EQ(thread_.schedule([](void*) {}, nullptr, wall_clock_in(1h)), bthread::TimerThread::INVALID_TASK_ID);
}

struct Muduo {
  auto add(std::function<void()> callback, std::chrono::milliseconds delay, std::chrono::milliseconds interval) {
    const auto seconds = [](auto ms) { return std::chrono::duration<double>(ms).count(); };
    return queue.addTimer(std::move(callback), muduo::Timestamp::now().after(seconds(delay)), seconds(interval));
  }
  void cancel(muduo::net::TimerId id) { queue.cancel(id); }

  muduo::net::EventLoop loop;
  muduo::net::TimerQueue queue{&loop};
};

struct Trantor {
  auto add(const std::function<void()>& callback, std::chrono::milliseconds delay, std::chrono::milliseconds interval) {
    return queue.addTimer(callback, Clock::now() + delay, interval);
  }
  void cancel(trantor::TimerId id) { queue.invalidateTimer(id); }

  trantor::EventLoop loop;
  trantor::TimerQueue queue{&loop};
};

template <class Host>
class TimerQueue : public testing::Test {
 protected:
  Host host_;
};
using Hosts = testing::Types<Muduo, Trantor>;
TYPED_TEST_SUITE(TimerQueue, Hosts);

// Muduo computes with the wall clock, in double.
TYPED_TEST(TimerQueue, RunsACallbackInTheLoopAfterItsDelay) {
  bool ran = false;
  const auto start = Clock::now();
  this->host_.add([&] { ran = true; }, 30ms, 0ms);
  EXPECT_TRUE(this->host_.loop.run_until([&] { return ran; }));
  EXPECT_GE(Clock::now() - start, 29ms);
}

TYPED_TEST(TimerQueue, RepeatsUntilItIsCancelled) {
  int runs = 0;
  const auto id = this->host_.add([&] { ++runs; }, 1ms, 1ms);
  EXPECT_TRUE(this->host_.loop.run_until([&] { return runs >= 3; }));
  this->host_.cancel(id);
  const int before = runs;
  bool later = false;
  this->host_.add([&] { later = true; }, 30ms, 0ms);
  EXPECT_TRUE(this->host_.loop.run_until([&] { return later; }));
  EXPECT_EQ(runs, before);
}

TYPED_TEST(TimerQueue, IsCancelledInsideItsCallback) {
  int runs = 0;
  decltype(this->host_.add({}, 1ms, 1ms)) id{};
  id = this->host_.add(
      [&] {
        ++runs;
        this->host_.cancel(id);
      },
      1ms, 1ms);
  bool later = false;
  this->host_.add([&] { later = true; }, 30ms, 0ms);
  EXPECT_TRUE(this->host_.loop.run_until([&] { return later; }));
  EXPECT_EQ(runs, 1);
}

TYPED_TEST(TimerQueue, TakesCallsOfOtherThreads) {
  bool early = false;
  bool late = false;
  bool dropped_ran = false;
  bool dropped_in_time = false;
  this->host_.add([&] { late = true; }, 10s, 0ms);
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);  // the loop sleeps until the timer above
    const auto begun = Clock::now();
    const auto dropped = this->host_.add([&] { dropped_ran = true; }, 10ms, 0ms);
    this->host_.cancel(dropped);
    dropped_in_time = Clock::now() < begun + 10ms;  // false if a busy machine has held this thread up
    this->host_.add([&] { early = true; }, 10ms, 0ms);
  });
  EXPECT_TRUE(this->host_.loop.run_until([&] { return early; }));
  other.join();
  EXPECT_FALSE(late);
  EXPECT_FALSE(dropped_ran && dropped_in_time);
}

}  // namespace
