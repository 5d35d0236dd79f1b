// The blocks of docs/hosts.md: brpc's TimerThread, and the TimerQueues of muduo and trantor on a stand-in for their
// loops.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <latch>
#include <limits>
#include <memory>
#include <stdexcept>
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
  Muduo() { loop.own(queue); }
  auto add(std::function<void()> callback, std::chrono::milliseconds delay, std::chrono::milliseconds interval) {
    const auto seconds = [](auto ms) { return std::chrono::duration<double>(ms).count(); };
    const muduo::Timestamp when = addTime(muduo::Timestamp::now(), seconds(delay));
    return queue->addTimer(std::move(callback), when, seconds(interval));
  }
  void cancel(muduo::net::TimerId id) { queue->cancel(id); }

  muduo::net::EventLoop loop;
  std::shared_ptr<muduo::net::TimerQueue> queue = std::make_shared<muduo::net::TimerQueue>(&loop);
};

struct Trantor {
  Trantor() { loop.own(queue); }
  auto add(const std::function<void()>& callback, std::chrono::milliseconds delay, std::chrono::milliseconds interval) {
    return queue->addTimer(callback, Clock::now() + delay, interval);
  }
  void cancel(trantor::TimerId id) { queue->invalidateTimer(id); }

  trantor::EventLoop loop;
  std::shared_ptr<trantor::TimerQueue> queue = std::make_shared<trantor::TimerQueue>(&loop);
};

template <class Host>
class TimerQueue : public testing::Test {
 protected:
  /// Runs the loop for at least this time.
  void loop_for(std::chrono::milliseconds time) {
    host_.add([this] { host_.loop.quit(); }, time, 0ms);
    host_.loop.loop();
  }

  Host host_;
};
using Hosts = testing::Types<Muduo, Trantor>;
TYPED_TEST_SUITE(TimerQueue, Hosts);

// Muduo computes with the wall clock, in whole microseconds.
TYPED_TEST(TimerQueue, RunsACallbackInTheLoopAfterItsDelay) {
  const auto start = Clock::now();
  this->loop_for(30ms);
  EXPECT_GE(Clock::now() - start, 29ms);
}

// A timer for which the loop is not woken runs when the poll ends by itself, after 10 s.
TYPED_TEST(TimerQueue, WakesTheLoopWhereverATimerIsAdded) {
  auto& host = this->host_;
  int runs = 0;
  const auto in_a_function = [&] {
    host.add(
        [&] {
          ++runs;
          host.loop.quit();
        },
        1ms, 0ms);
  };
  const auto in_a_callback = [&] {
    host.add(
        [&] {
          ++runs;
          host.loop.queueInLoop(in_a_function);
        },
        1ms, 0ms);
  };
  host.add(
      [&] {
        ++runs;
        in_a_callback();
      },
      1ms, 0ms);  // before loop()
  host.loop.loop();
  EXPECT_EQ(runs, 3);
  in_a_callback();  // between two loop()
  host.loop.loop();
  EXPECT_EQ(runs, 5);
  EXPECT_EQ(host.loop.long_sleeps(), 0);
}

TYPED_TEST(TimerQueue, RepeatsUntilItIsCancelled) {
  int runs = 0;
  const auto count = [&] {
    if (++runs == 3) this->host_.loop.quit();
  };
  const auto id = this->host_.add(count, 1ms, 1ms);
  this->host_.loop.loop();
  this->host_.cancel(id);
  const int before = runs;
  EXPECT_GE(before, 3);
  this->loop_for(30ms);
  EXPECT_EQ(runs, before);
}

// If another timer, due between the second run and the time at which a run counted from the first run would be due, is
// later than the second run, the deadlines do not count from the runs. A thread that is held up for so long that the
// second run is skipped shows nothing, so there are several attempts.
TYPED_TEST(TimerQueue, RepeatsByDeadlineAlsoAfterALateRun) {
  bool by_deadline = false;
  for (int attempt = 0; attempt != 20 && !by_deadline; ++attempt) {
    int runs = 0;
    const auto start = Clock::now();
    const auto id = this->host_.add([&] { ++runs; }, 100ms, 100ms);
    const auto between = [&] {
      by_deadline = runs >= 2;
      this->host_.loop.quit();
    };
    this->host_.add(between, 225ms, 0ms);
    std::this_thread::sleep_until(start + 150ms);  // the first run is 50 ms late
    this->host_.loop.loop();
    this->host_.cancel(id);
  }
  EXPECT_TRUE(by_deadline);
}

TYPED_TEST(TimerQueue, RepeatsAfterACallbackHasThrown) {
  int runs = 0;
  const auto throw_once = [&] {
    if (++runs == 1) throw std::runtime_error("thrown by a callback, as the test wants");
    this->host_.loop.quit();
  };
  this->host_.add(throw_once, 1ms, 1ms);
  this->host_.loop.loop();
  EXPECT_EQ(runs, 2);
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
  this->loop_for(30ms);
  EXPECT_EQ(runs, 1);
}

TYPED_TEST(TimerQueue, DropsTheCallbackOfACancelledTimer) {
  for (const std::chrono::milliseconds interval : {0ms, 3600000ms}) {
    auto held = std::make_shared<int>();
    const auto id = this->host_.add([held] {}, 1h, interval);
    EXPECT_GT(held.use_count(), 1);
    this->host_.cancel(id);
    EXPECT_EQ(held.use_count(), 1);
  }
}

TYPED_TEST(TimerQueue, TakesCallsOfOtherThreads) {
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
    this->host_.add([&] { this->host_.loop.quit(); }, 10ms, 0ms);
  });
  this->host_.loop.loop();
  other.join();
  EXPECT_FALSE(late);
  EXPECT_FALSE(dropped_ran && dropped_in_time);
}

TEST(TrantorTimerQueue, IsDestroyedOnAnyThread) {
  const auto destroy_on_another_thread = [] {
    std::unique_ptr<Trantor> host;
    std::thread([&] {
      host = std::make_unique<Trantor>();
      host->add([] {}, 1ms, 1ms);
      host->add([&] { host->loop.quit(); }, 5ms, 0ms);
      host->loop.loop();
    }).join();
    host.reset();
    std::exit(0);
  };
  EXPECT_EXIT(destroy_on_another_thread(), testing::ExitedWithCode(0), "");
}

}  // namespace
