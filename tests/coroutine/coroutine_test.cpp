// The promises of sleep_for() and sleep_until(), for every Timer. A sleeping coroutine is resumed exactly once.

#include "hashed_wheel_timer/coroutine.h"

#include "tests/coroutine/coroutine_support.h"
#include "tests/support/held_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// How often, why and where a sleep ended.
struct Story {
  std::atomic<int> wakes = 0;
  std::optional<Wake> wake;
  std::thread::id woken_on;
  std::function<void()> when_awake;
};

void record(Story& story, Wake wake) {
  story.wake = wake;
  story.woken_on = std::this_thread::get_id();
  if (story.when_awake) story.when_awake();
  ++story.wakes;  // last: a thread that waits for it may destroy the story
}

template <class Length>
auto sleep_of(Timer& timer, Length length, std::stop_token stop) {
  if constexpr (std::is_same_v<Length, steady_clock::time_point>) {
    return sleep_until(timer, length, std::move(stop));
  } else {
    return sleep_for(timer, length, std::move(stop));
  }
}

template <class Length>
Detached sleeper(Timer& timer, Length length, Story& story, std::stop_token stop = {}) {
  record(story, co_await sleep_of(timer, length, std::move(stop)));
}

Owned owned_sleeper(Timer& timer, Delay delay, Story& story, std::stop_token stop = {}) {
  record(story, co_await sleep_for(timer, delay, std::move(stop)));
}

const std::thread::id test_thread = std::this_thread::get_id();

/// Checks before and after each test that no Detached coroutine exists.
class NoneLeft : public ::testing::Test {
 public:
  NoneLeft() { EXPECT_EQ(Detached::alive, 0); }
  ~NoneLeft() override { EXPECT_EQ(Detached::alive, 0); }
};

template <class T>
class Sleeping : public NoneLeft {};
TYPED_TEST_SUITE(Sleeping, AllTimers);

template <class T>
class SleepingThreaded : public NoneLeft {};
TYPED_TEST_SUITE(SleepingThreaded, ThreadedTimers);

// How a sleep ends.

TYPED_TEST(Sleeping, ExpiresWhereTheTimerRunsTasksAndNotEarly) {
  Story by_delay;
  Story by_deadline;
  const auto timer = make_timer<TypeParam>();
  const auto begin = timer->now();
  steady_clock::time_point end;
  by_delay.when_awake = [&] { end = timer->now(); };
  sleeper(*timer, 5ms, by_delay);
  sleeper(*timer, begin + 5ms, by_deadline);
  EXPECT_TRUE(passes_until(*timer, [&] { return by_delay.wakes == 1 && by_deadline.wakes == 1; }));
  EXPECT_GE(end - begin, 5ms);
  EXPECT_EQ(by_delay.wake, Wake::Expired);
  EXPECT_EQ(by_deadline.wake, Wake::Expired);
  EXPECT_EQ(by_delay.woken_on == test_thread, kDriven<TypeParam>);
  EXPECT_EQ(timer->pending_timeouts(), 0);
}

TYPED_TEST(Sleeping, ForZeroOrLessExpiresAtOnceEvenOnAStoppedTimer) {
  const auto timer = make_timer<TypeParam>();
  timer->stop();
  std::array<Story, 4> stories;
  sleeper(*timer, 0ns, stories[0]);
  sleeper(*timer, -1h, stories[1]);
  sleeper(*timer, timer->now(), stories[2]);
  sleeper(*timer, steady_clock::time_point::min(), stories[3]);
  for (const Story& story : stories) {
    EXPECT_EQ(story.wakes, 1);
    EXPECT_EQ(story.wake, Wake::Expired);
  }
}

TEST(SleepingForZero, AMillionTimesDoesNotGrowTheStack) {
  constexpr int kRounds = HWT_TEST_SANITIZED ? 100'000 : 1'000'000;
  ManualTimer timer;
  int rounds = 0;
  [](Timer& timer, int& rounds) -> Detached {
    for (Wake wake = Wake::Expired; rounds < kRounds && wake == Wake::Expired; ++rounds) {
      wake = co_await sleep_for(timer, 0ns);
    }
  }(timer, rounds);
  EXPECT_EQ(rounds, kRounds);
  EXPECT_EQ(Detached::alive, 0);
}

TYPED_TEST(Sleeping, IsStoppedAtOnceIfTheStopWasRequestedBeforeOrTheTimerHasBeenStopped) {
  Story story;
  std::stop_source before;
  std::stop_source afterwards;
  before.request_stop();
  const auto timer = make_timer<TypeParam>();
  sleeper(*timer, kFar, story, before.get_token());
  sleeper(*timer, 0ns, story, before.get_token());
  EXPECT_EQ(story.wakes, 2);
  EXPECT_EQ(std::exchange(story.wake, std::nullopt), Wake::Stopped);
  EXPECT_EQ(timer->stats().scheduled, 0) << "a timer at its limit would refuse the timeout";
  timer->stop();
  sleeper(*timer, 1ns, story);
  EXPECT_EQ(story.wake, Wake::Stopped) << "1 ns is not 0";
  sleeper(*timer, kFar, story);
  sleeper(*timer, timer->now() + kFar, story, afterwards.get_token());
  EXPECT_EQ(story.wakes, 5);
  EXPECT_EQ(story.wake, Wake::Stopped);
  afterwards.request_stop();
  EXPECT_EQ(story.wakes, 5);
}

TYPED_TEST(Sleeping, IsStoppedInsideRequestStopOnTheCallingThread) {
  std::array<Story, 3> stories;
  std::stop_source stop;
  const auto timer = make_timer<TypeParam>();
  for (Story& story : stories) sleeper(*timer, kFar, story, stop.get_token());
  EXPECT_EQ(timer->pending_timeouts(), 3);
  std::jthread([&] {
    stop.request_stop();
    for (const Story& story : stories) {
      EXPECT_EQ(story.wakes, 1);
      EXPECT_EQ(story.wake, Wake::Stopped);
      EXPECT_EQ(story.woken_on, std::this_thread::get_id());
    }
  }).join();
  EXPECT_EQ(timer->pending_timeouts(), 0);
  EXPECT_TRUE(timer->stop().empty());
}

TYPED_TEST(Sleeping, IsStoppedInsideTimerStopOrItsDestructorOnTheCallingThread) {
  for (const bool destroyed : {false, true}) {
    SCOPED_TRACE(destroyed ? "destroyed" : "not destroyed");
    std::array<Story, 2> stories;
    std::stop_source stop;
    auto timer = make_timer<TypeParam>();
    sleeper(*timer, kFar, stories[0]);
    sleeper(*timer, kFar, stories[1], stop.get_token());
    std::vector<Timeout> unprocessed;
    if (destroyed) {
      timer.reset();
    } else {
      unprocessed = timer->stop();
      ASSERT_EQ(unprocessed.size(), 2);
    }
    const auto expect_one_wake_each = [&] {
      for (const Story& story : stories) {
        EXPECT_EQ(story.wakes, 1);
        EXPECT_EQ(story.wake, Wake::Stopped);
        EXPECT_EQ(story.woken_on, test_thread);
      }
    };
    expect_one_wake_each();
    EXPECT_EQ(Detached::alive, 0);
    for (Timeout timeout : unprocessed) timeout.task().run(timeout);
    stop.request_stop();
    expect_one_wake_each();
  }
}

TYPED_TEST(Sleeping, ACoroutineThatTimerStopWakesMayDestroyTheTimer) {
  Story first;
  Story others;
  auto timer = make_timer<TypeParam>();
  first.when_awake = [&] { timer.reset(); };
  sleeper(*timer, 1h, first);
  for (int i = 0; i < 100; ++i) sleeper(*timer, 2h, others);
  EXPECT_EQ(timer->stop().size(), 101);
  EXPECT_EQ(timer, nullptr);
  EXPECT_EQ(first.wakes, 1);
  EXPECT_EQ(others.wakes, 100);
}

TYPED_TEST(Sleeping, ACoroutineThatExpiresMayDestroyTheTimerWhichWakesTheOthers) {
  Story first;
  Story others;
  Latch woken(100);
  auto timer = make_timer<TypeParam>();
  first.when_awake = [&] { timer.reset(); };
  others.when_awake = [&] { woken.count_down(); };
  for (int i = 0; i < 100; ++i) sleeper(*timer, 2h, others);
  sleeper(*timer, 1ms, first);
  while (kDriven<TypeParam> && timer) turn(*timer);
  EXPECT_TRUE(woken.wait());
  EXPECT_EQ(first.wake, Wake::Expired);
  EXPECT_EQ(others.wake, Wake::Stopped);
  EXPECT_TRUE(eventually([] { return Detached::alive == 0; }));
}

TYPED_TEST(Sleeping, AnObjectAndItsCopyMayBeAwaitedAgain) {
  Story story;
  const auto timer = make_timer<TypeParam>();
  [](Timer& timer, Story& story) -> Detached {
    Sleep twice = sleep_for(timer, 2ms);
    Sleep copy = twice;
    record(story, co_await twice);
    record(story, co_await twice);
    record(story, co_await copy);
  }(*timer, story);
  EXPECT_TRUE(passes_until(*timer, [&] { return story.wakes == 3; }));
  EXPECT_EQ(story.wake, Wake::Expired);
}

TYPED_TEST(Sleeping, AnExceptionThatLeavesTheCoroutineIsReported) {
  ErrorLog errors;
  const auto timer = make_timer<TypeParam>({.on_task_error = errors.handler()});
  Story story;
  story.when_awake = [] { throw 7; };
  const Owned expires = owned_sleeper(*timer, 1ms, story);
  EXPECT_TRUE(passes_until(*timer, [&] { return errors.errors().size() == 1; }));
  const Owned stopped = owned_sleeper(*timer, kFar, story);
  timer->stop();
  EXPECT_EQ(errors.errors(), (std::vector<std::string>{"7", "7"}));
}

// A coroutine is destroyed while it sleeps.

TYPED_TEST(Sleeping, ADestroyedCoroutineIsNeverResumed) {
  Story story;
  std::stop_source stop;
  const auto timer = make_timer<TypeParam>();
  for (const std::stop_token& token : {std::stop_token(), stop.get_token()}) {
    Owned frame = owned_sleeper(*timer, kFar, story, token);
    EXPECT_EQ(timer->pending_timeouts(), 1);
    frame.destroy();
    EXPECT_EQ(timer->pending_timeouts(), 0);
  }
  stop.request_stop();
  EXPECT_TRUE(timer->stop().empty());
  EXPECT_EQ(story.wakes, 0);
}

TYPED_TEST(Sleeping, ACoroutineThatAnExpiringOrStoppedOneDestroysIsNeverTouchedAgain) {
  for (const bool stopped : {false, true}) {
    SCOPED_TRACE(stopped ? "stopped" : "not stopped");
    Story waker;
    Story story;
    std::array<Owned, 10> others;
    int wakes_before = 0;
    const auto timer = make_timer<TypeParam>();
    waker.when_awake = [&] {
      for (Owned& other : others) other.destroy();
      wakes_before = story.wakes;
    };
    if (stopped) sleeper(*timer, 1h, waker);
    // On a busy machine one may expire before the waker, or in the same tick.
    for (Owned& other : others) other = owned_sleeper(*timer, !stopped && &other == &others[1] ? 5ms : 2h, story);
    if (!stopped) {
      sleeper(*timer, 1ms, waker);
      EXPECT_TRUE(passes_until(*timer, [&] { return waker.wakes == 1; }));
    }
    std::vector<Timeout> unprocessed = timer->stop();
    for (Timeout& timeout : unprocessed) timeout.task().run(timeout);
    EXPECT_EQ(unprocessed.size(), stopped ? 11 : 0);
    EXPECT_EQ(waker.wakes, 1);
    EXPECT_EQ(story.wakes, wakes_before);
    EXPECT_LE(story.wakes, stopped ? 0 : 1);
  }
}

// Executors.

TYPED_TEST(SleepingThreaded, ExpiresInAnExecutorThatRunsJobsInlineLaterOrOnAnotherThread) {
  JobQueue later;
  ThreadPerJob elsewhere;
  for (const auto& executor :
       {std::function([](std::function<void()> job) { job(); }), later.executor(), elsewhere.executor()}) {
    std::array<Story, 2> stories;
    std::stop_source stop;
    const auto timer = make_timer<TypeParam>({.executor = executor});
    sleeper(*timer, 1ms, stories[0]);
    sleeper(*timer, 1ms, stories[1], stop.get_token());
    EXPECT_TRUE(eventually([&] {
      later.run_all();
      return stories[0].wakes == 1 && stories[1].wakes == 1;
    }));
    for (const Story& story : stories) EXPECT_EQ(story.wake, Wake::Expired);
    EXPECT_EQ(timer->pending_timeouts(), 0);
  }
}

TYPED_TEST(SleepingThreaded, IsStoppedIfTheExecutorDropsTheJob) {
  JobQueue never;
  for (const auto& executor : {std::function([](std::function<void()>) {}), never.executor()}) {
    Story story;
    const auto timer = make_timer<TypeParam>({.executor = executor});
    sleeper(*timer, 1ms, story);
    EXPECT_TRUE(eventually([&] {
      never.take();
      return story.wakes == 1;
    }));
    EXPECT_EQ(story.wake, Wake::Stopped);
    EXPECT_TRUE(timer->stop().empty());
    EXPECT_EQ(story.wakes, 1);
  }
}

/// A coroutine is stopped, and two are destroyed, while their jobs wait in the executor.
TYPED_TEST(SleepingThreaded, IsStoppedByARequestOrDestroyedWhileItsJobWaitsInTheExecutor) {
  Story stopped;
  Story destroyed;
  std::stop_source stop;
  JobQueue queue;
  auto timer = make_timer<TypeParam>({.executor = queue.executor()});
  sleeper(*timer, 1ms, stopped, stop.get_token());
  Owned before_stop = owned_sleeper(*timer, 1ms, destroyed);
  Owned after_stop = owned_sleeper(*timer, 1ms, destroyed);
  ASSERT_TRUE(queue.wait_for(3));
  stop.request_stop();
  EXPECT_EQ(stopped.wakes, 1);
  EXPECT_EQ(stopped.wake, Wake::Stopped);
  EXPECT_EQ(Detached::alive, 0);
  before_stop.destroy();
  EXPECT_TRUE(timer->stop().empty());
  timer.reset();
  after_stop.destroy();
  queue.run_all();
  EXPECT_EQ(stopped.wakes, 1);
  EXPECT_EQ(destroyed.wakes, 0);
}

// Refusals.

template <class Error>
Detached expect_refused(Timer& timer, bool& refused, std::stop_token stop = {}) {
  try {
    co_await sleep_for(timer, kFar, std::move(stop));
  } catch (const Error&) {
    refused = true;
  }
}

TYPED_TEST(SleepingThreaded, ThrowsTheErrorOfTheTimerAndALaterSleepSucceeds) {
  bool fail = true;
  const auto timer =
      make_timer<TypeParam>({.max_pending_timeouts = 1, .thread_factory = [&](std::function<void()> body) {
                               if (fail) throw IllegalState("no thread today");
                               return std::thread(std::move(body));
                             }});
  bool refused = false;
  expect_refused<IllegalState>(*timer, refused);
  EXPECT_TRUE(refused) << "the error was taken for that of a stopped timer";
  fail = false;
  std::stop_source stop;
  Timeout only = timer->new_timeout([] {}, kFar);
  refused = false;
  expect_refused<RejectedExecution>(*timer, refused, stop.get_token());
  EXPECT_TRUE(refused);
  stop.request_stop();
  only.cancel();
  Story story;
  sleeper(*timer, 1ms, story);
  EXPECT_TRUE(eventually([&] { return story.wakes == 1; }));
  EXPECT_EQ(story.wake, Wake::Expired);
}

TEST(SleepingRefused, TheErrorForANaNNamesTheParameter) {
  ManualTimer timer;
  EXPECT_EQ(message_of<std::invalid_argument>([&] { static_cast<void>(sleep_for(timer, kNanDelay)); }),
            "sleep_for: delay: NaN (expected: a number)");
}

// A sleep ends while the awaiting thread is still in new_timeout().

TEST(SleepingEndsDuringNewTimeout, ByExpiryOrTimerStop) {
  std::stop_source stop;
  for (const bool stopped : {false, true}) {
    SCOPED_TRACE(stopped ? "stopped" : "not stopped");
    for (const std::stop_token& token : {std::stop_token(), stop.get_token()}) {
      Story story;
      HeldTimer timer;
      timer.start();
      timer.hold_next(HeldTimer::At::Exit);
      std::jthread awaiting([&] { sleeper(timer, stopped ? kFar : 1ms, story, token); });
      EXPECT_TRUE(timer.wait_until_held());
      if (stopped) {
        EXPECT_EQ(timer.stop().size(), 1);
        EXPECT_EQ(story.woken_on, test_thread);
      }
      EXPECT_TRUE(eventually([&] { return story.wakes == 1 && Detached::alive == 0; }));
      EXPECT_EQ(story.wake, stopped ? Wake::Stopped : Wake::Expired);
      EXPECT_NE(story.woken_on, awaiting.get_id());
      timer.go_on();
      awaiting.join();
      EXPECT_EQ(story.wakes, 1);
    }
  }
}

TEST(SleepingEndsDuringNewTimeout, ByAStopRequestThatDoesNotWait) {
  for (const HeldTimer::At at : {HeldTimer::At::Entry, HeldTimer::At::Exit}) {
    Story story;
    std::stop_source stop;
    HeldTimer timer;
    timer.hold_next(at);
    std::jthread awaiting([&] { sleeper(timer, kFar, story, stop.get_token()); });
    EXPECT_TRUE(timer.wait_until_held());
    stop.request_stop();
    EXPECT_EQ(story.wakes, 0);
    const std::thread::id awaits = awaiting.get_id();
    timer.go_on();
    awaiting.join();
    EXPECT_EQ(story.wakes, 1);
    EXPECT_EQ(story.wake, Wake::Stopped);
    EXPECT_EQ(story.woken_on, awaits);
    EXPECT_EQ(timer.pending_timeouts(), 0);
  }
}

// Races.

/// One thread starts sleeps. Meanwhile other threads request stops, stop the timer, and drive it.
template <class T>
void expect_one_wake_each(const Options& options, std::function<void()> run_jobs) {
  constexpr std::size_t kSleepers = 64;
  const Deadline over(HWT_TEST_SANITIZED ? 4s : 1s);
  const Deadline hopeless(kGenerous);
  std::minstd_rand random(7);
  std::array<int, 2> seen{};
  do {
    std::array<Story, kSleepers> stories;
    std::array<std::stop_source, kSleepers> stops;
    const auto timer = make_timer<T>(options);
    // Stops the timer either in the middle of the round, or when most sleeps have ended.
    const auto stop_after = std::chrono::microseconds(random() % 2 == 0 ? random() % 3000 : 20'000);
    const auto delays_below = static_cast<unsigned>(random() % 3000 + 1);
    std::atomic<std::size_t> asleep = 0;
    run_together(4, [&](int index) {
      if (index == 0) {
        for (std::size_t i = 0; i < kSleepers; ++i) {
          const auto delay = std::chrono::microseconds(random() % delays_below);
          sleeper(*timer, delay, stories[i], i % 4 == 0 ? std::stop_token() : stops[i].get_token());
          asleep = i + 1;
        }
      } else if (index == 1) {
        for (std::size_t i = 0; i < kSleepers; ++i) {
          // An even sleep is stopped about when it begins, an odd one perhaps before. Two of eight are not stopped.
          while (i % 2 == 0 && asleep < i) std::this_thread::yield();
          if (i % 8 < 6) stops[i].request_stop();
        }
      } else if (index == 2) {
        std::this_thread::sleep_for(stop_after);
        timer->stop();
      } else {
        for (int i = 0; i < 4; ++i) {
          turn(*timer);
          if (run_jobs) run_jobs();
          std::this_thread::yield();
        }
      }
    });
    EXPECT_TRUE(eventually([&] {
      if (run_jobs) run_jobs();
      return Detached::alive == 0;
    }));
    for (const Story& story : stories) {
      EXPECT_EQ(story.wakes, 1);
      ++seen[static_cast<std::size_t>(*story.wake)];
    }
    EXPECT_EQ(timer->pending_timeouts(), 0);
  } while ((!over.passed() || ((seen[0] == 0 || seen[1] == 0) && !hopeless.passed())) &&
           !::testing::Test::HasFailure());
  EXPECT_GT(seen[0], 0) << "none has expired";
  EXPECT_GT(seen[1], 0) << "none was stopped";
}

TYPED_TEST(Sleeping, IsResumedOnceInEveryRace) { expect_one_wake_each<TypeParam>({}, nullptr); }

TYPED_TEST(SleepingThreaded, IsResumedOnceInEveryRaceWithAnExecutor) {
  JobQueue queue;
  expect_one_wake_each<TypeParam>({.executor = queue.executor()}, [&] { run_every_second_job(queue); });
}

TYPED_TEST(SleepingThreaded, MayBeDestroyedAfterAStopRequestAndAJoin) {
  const Deadline over(HWT_TEST_SANITIZED ? 2s : 1s);
  const auto timer = make_timer<TypeParam>();
  do {
    std::array<Story, 32> stories;
    std::array<Owned, 32> frames;
    std::stop_source stop;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      frames[i] = owned_sleeper(*timer, 500us, stories[i], stop.get_token());
    }
    stop.request_stop();
    for (const Owned& frame : frames) EXPECT_TRUE(eventually([&] { return frame.ended(); }));
    for (const Story& story : stories) EXPECT_EQ(story.wakes, 1);
  } while (!over.passed() && !::testing::Test::HasFailure());
  EXPECT_EQ(timer->pending_timeouts(), 0);
}

}  // namespace
}  // namespace hwt
