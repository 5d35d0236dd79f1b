// The behaviour that libnats expects of its timers. One program is linked without docs/examples/nats_timers, and runs
// on libnats's own timers, or on that library if it is preloaded. Another program is linked with that library.

#include "docs/examples/nats_timers/nats_timers.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <latch>
#include <mutex>
#include <random>
#include <vector>

#include "docs/examples/nats_timers/server.h"
#include "tests/support/eventually.h"

namespace {

using namespace std::chrono_literals;
using hwt::test::eventually;
using Clock = std::chrono::steady_clock;

/// Returns null on libnats's own timers.
auto* stats_function() {
  return reinterpret_cast<decltype(&nats_timers_stats)>(dlsym(RTLD_DEFAULT, "nats_timers_stats"));
}

hwt_stats stats() {
  hwt_stats stats{};
  if (auto* const function = stats_function()) function(&stats);
  return stats;
}

/// A timer that counts its callbacks.
struct Timer {
  explicit Timer(
      std::int64_t interval, std::function<void(Timer&)> callback = [](Timer&) {})
      : on_fire(std::move(callback)) {
    const std::lock_guard lock(making);
    EXPECT_EQ(natsTimer_Create(&timer, &Timer::fire, &Timer::stop, interval, this), NATS_OK);
  }
  ~Timer() {
    if (destroyed) return;
    natsTimer_Reset(timer, 3'600'000);
    stop_and_wait();
    natsTimer_Destroy(timer);
  }

  /// Stops an active timer. Afterwards its callback does not run.
  void stop_and_wait() {
    const int before = stopped;
    natsTimer_Stop(timer);
    EXPECT_TRUE(eventually([&] { return stopped > before; }));
  }

  static void fire(natsTimer* timer, void* closure) {
    Timer& self = *static_cast<Timer*>(closure);
    {
      const std::lock_guard lock(self.making);
    }
    EXPECT_EQ(self.timer, timer);
    EXPECT_FALSE(self.inside.exchange(true));
    self.fired_on = std::this_thread::get_id();
    self.fired_at = Clock::now();
    ++self.fired;
    self.on_fire(self);
    self.inside = false;
  }
  static void stop(natsTimer*, void* closure) {
    Timer& self = *static_cast<Timer*>(closure);
    EXPECT_TRUE(self.racing || !self.inside) << "stopCb inside the callback";
    self.stopped_on = std::this_thread::get_id();
    ++self.stopped;
  }

  std::mutex making;  // until `timer` is set
  natsTimer* timer = nullptr;
  const std::function<void(Timer&)> on_fire;
  std::atomic<int> fired{0}, stopped{0};
  std::atomic<bool> inside{false};
  std::atomic<Clock::time_point> fired_at{};
  std::atomic<std::thread::id> fired_on{}, stopped_on{};
  bool destroyed = false;
  std::atomic<bool> racing{false};  // a stopCb may then meet the callback of a later Reset
};

constexpr std::int64_t kNever = 3'600'000;

class NatsTimers : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(nats_Open(-1), NATS_OK); }
  void TearDown() override {
    EXPECT_EQ(stats().pending, 0);
    EXPECT_EQ(nats_CloseAndWait(20'000), NATS_OK);
  }
};

// libnats compares milliseconds of the wall clock, so its own timers are up to 1 ms early.
TEST_F(NatsTimers, FireNoEarlierThanTheirInterval) {
  const auto earliest = stats_function() != nullptr ? 30ms : 29ms;
  const auto start = Clock::now();
  Timer timer(30);
  ASSERT_TRUE(eventually([&] { return timer.fired >= 1; }));
  EXPECT_GE(timer.fired_at.load() - start, earliest);
}

TEST_F(NatsTimers, FireAgainAndAgainAndCountAnIntervalFromTheEndOfTheCallbackBefore) {
  std::atomic<Clock::time_point> end{};
  std::atomic<bool> early{false};
  Timer timer(20, [&](Timer& self) {
    if (self.fired > 1 && Clock::now() - end.load() < 19ms) early = true;
    std::this_thread::sleep_for(25ms);
    end = Clock::now();
  });
  EXPECT_TRUE(eventually([&] { return timer.fired >= 5; }));
  EXPECT_FALSE(early);
  EXPECT_EQ(timer.stopped, 0);
}

TEST_F(NatsTimers, CallStopCbAtOnceAndOnceOnTheThreadThatStopsThem) {
  Timer timer(kNever);
  for (int stops = 0; stops < 2; ++stops) {
    natsTimer_Stop(timer.timer);
    EXPECT_EQ(timer.stopped, 1);
  }
  EXPECT_EQ(timer.stopped_on.load(), std::this_thread::get_id());
  EXPECT_EQ(timer.fired, 0);
}

TEST_F(NatsTimers, CallStopCbOnlyAfterARunningCallbackHasReturned) {
  std::latch in_callback(1);
  std::latch go_on(1);
  Timer timer(1, [&](Timer&) {
    in_callback.count_down();
    go_on.wait();
  });
  in_callback.wait();
  natsTimer_Stop(timer.timer);  // does not wait for the callback
  EXPECT_EQ(timer.stopped, 0);
  go_on.count_down();
  EXPECT_TRUE(eventually([&] { return timer.stopped == 1; }));
  EXPECT_EQ(timer.stopped_on.load(), timer.fired_on.load());
  EXPECT_EQ(timer.fired, 1);
}

TEST_F(NatsTimers, AreStoppedOrDestroyedInsideTheirCallback) {
  for (const bool destroys : {false, true}) {
    Timer timer(1, [&](Timer& self) {
      self.destroyed = destroys;
      destroys ? natsTimer_Destroy(self.timer) : natsTimer_Stop(self.timer);
      EXPECT_EQ(self.stopped, 0);
    });
    ASSERT_TRUE(eventually([&] { return timer.stopped == 1; }));
    EXPECT_EQ(timer.fired, 1);
  }
}

TEST_F(NatsTimers, TakeTheNewIntervalOfAResetInsideTheirCallback) {
  Clock::time_point first;
  Timer timer(1, [&](Timer& self) {
    if (self.fired == 1) first = self.fired_at;
    natsTimer_Reset(self.timer, self.fired == 1 ? 50 : kNever);
  });
  ASSERT_TRUE(eventually([&] { return timer.fired == 2; }));
  EXPECT_GE(timer.fired_at.load() - first, 49ms);
  EXPECT_EQ(timer.stopped, 0);
}

TEST_F(NatsTimers, GoOnAfterAStopAndAResetInsideTheirCallback) {
  Timer timer(1, [](Timer& self) {
    natsTimer_Stop(self.timer);
    natsTimer_Reset(self.timer, 1);
  });
  EXPECT_TRUE(eventually([&] { return timer.fired >= 3; }));
  EXPECT_EQ(timer.stopped, 0);
}

TEST_F(NatsTimers, GoOnAfterAResetByAnotherThreadDuringTheirCallback) {
  std::latch in_callback(1);
  std::latch go_on(1);
  Timer timer(1, [&](Timer& self) {
    if (self.fired > 1) return;
    in_callback.count_down();
    go_on.wait();
  });
  in_callback.wait();
  natsTimer_Stop(timer.timer);
  natsTimer_Reset(timer.timer, 1);
  go_on.count_down();
  EXPECT_TRUE(eventually([&] { return timer.fired >= 2; }));
  EXPECT_EQ(timer.stopped, 0);
}

TEST_F(NatsTimers, AreMovedToEarlierByAReset) {
  Timer timer(kNever);
  for (const std::int64_t interval : {kNever / 2, std::int64_t{1}}) natsTimer_Reset(timer.timer, interval);
  EXPECT_TRUE(eventually([&] { return timer.fired >= 1; }));
  EXPECT_EQ(timer.stopped, 0);
}

TEST_F(NatsTimers, AreMovedToLaterByAReset) {
  bool in_time = false;
  for (int attempt = 0; attempt < 20 && !in_time; ++attempt) {
    const auto start = Clock::now();
    Timer timer(100);
    natsTimer_Reset(timer.timer, kNever);
    in_time = Clock::now() - start < 100ms;
    if (!in_time) continue;  // it may have fired before the reset
    Timer later(150);
    EXPECT_TRUE(eventually([&] { return later.fired >= 1; }));
    EXPECT_EQ(timer.fired, 0);
    EXPECT_EQ(timer.stopped, 0);
  }
  EXPECT_TRUE(in_time);
}

TEST_F(NatsTimers, AreStartedAgainByAReset) {
  Timer timer(kNever);
  natsTimer_Stop(timer.timer);
  natsTimer_Reset(timer.timer, 1);
  EXPECT_TRUE(eventually([&] { return timer.fired >= 2; }));
  EXPECT_EQ(timer.stopped, 1);
}

TEST_F(NatsTimers, NeverFireWithTheLargestInterval) {
  Timer timer(INT64_MAX);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(timer.fired, 0);
}

// libnats refuses nats_CloseAndWait() on its own threads.
TEST_F(NatsTimers, RunTheirCallbacksOnAThreadOfLibnats) {
  std::atomic<natsStatus> status{NATS_OK};
  Timer timer(1, [&](Timer& self) {
    if (self.fired == 1) status = nats_CloseAndWait(1000);
  });
  ASSERT_TRUE(eventually([&] { return timer.fired >= 2; }));
  EXPECT_EQ(status, NATS_ILLEGAL_STATE);
}

// libnats frees in stopCb the closure that the callback uses. This thread stops the timers in the order in which their
// callbacks run, so the two meet at the same timer.
TEST_F(NatsTimers, NeverFireAfterStopCbAndCallItOnceWhileManyAreDue) {
  struct One {
    natsTimer* timer = nullptr;
    std::atomic<bool>* begun = nullptr;
    std::atomic<int> stopped{0};
    std::atomic<bool> fired_late{false};
  };
  for (int round = 0; round < 200; ++round) {
    std::atomic<bool> begun{false};
    std::vector<One> timers(100);
    for (One& one : timers) {
      one.begun = &begun;
      natsTimer_Create(
          &one.timer,
          [](natsTimer*, void* closure) {
            One& self = *static_cast<One*>(closure);
            if (self.stopped != 0) self.fired_late = true;
            *self.begun = true;
          },
          [](natsTimer*, void* closure) { ++static_cast<One*>(closure)->stopped; }, 2, &one);
    }
    while (!begun) std::this_thread::yield();
    for (One& one : timers) {
      if (round % 2 == 0) natsTimer_Stop(one.timer);
      if (round % 4 == 0) natsTimer_Reset(one.timer, kNever);
      natsTimer_Destroy(one.timer);
    }
    Timer last(0);  // its callback follows all callbacks that have begun
    ASSERT_TRUE(eventually([&] { return last.fired >= 1; }));
    for (One& one : timers) {
      ASSERT_TRUE(one.stopped == 1 || (round % 4 == 0 && one.stopped == 2)) << one.stopped;
      ASSERT_FALSE(one.fired_late);
    }
  }
}

// Two threads race each other and the callback. At the end the timer still obeys.
TEST_F(NatsTimers, ObeyWhileStopsAndResetsRace) {
  Timer timer(1);
  timer.racing = true;
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 20'000; ++i) {
      random() % 2 == 0 ? natsTimer_Stop(timer.timer) : natsTimer_Reset(timer.timer, 0);
      if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
    }
  };
  std::thread other(work, 1);
  work(2);
  other.join();
  const int fired = timer.fired;
  natsTimer_Reset(timer.timer, 1);
  EXPECT_TRUE(eventually([&] { return timer.fired >= fired + 2; }));
  timer.stop_and_wait();
  const int last = timer.fired;
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(timer.fired, last);
}

TEST_F(NatsTimers, AreStoppedByNatsClose) {
  static std::atomic<int> stopped;
  stopped = 0;
  for (const std::int64_t interval : {std::int64_t{1}, kNever, kNever}) {
    natsTimer* timer = nullptr;
    natsTimer_Create(
        &timer, [](natsTimer*, void*) {},
        [](natsTimer* self, void*) {
          ++stopped;
          natsTimer_Release(self);
        },
        interval, nullptr);
  }
  nats_Close();
  EXPECT_EQ(stopped, 3);
  ASSERT_EQ(nats_Open(-1), NATS_OK);
  Timer again(1);
  EXPECT_TRUE(eventually([&] { return again.fired >= 2; }));
}

// docs/examples/nats_timers has requests and subscriptions with timeouts.
TEST(NatsServer, LosesAConnectionWhosePingsAreNotAnswered) {
  if (std::system("command -v nats-server >/dev/null") != 0) GTEST_SKIP() << "nats-server is not installed";
  std::atomic<bool> disconnected{false};
  nats::Server server;
  natsOptions* options = nullptr;
  natsConnection* connection = nullptr;
  ASSERT_EQ(nats_Open(-1), NATS_OK);
  ASSERT_EQ(natsOptions_Create(&options), NATS_OK);
  natsOptions_SetURL(options, server.url().c_str());
  natsOptions_SetPingInterval(options, 10);
  natsOptions_SetMaxPingsOut(options, 2);
  natsOptions_SetDisconnectedCB(
      options, [](natsConnection*, void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }, &disconnected);
  natsOptions_SetAllowReconnect(options, false);
  ASSERT_EQ(natsConnection_Connect(&connection, options), NATS_OK);
  std::this_thread::sleep_for(20ms);
  server.pause();
  EXPECT_TRUE(eventually([&] { return disconnected.load(); }));
  server.resume();
  natsConnection_Destroy(connection);
  natsOptions_Destroy(options);
  EXPECT_EQ(nats_CloseAndWait(20'000), NATS_OK);
  EXPECT_EQ(stats().pending, 0);
}

}  // namespace
