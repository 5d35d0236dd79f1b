// LoopTimer, whose tasks run on the loop of a context.

#include "tests/asio/kit.h"

namespace asio_test {
namespace {

struct LoopTimerOnALoop : testing::Test {
  host::io_context loop;
  net::LoopTimer timer{loop.get_executor()};
};

TEST_F(LoopTimerOnALoop, RunsTasksOnTheThreadOfTheLoopInOrderAndNotEarly) {
  std::vector<int> ran;
  const auto start = timer.now();
  for (const int i : {3, 1, 2}) {
    timer.new_timeout(
        [&, i, thread = std::this_thread::get_id()](Timeout& self) {
          EXPECT_EQ(std::this_thread::get_id(), thread);
          EXPECT_GE(timer.now(), self.deadline());
          EXPECT_EQ(self.timer(), &timer);
          ran.push_back(i);
        },
        start + i * 5ms);
  }
  EXPECT_EQ(timer.pending_timeouts(), 3);
  loop.run();
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// The second timeout is due at the time for which the alarm has just rung. So the alarm is set for that time once
/// more.
TEST(LoopTimer, SetsItsAlarmAgainForATimeoutThatATaskSchedulesInTheTickOfTheAlarm) {
  host::io_context loop;
  net::LoopTimer timer(loop.get_executor(), 10ms);
  bool ran = false;
  const auto deadline = timer.now() + 20ms;
  timer.add([&] { timer.add([&] { ran = true; }, deadline); }, deadline);
  loop.run_for(60s);
  EXPECT_TRUE(ran);
}

TEST_F(LoopTimerOnALoop, ATimeoutThatIsNeverDueIsNoWork) {
  int runs = 0;
  timer.new_timeout([&] { ++runs; }, 2ms);
  for (int i = 1; i <= 2; ++i) {
    timer.new_timeout([] { ADD_FAILURE(); }, std::chrono::hours::max());
    run_again(loop);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(timer.pending_timeouts(), i);
  }
}

/// A handler that calls `*when` if it is asked for its allocator. A wait asks after its timeout was cancelled and
/// before its completion is posted.
struct Asked {
  using allocator_type = std::allocator<std::byte>;
  allocator_type get_allocator() const noexcept {
    if (*when) (*when)();
    return {};
  }
  void operator()(const Error& error) const { errors->push_back(error); }

  std::function<void()>* when;
  std::vector<Error>* errors;
};

TEST(LoopTimer, ItsLoopDoesNotEndBeforeItHasHeardOfAWaitThatAnotherThreadCancels) {
  const std::array<std::function<void(std::unique_ptr<net::WheelTimer>&)>, 4> ways{
      [](auto& waits) { EXPECT_EQ(waits->cancel(), 1u); }, [](auto& waits) { EXPECT_EQ(waits->cancel_one(), 1u); },
      [](auto& waits) { EXPECT_EQ(waits->expires_after(kFar), 1u); }, [](auto& waits) { waits.reset(); }};
  for (const auto& cancel : ways) {
    host::io_context loop;
    host::io_context other;
    net::LoopTimer timer(loop.get_executor());
    std::vector<Error> errors;
    std::function<void()> between;
    int asked = 0;
    auto waits = std::make_unique<net::WheelTimer>(loop, timer);
    waits->expires_after(kFar);
    waits->async_wait(host::bind_executor(other.get_executor(), Asked{&between, &errors}));
    loop.poll();
    between = [&] {
      ++asked;
      loop.poll();
      EXPECT_FALSE(loop.stopped()) << "out of work";
    };
    cancel(waits);
    between = nullptr;
    EXPECT_GT(asked, 0);
    loop.poll();
    other.poll();
    EXPECT_EQ(errors, std::vector<Error>{kAborted});
    loop.run();  // returns: nothing is left to wait for
  }
}

TEST_F(LoopTimerOnALoop, ATimeoutOfAnotherThreadWakesTheLoopWhichRunsUntilTheLastPendingOneIsCancelled) {
  Timeout first = timer.new_timeout([] {}, kFar);
  Timeout second = timer.new_timeout([] {}, kFar);
  std::atomic<bool> returned{false};
  std::thread thread([&] {
    loop.run();
    returned = true;
  });
  for (int i = 0; i < 200; ++i) {
    hwt::test::Latch ran;
    timer.new_timeout([&] { ran.count_down(); }, (i % 3) * 1ms);
    ASSERT_TRUE(ran.wait());
  }
  EXPECT_TRUE(first.cancel());
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(returned);
  EXPECT_TRUE(second.cancel());
  thread.join();
}

TEST_F(LoopTimerOnALoop, RunsOneTaskAtATimeOnSeveralThreads) {
  std::atomic<int> inside{0};
  int ran = 0;
  for (int i = 0; i < 300; ++i) {
    timer.new_timeout(
        [&] {
          EXPECT_EQ(++inside, 1);
          ++ran;
          --inside;
        },
        std::chrono::microseconds(i * 50));
  }
  run_together(3, [&](int) { loop.run(); });
  EXPECT_EQ(ran, 300);
}

TEST(LoopTimer, MayBeDestroyedInsideOneOfItsTasksOrBeforeTheLoopRuns) {
  for (const bool inside : {true, false}) {
    host::io_context loop;
    auto timer = std::make_unique<net::LoopTimer>(loop.get_executor());
    Timeout other = timer->new_timeout([] { ADD_FAILURE(); }, kFar);
    if (inside) {
      timer->new_timeout([&] { timer.reset(); }, 1ms);
    } else {
      timer.reset();
    }
    loop.run();
    EXPECT_TRUE(other.is_cancelled());
  }
}

TEST(LoopTimer, ItsLoopEndsAlthoughAnAlarmThatWasReplacedRings) {
  for (const bool by_cancel : {true, false}) {
    host::io_context loop;
    std::optional<net::LoopTimer> timer(std::in_place, loop.get_executor());
    timer->new_timeout([] {}, 5ms);
    Timeout far = timer->new_timeout([] { ADD_FAILURE(); }, kFar);
    loop.poll();  // sets the alarm for the first
    host::post(loop, [&] {
      timer->new_timeout([] {}, 0ms);
      host::post(loop, [&] {
        if (by_cancel) {
          EXPECT_TRUE(far.cancel());
        } else {
          timer.reset();
        }
      });
      std::this_thread::sleep_for(20ms);  // the alarm rings
    });
    loop.run_for(std::chrono::seconds(60));
    EXPECT_TRUE(loop.stopped()) << "by cancel: " << by_cancel;
  }
}

TEST(LoopTimer, ALoopThatIsPolledInsideStopGoesOnAfterwards) {
  host::io_context loop;
  int polls = 0;
  const auto task = hwt::test::on_cancelled([&] {
    EXPECT_THROW(loop.poll(), hwt::IllegalState);
    ++polls;
  });
  net::LoopTimer timer(loop.get_executor());
  const Timeout pending = timer.new_timeout(task, kFar);
  loop.poll();
  timer.new_timeout([] { ADD_FAILURE(); }, 1ms);
  EXPECT_EQ(timer.stop().size(), 2u);
  EXPECT_EQ(polls, 1);
  loop.restart();
  loop.run_for(std::chrono::seconds(60));
  EXPECT_TRUE(loop.stopped());
}

TEST_F(LoopTimerOnALoop, ASecondStopDoesNotStopALoopWithoutWork) {
  timer.new_timeout([] {}, kFar);
  std::atomic<std::size_t> returned{0};
  run_together(2, [&](int) { returned += timer.stop().size(); });
  EXPECT_EQ(returned, 1u);
  loop.run();
  loop.restart();
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_FALSE(loop.stopped());
}

TEST(LoopTimer, NoTaskStartsOnceAnotherThreadDestroysIt) {
  host::io_context loop;
  auto timer = std::make_unique<net::LoopTimer>(loop.get_executor());
  std::atomic<bool> runs{false};
  const auto deadline = steady_clock::now();
  timer->new_timeout(
      [&](Timeout& self) {
        runs = true;
        EXPECT_TRUE(eventually([&] { return self.timer() == nullptr; }));
      },
      deadline);
  const Timeout next = timer->new_timeout([] { ADD_FAILURE(); }, deadline);
  std::jthread thread([&] { loop.run(); });
  EXPECT_TRUE(eventually([&] { return runs.load(); }));
  timer.reset();
  EXPECT_TRUE(next.is_cancelled());
}

TEST(LoopTimerRaces, ItMayGoWhileOtherThreadsRunItAndUseItsHandles) {
  for (int round = 0; round < 500; ++round) {
    host::io_context loop;
    auto timer = std::make_unique<net::LoopTimer>(loop.get_executor());
    std::atomic<int> ran{0};
    std::vector<Timeout> timeouts;
    for (int i = 0; i < 10; ++i) {
      timeouts.push_back(timer->new_timeout([&] { ++ran; }, std::chrono::microseconds(i * 200)));
    }
    int cancelled = 0;
    run_together(3, [&](int thread) {
      if (thread == 0) {
        loop.run();
      } else if (thread == 1) {
        for (Timeout& timeout : timeouts) {
          timeout.reschedule(0ns);  // wakes the loop
          cancelled += timeout.cancel() ? 1 : 0;
        }
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(round * 7 % 2000));
        timer.reset();
      }
    });
    int expired = 0;
    for (const Timeout& timeout : timeouts) {
      expired += timeout.is_expired() ? 1 : 0;
      ASSERT_NE(timeout.is_expired(), timeout.is_cancelled());
    }
    ASSERT_EQ(ran, expired);
    ASSERT_LE(cancelled, 10 - expired) << "the destructor has cancelled the others";
  }
}

}  // namespace
}  // namespace asio_test
