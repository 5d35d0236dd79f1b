// ManualTimer::on_earlier(): the driver of the timer is called when it must come earlier than announced.

#include "hashed_wheel_timer/internal/platform/pages.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

constexpr steady_clock::time_point kStart = steady_clock::time_point(1h);

/// A timer that counts the calls.
struct OnEarlier : testing::Test {
  OnEarlier() {
    timer.on_earlier([this] { ++calls; });
  }

  int calls = 0;
  ManualTimer timer{10ms, kStart};
};

TEST_F(OnEarlier, IsCalledWhenATimeoutIsDueBeforeTheWakeupThatWasSaid) {
  timer.new_timeout([] {}, 1s);
  const auto said = timer.next_wakeup();
  ASSERT_TRUE(said);
  calls = 0;
  timer.new_timeout([] {}, *said + 1ns);
  timer.new_timeout([] {}, *said);
  timer.new_timeout([] {}, *said - 10ms + 1ns);
  timer.new_timeout([] {}, std::chrono::nanoseconds::max());
  EXPECT_EQ(calls, 0) << "for one that is due no earlier";
  timer.new_timeout([] {}, *said - 10ms);
  EXPECT_EQ(calls, 1);
  EXPECT_LE(timer.next_wakeup(), *said - 10ms);
}

TEST_F(OnEarlier, IsCalledWhenThereWasNothingPending) {
  EXPECT_EQ(timer.next_wakeup(), std::nullopt);
  timer.new_timeout([] {}, steady_clock::time_point::max() - timer.now());
  EXPECT_EQ(calls, 0) << "for one that is never due";
  timer.new_timeout([] {}, kFar);
  EXPECT_EQ(calls, 1);
}

/// on_earlier() counts as asking, so the first round needs no next_wakeup().
TEST_F(OnEarlier, IsCalledOnceUntilTheNextWakeupIsAskedAgain) {
  for (int round = 1; round != 4; ++round) {
    const Timeout first = timer.new_timeout([] {}, 1s);
    Timeout second = timer.new_timeout([] {}, 10ms);
    const Timeout third = timer.new_timeout([] {}, 0s);
    EXPECT_TRUE(second.reschedule(1ms));
    EXPECT_EQ(calls, round);
    timer.advance(1s);
    EXPECT_EQ(calls, round) << "advance() does not ask";
    EXPECT_EQ(timer.next_wakeup(), std::nullopt);
  }
}

TEST_F(OnEarlier, IsCalledForADeadlineThatMovesToEarlier) {
  Timeout timeout = timer.new_timeout([] {}, 1s);
  for (const bool in_wheel : {true, false}) {
    ASSERT_TRUE(timer.next_wakeup());
    calls = 0;
    if (!in_wheel) timeout = timer.new_timeout([] {}, 10s);
    EXPECT_TRUE(timeout.reschedule(20s));
    EXPECT_EQ(calls, 0) << "for one that is due later";
    EXPECT_TRUE(timeout.reschedule(in_wheel ? 20ms : 10ms));
    EXPECT_EQ(calls, 1) << "in the wheel: " << in_wheel;
    EXPECT_LE(timer.next_wakeup(), timer.now() + 20ms);
    EXPECT_TRUE(timeout.reschedule(1s));
  }
}

TEST_F(OnEarlier, IsCalledWhenATimerTaskIsCancelledAndForNoCallable) {
  const auto task = std::make_shared<RecordingTask>();
  for (const bool in_wheel : {true, false}) {
    Timeout shared = timer.new_timeout(task, kFar);
    Timeout callable = timer.new_timeout([] {}, kFar);
    if (in_wheel) timer.next_wakeup();
    calls = 0;
    EXPECT_TRUE(callable.cancel());
    EXPECT_EQ(calls, 0);
    if (!in_wheel) timer.next_wakeup();
    EXPECT_TRUE(shared.cancel());
    EXPECT_EQ(calls, 1) << "in the wheel: " << in_wheel;
    timer.next_wakeup();
  }
  EXPECT_EQ(task->cancellations, 2);
  Timeout shared = timer.new_timeout(task, kFar);
  timer.new_timeout([] {}, 20ms);
  timer.next_wakeup();
  calls = 0;
  EXPECT_TRUE(shared.cancel());
  EXPECT_EQ(calls, 1) << "although the driver comes a tick later anyway";
}

TEST_F(OnEarlier, IsCalledForThousandsInTheWheelThatAreDueEarlierOrCancelled) {
  const auto expect_call_for_each = [&](int many, bool (*change)(Timeout&)) {
    std::vector<Timeout> timeouts = far_timeouts(timer, static_cast<std::size_t>(3 * many), 2 * kFar);
    timer.new_timeout([] {}, 1s);  // so that only their number makes the call
    timer.next_wakeup();
    calls = 0;
    for (int i = 0; i < 3 * many; ++i) {
      ASSERT_EQ(calls, i / many) << "for " << i;
      EXPECT_TRUE(change(timeouts[static_cast<std::size_t>(i)]));
      if (calls != i / many) timer.next_wakeup();
    }
    EXPECT_EQ(calls, 3);
  };
  expect_call_for_each(16384, [](Timeout& timeout) { return timeout.reschedule(kFar); });
  expect_call_for_each(4096, [](Timeout& timeout) { return timeout.cancel(); });
}

TEST_F(OnEarlier, IsNotCalledForTimeoutsThatWouldNotWakeAWorker) {
  timer.new_timeout([] {}, 1s);
  timer.next_wakeup();
  calls = 0;
  for (int i = 0; i < 100'000; ++i) EXPECT_TRUE(timer.new_timeout([] {}, kFar).cancel());
  EXPECT_EQ(calls, 0);
}

/// A driver that sleeps must learn that nothing will come. One that has used up the call for another timeout, and does
/// not sleep, may be about to.
TEST_F(OnEarlier, IsCalledOnceByStopThatEndsTheTimerAsleepOrNot) {
  for (const bool asleep : {true, false}) {
    int stops = 0;
    ManualTimer ends{10ms, kStart};
    ends.new_timeout([] {}, kFar);
    ends.on_earlier([&] { ++stops; });
    if (!asleep) ends.new_timeout([] {}, 1s);
    EXPECT_EQ(stops, asleep ? 0 : 1);
    run_together(1, [&](int) { EXPECT_EQ(ends.stop().size(), asleep ? 1u : 2u); });
    EXPECT_EQ(stops, asleep ? 1 : 2);
    EXPECT_EQ(ends.next_wakeup(), std::nullopt);
    EXPECT_TRUE(ends.stop().empty());
    EXPECT_EQ(stops, asleep ? 1 : 2) << "the timer had been stopped";
  }
}

TEST_F(OnEarlier, IsNotCalledAfterStop) {
  Timeout timeout = timer.new_timeout(std::make_shared<RecordingTask>(), kFar);
  std::vector<Timeout> many = far_timeouts(timer, 40'000);
  timer.next_wakeup();
  calls = 0;
  timer.stop();
  EXPECT_EQ(calls, 1);
  many.clear();
  timeout.cancel();
  timeout.reschedule(0s);
  EXPECT_FALSE(timer.try_new_timeout([] {}, 0s));
  EXPECT_EQ(timer.next_wakeup(), std::nullopt);
  EXPECT_EQ(calls, 1);
}

TEST_F(OnEarlier, IsNotCalledByTheDestructor) {
  {
    ManualTimer destroyed{10ms, kStart};
    destroyed.on_earlier([this] { ++calls; });
    destroyed.new_timeout([] {}, kFar);
    ASSERT_TRUE(destroyed.next_wakeup());
    calls = 0;
  }
  EXPECT_EQ(calls, 0);
}

TEST_F(OnEarlier, CanBeReplacedAndTakenAway) {
  int others = 0;
  timer.on_earlier([&] { ++others; });
  timer.new_timeout([] {}, 1s);
  EXPECT_EQ(std::pair(calls, others), std::pair(0, 1));
  timer.on_earlier(nullptr);
  timer.new_timeout([] {}, 1ms);
  timer.next_wakeup();
  timer.new_timeout([] {}, 0s);
  EXPECT_EQ(std::pair(calls, others), std::pair(0, 1));
}

/// The driver may sleep meanwhile.
TEST_F(OnEarlier, ANewFunctionIsCalledAtOnceForWhatCameWithoutOne) {
  for (const bool by_stop : {false, true}) {
    ManualTimer slept{10ms, kStart};
    slept.new_timeout([] {}, 1s);
    ASSERT_TRUE(slept.next_wakeup());
    by_stop ? (void)slept.stop() : (void)slept.new_timeout([] {}, 10ms);
    calls = 0;
    for (int times = 0; times < 2; ++times) {
      slept.on_earlier([this] { ++calls; });
      slept.next_wakeup();
      EXPECT_EQ(calls, 1) << "the second time the driver knows";
    }
  }
}

TEST_F(OnEarlier, CannotBeSetInsideATask) {
  timer.new_timeout([&] { EXPECT_THROW(timer.on_earlier(nullptr), IllegalState); }, 0s);
  EXPECT_EQ(timer.advance(1s), 1u);
}

/// A thread that drops many dead entries frees their nodes, and that makes the call. In the second round no entry is
/// dead, and the call comes because many entries are in the inbox.
TEST(OnEarlierCalls, MayScheduleOnTheTimer) {
  constexpr int kDead = 24'000;
  for (const bool cancels : {true, false}) {
    if (cancels && internal::pages::size() == 0) continue;  // where memory stays in the process, it makes no call
    ManualTimer timer(10ms, kStart);
    int scheduled = 0, ran = 0, calls = 0;
    const auto schedule = [&] {
      ++scheduled;
      return timer.new_timeout([&] { ++ran; }, kFar);
    };
    timer.new_timeout([] {}, 1s);
    timer.on_earlier([&] {
      ++calls;
      for (int i = 0; i < 3; ++i) schedule();
    });
    timer.next_wakeup();
    if (cancels) {
      std::vector<Timeout> dead;
      for (int i = 0; i < kDead; ++i) dead.push_back(timer.new_timeout([] { ADD_FAILURE() << "cancelled"; }, kFar));
      // Two threads that exist at once, because one thread would make a call when it has cancelled 16,384.
      const auto cancel = [&](int first, int end) {
        for (int i = first; i != end; ++i) EXPECT_TRUE(dead[i].cancel());
      };
      std::thread([&] {
        cancel(0, kDead / 2);
        std::thread(cancel, kDead / 2, kDead).join();
      }).join();
      dead.clear();
      ASSERT_EQ(calls, 0);
    }
    while (calls == 0 && scheduled < 200'000) schedule();
    if (cancels) {
      EXPECT_LT(scheduled, 60'000) << "the dead entries make the call";
    }
    for (int i = 0; i < 1000; ++i) schedule();
    EXPECT_EQ(calls, 1);
    timer.advance_to(kStart + 2 * kFar);
    EXPECT_EQ(ran, scheduled);
  }
}

/// While a thread moves a timeout to an earlier deadline, the driver takes all requests, and the function makes
/// another.
TEST(OnEarlierCalls, MayCancelWhileATimeoutMovesToEarlier) {
  constexpr int kThousands = 16384;
  ManualTimer timer(10ms, kStart);
  int ran = 0;
  int calls = 0;
  std::vector<Timeout> timeouts;
  for (int i = 0; i < kThousands; ++i) timeouts.push_back(timer.new_timeout([&] { ++ran; }, 2 * kFar));
  Timeout other = timer.new_timeout([] { ADD_FAILURE() << "cancelled"; }, 2 * kFar);
  timer.new_timeout([] {}, 1s);  // so that only the number of the requests makes the call
  timer.next_wakeup();
  timer.on_earlier([&] {
    if (++calls > 1) return;
    std::thread([&] { timer.next_wakeup(); }).join();
    EXPECT_TRUE(other.cancel());
  });
  timer.next_wakeup();
  for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.reschedule(kFar));
  EXPECT_EQ(calls, 1);
  timer.advance_to(kStart + kFar + 10ms);
  EXPECT_EQ(ran, kThousands);
}

/// The driver is called when the last timeout is cancelled. Whatever room the thread has left for recheck requests,
/// that of this cancel is not taken by a cancel inside the function.
TEST(OnEarlierCalls, MayCancelWhileTheLastTimeoutIsCancelled) {
  for (int before = 250; before < 260; ++before) {
    Options options{.tick_duration = 1ms};
    options.max_pending_timeouts = 1000;
    ManualTimer timer(options);
    bool cancels = false;
    timer.on_earlier([&] {
      if (!std::exchange(cancels, false)) return;
      Timeout other = timer.new_timeout([] {}, kFar);
      timer.next_wakeup();  // into the wheel
      EXPECT_TRUE(other.cancel());
    });
    std::vector<Timeout> timeouts = far_timeouts(timer, before);
    const auto task = std::make_shared<RecordingTask>();
    Timeout last = timer.new_timeout(task, kFar);
    timer.next_wakeup();
    for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
    cancels = true;
    EXPECT_TRUE(last.cancel());
    timer.next_wakeup();
    EXPECT_FALSE(cancels);
    EXPECT_EQ(task->cancellations, 1) << "after " << before;
  }
}

TEST(OnEarlierLocks, NoneIsHeldWhereverItIsCalled) {
  ManualTimer timer(10ms, kStart);
  bool inside = false;
  int calls = 0;
  timer.on_earlier([&] {
    EXPECT_FALSE(inside) << "called inside a task";
    ++calls;
    // Each of them takes the lock that there is.
    std::thread([&] { EXPECT_TRUE(timer.next_wakeup()); }).join();
  });
  after(timer, 1s, [&] {
    inside = true;
    timer.new_timeout([] {}, kStart);
    inside = false;
  });
  EXPECT_EQ(calls, 1) << "from new_timeout()";
  timer.new_timeout([] {}, 2s);
  EXPECT_EQ(timer.advance_to(kStart + 1s), 1u);
  EXPECT_EQ(calls, 2) << "at the end of advance_to()";
  timer.on_earlier([&] {
    ++calls;
    std::thread([&] { EXPECT_FALSE(timer.next_wakeup()); }).join();
  });
  timer.stop();
  EXPECT_EQ(calls, 3) << "from stop()";
}

TEST(OnEarlierThreads, HandlesMayCallWhileTheTimerIsDestroyed) {
  for (int round = 0; round < 200; ++round) {
    const auto alive = std::make_unique<std::atomic<bool>>(true);
    auto timer = std::make_unique<ManualTimer>(1ms, kStart);
    timer->on_earlier([loop = alive.get()] { EXPECT_TRUE(loop->load()) << "called after the destructor"; });
    std::vector<Timeout> timeouts;
    for (int i = 0; i < 2; ++i) timeouts.push_back(timer->new_timeout(std::make_shared<RecordingTask>(), kFar));
    timer->next_wakeup();
    run_together(3, [&](int thread) {
      if (thread == 2) {
        timer.reset();
        alive->store(false);
      } else if (round % 2 == 0) {
        timeouts[static_cast<std::size_t>(thread)].reschedule(1s);
      } else {
        timeouts[static_cast<std::size_t>(thread)].cancel();
      }
    });
  }
}

/// Otherwise the call could outlive the function's captures, or the eventfd of the loop to which it writes.
TEST(OnEarlierThreads, AnotherFunctionWaitsForACallThatRuns) {
  for (const bool by_stop : {false, true}) {
    Hold hold;
    std::atomic<bool> replaced = false;
    std::atomic<int> calls = 0;
    ManualTimer timer{10ms, kStart};
    timer.on_earlier([&] {
      ++calls;
      hold();
    });
    std::jthread calling([&] { by_stop ? (void)timer.stop() : (void)timer.new_timeout([] {}, 0ns); });
    ASSERT_TRUE(hold.wait_until_entered());
    std::jthread replacing([&] {
      timer.on_earlier(nullptr);
      replaced = true;
    });
    std::this_thread::sleep_for(20ms);  // it may come to its wait
    EXPECT_FALSE(replaced);
    hold.let_go();
    replacing.join();
    calling.join();
    timer.next_wakeup();  // the loop sleeps again
    (void)timer.try_new_timeout([] {}, 0ns);
    EXPECT_EQ(calls, 1) << "the function was replaced";
  }
}

/// A thread that frees a node calls the function, and the function frees many more nodes on that thread.
TEST(OnEarlierMemory, MayDropHandlesWhenItIsCalledBecauseMemoryIsFree) {
  if (internal::pages::size() == 0) GTEST_SKIP() << "this system takes no memory back";
  int calls = 0;
  std::vector<Timeout> kept;
  ManualTimer timer{10ms, kStart};
  std::vector<Timeout> timeouts = far_timeouts(timer, 40'000);
  for (int i = 0; i < 2'000; ++i) kept.push_back(timer.new_timeout([] {}, kFar));
  for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
  for (Timeout& timeout : kept) EXPECT_TRUE(timeout.cancel());
  timer.on_earlier([&] {
    ++calls;
    kept.clear();
  });
  timer.next_wakeup();
  calls = 0;
  timeouts.clear();
  EXPECT_GE(calls, 1);
  EXPECT_TRUE(kept.empty());
  EXPECT_TRUE(is_balanced(timer.stats()));
}

}  // namespace
}  // namespace hwt
