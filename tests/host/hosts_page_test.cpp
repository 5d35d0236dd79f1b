// The blocks of docs/hosts.md: brpc's TimerThread on a stand-in for the rest of brpc, and the TimerQueues of muduo and
// trantor on a stand-in for their loops.

#include <bthread/timer_thread.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <time.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <latch>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "loop_timers_block.h"
#include "muduo_block.h"
#include "tests/support/eventually.h"
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

/// The flags and variables of brpc that are known.
std::map<std::string, std::function<double()>> known_names;
std::mutex names_mutex;

bool is_known(const std::string& name) {
  const std::lock_guard lock(names_mutex);
  return known_names.contains(name);
}
double value_of(const std::string& name) {
  const std::lock_guard lock(names_mutex);
  return known_names.at(name)();
}

/// The function of the program that each thread of brpc runs first.
std::function<void()> worker_startfn;

}  // namespace

namespace stand_in {

void make_known(const std::string& name, std::function<double()> read) {
  const std::lock_guard lock(names_mutex);
  known_names[name] = std::move(read);
}
void forget(const std::string& name) {
  const std::lock_guard lock(names_mutex);
  known_names.erase(name);
}

}  // namespace stand_in

// In brpc, bthread_set_worker_startfn() sets the function.
namespace bthread {

void run_worker_startfn() {
  if (worker_startfn) worker_startfn();
}

}  // namespace bthread

namespace {

/// Schedules a function, which must exist until it has run.
bthread::TimerThread::TaskId schedule(bthread::TimerThread& thread, const std::function<void()>& function,
                                      const timespec& time) {
  const auto call = [](void* argument) { (*static_cast<const std::function<void()>*>(argument))(); };
  return thread.schedule(call, const_cast<std::function<void()>*>(&function), time);
}
/// Schedules a function, and waits until it has run.
void run(bthread::TimerThread& thread, const std::function<void()>& function, const timespec& time = {0, 0}) {
  std::latch ran(1);
  const std::function<void()> task = [&] {
    function();
    ran.count_down();
  };
  EXPECT_NE(schedule(thread, task, time), bthread::TimerThread::INVALID_TASK_ID);
  ran.wait();
}
const std::function<void()> nothing = [] {};

class BrpcTimerThread : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(thread_.start(nullptr), 0); }

  bthread::TimerThread thread_;
};

TEST_F(BrpcTimerThread, UnscheduleHasThreeAnswers) {
  const auto removed = schedule(thread_, nothing, wall_clock_in(1h));
  EXPECT_EQ(thread_.unschedule(removed), 0);
  EXPECT_EQ(thread_.unschedule(removed), -1);

  std::latch inside(1);
  std::latch go_on(1);
  const std::function<void()> stay = [&] {
    inside.count_down();
    go_on.wait();
  };
  const auto running = schedule(thread_, stay, wall_clock_in(0ms));
  inside.wait();
  EXPECT_EQ(thread_.unschedule(running), 1);
  go_on.count_down();
  EXPECT_TRUE(hwt::test::eventually([&] { return thread_.unschedule(running) != 1; }));
  EXPECT_EQ(thread_.unschedule(running), -1);
  EXPECT_EQ(thread_.unschedule(bthread::TimerThread::INVALID_TASK_ID), -1);
}

TEST_F(BrpcTimerThread, TakesTimesOfThePastAndOfTheFarFuture) {
  const auto never = schedule(thread_, nothing, {std::numeric_limits<time_t>::max(), 999'999'999});
  EXPECT_NE(never, bthread::TimerThread::INVALID_TASK_ID);
  run(thread_, [] {}, {0, 0});
  EXPECT_EQ(thread_.unschedule(never), 0);
}

TEST_F(BrpcTimerThread, SchedulesNothingOnceStopped) {
  const auto id = schedule(thread_, nothing, wall_clock_in(1h));
  thread_.stop_and_join();
  EXPECT_EQ(thread_.unschedule(id), -1);
  EXPECT_EQ(schedule(thread_, nothing, wall_clock_in(1h)), bthread::TimerThread::INVALID_TASK_ID);
}

TEST_F(BrpcTimerThread, RunsNoTaskEarlyOnTheThreadOfItsTasks) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const timespec time = wall_clock_in(std::chrono::nanoseconds(random() % 1'500'000));
    const auto check = [&] {
      timespec now{};
      clock_gettime(CLOCK_REALTIME, &now);
      EXPECT_GE(std::pair(now.tv_sec, now.tv_nsec), std::pair(time.tv_sec, time.tv_nsec));
      EXPECT_TRUE(pthread_equal(pthread_self(), thread_.thread_id()));
    };
    run(thread_, check, time);
  }
}

TEST_F(BrpcTimerThread, StartsAtMostOnceAndSchedulesNothingBefore) {
  EXPECT_EQ(thread_.start(nullptr), 0);
  bthread::TimerThread other;
  EXPECT_EQ(schedule(other, nothing, {0, 0}), bthread::TimerThread::INVALID_TASK_ID);
  EXPECT_EQ(other.unschedule(1), -1);
  other.stop_and_join();
}

TEST_F(BrpcTimerThread, ExposesItsVariablesUntilItStops) {
  const std::vector<std::string> names{"own_scheduled_second", "own_triggered_second", "own_usage"};
  bthread::TimerThreadOptions options;
  options.bvar_prefix = "own";
  bthread::TimerThread thread;
  ASSERT_EQ(thread.start(&options), 0);
  for (const std::string& name : names) EXPECT_TRUE(is_known(name)) << name;
  const double scheduled = value_of("own_scheduled_second");
  for (int i = 0; i < 5; ++i) schedule(thread, nothing, wall_clock_in(1h));
  EXPECT_EQ(value_of("own_scheduled_second"), scheduled + 5);
  EXPECT_GE(value_of("own_triggered_second"), 0);
  EXPECT_GE(value_of("own_usage"), 0);
  thread.stop_and_join();
  for (const std::string& name : names) EXPECT_FALSE(is_known(name)) << name;
}

TEST(BrpcGlobalTimerThread, IsMadeOnceAndRunsTheFunctionOfTheProgramFirst) {
  EXPECT_EQ(bthread::get_global_timer_thread(), nullptr);
  std::thread::id first;
  bool timer_is_there = false;
  worker_startfn = [&] {
    first = std::this_thread::get_id();
    timer_is_there = bthread::get_or_create_global_timer_thread() != nullptr;
  };
  bthread::TimerThread* const thread = bthread::get_or_create_global_timer_thread();
  ASSERT_NE(thread, nullptr);
  EXPECT_EQ(bthread::get_or_create_global_timer_thread(), thread);
  EXPECT_EQ(bthread::get_global_timer_thread(), thread);
  run(*thread, [&] {
    EXPECT_EQ(first, std::this_thread::get_id());
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "brpc_timer");
  });
  EXPECT_TRUE(timer_is_there);
  EXPECT_TRUE(is_known("bthread_timer_usage"));
  worker_startfn = nullptr;
}

TEST(BrpcFlags, AreKnown) {
  for (const char* name :
       {"brpc_timer_num_buckets", "brpc_timer_heap_sweep_min_size", "brpc_timer_max_wakeup_interval_ms"})
    EXPECT_TRUE(is_known(name)) << name;
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
  const auto add = [&](std::function<void()> next) {
    host.add(
        [&runs, next] {
          ++runs;
          next();
        },
        1ms, 0ms);
  };
  const auto in_a_function = [&] { add([&] { host.loop.quit(); }); };
  const auto in_a_callback = [&] { add([&] { host.loop.queueInLoop(in_a_function); }); };
  add(in_a_callback);  // before loop()
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

// The first run is due at 100 ms and starts at 150 ms. The second is due at 200 ms by deadline, but at 250 ms if it
// counts from the first run. A timer at 225 ms shows which of the two it is. If the thread is held up for so long that
// the second run is skipped, the attempt shows nothing, so there are several.
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
    std::this_thread::sleep_until(start + 150ms);
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
  const auto cancel = [&] {
    ++runs;
    this->host_.cancel(id);
  };
  id = this->host_.add(cancel, 1ms, 1ms);
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
  bool late = false, dropped_ran = false, dropped_in_time = false;
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

TEST(TrantorTimerQueueDeathTest, IsDestroyedOnAnyThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
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
