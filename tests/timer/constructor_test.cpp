// The constructor, with Netty's checks of its arguments and Netty's warnings, and the thread factory.

#include <cstdlib>
#include <iostream>
#include <new>

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "tests/support/test_support.h"

#if defined(__linux__)
#include <sys/resource.h>

#include "tests/support/forked_child.h"
#endif

namespace hwt::test {
namespace {
using std::chrono::nanoseconds;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

/// Each message names the option, its value and the valid range.
void expect_refused(const Options& options, const std::string& option, const std::string& value,
                    const std::string& bound) {
  const std::string message = message_of<std::invalid_argument>([&] { const HashedWheelTimer timer(options); });
  for (const std::string& part : {std::string("HashedWheelTimer: ") + option, value, std::string("expected"), bound}) {
    EXPECT_TRUE(contains(message, part)) << "no \"" << part << "\" in: " << message;
  }
}

TEST(Constructor, Defaults) {
  const Options options;
  EXPECT_EQ(options.tick_duration, std::nullopt) << "each timer has its own";
  EXPECT_EQ(options.ticks_per_wheel, 512);
  EXPECT_EQ(options.max_pending_timeouts, -1);
  EXPECT_EQ(options.slow_task, std::nullopt);
  EXPECT_FALSE(options.executor || options.thread_factory || options.on_task_error);
}

TEST(Constructor, WithoutATickEachTimerHasItsOwn) {
  ManualTimer manual(Options{.max_pending_timeouts = 10});
  manual.new_timeout([] {}, 1ns);
  EXPECT_EQ(manual.next_wakeup(), manual.now() + 1ms);
  LoopTimer loop(Options{.max_pending_timeouts = 10});
  const Timeout far = loop.new_timeout([] {}, 1s);
  EXPECT_LE(*loop.run_due() - far.deadline(), 1ms);
  HashedWheelTimer hashed(Options{.max_pending_timeouts = 10});
  HierarchicalWheelTimer hierarchical(Options{.max_pending_timeouts = 10});
  for (Timer* timer : {static_cast<Timer*>(&hashed), static_cast<Timer*>(&hierarchical)}) {
    const Timeout timeout = timer->new_timeout([] {}, 1ms);
    std::this_thread::sleep_until(timeout.deadline() + 20ms);
    EXPECT_TRUE(timeout.is_pending() || std::chrono::steady_clock::now() > timeout.deadline() + 90ms) << "100 ms";
  }
}

TEST(Constructor, EveryOverloadMakesAWorkingTimer) {
  Latch ran(4);
  const auto count = [&] { ran.count_down(); };
  HashedWheelTimer by_default;
  HashedWheelTimer by_tick(1ms);
  HashedWheelTimer by_tick_and_length(1ms, 8);
  HashedWheelTimer by_options{{.tick_duration = 1ms}};
  for (HashedWheelTimer* timer : {&by_default, &by_tick, &by_tick_and_length, &by_options}) {
    timer->new_timeout(count, 0ms);
  }
  EXPECT_TRUE(ran.wait());
}

TEST(Constructor, TickDurationMustBePositive) {
  expect_refused({.tick_duration = 0ns}, "tick_duration", "0 ns", "1 ms or more");
  expect_refused({.tick_duration = -1ns}, "tick_duration", "-1 ns", "1 ms or more");
  expect_refused({.tick_duration = nanoseconds::min()}, "tick_duration", "-9223372036854775808 ns", "1 ms or more");
  EXPECT_THROW(HashedWheelTimer(-1ms), std::invalid_argument);
}

TEST(Constructor, TicksPerWheelMustBeInRange) {
  expect_refused({.ticks_per_wheel = 0}, "ticks_per_wheel", "0", "1073741824");
  expect_refused({.ticks_per_wheel = -1}, "ticks_per_wheel", "-1", "1073741824");
  expect_refused({.ticks_per_wheel = 1073741825}, "ticks_per_wheel", "1073741825", "1073741824");
  expect_refused({.ticks_per_wheel = kInt64Max}, "ticks_per_wheel", "9223372036854775807", "1073741824");
  expect_refused({.ticks_per_wheel = std::int64_t{1} << 62}, "ticks_per_wheel", "4611686018427387904", "1073741824");
  EXPECT_THROW(HashedWheelTimer(100ms, 0), std::invalid_argument);
}

TEST(Constructor, AWholeRevolutionMustFitIntoInt64Nanoseconds) {
  struct Row {
    std::int64_t ticks_per_wheel, limit;  // tick_duration must be below
  };
  for (const Row& row : {Row{512, 18014398509481983}, Row{513, kInt64Max / 1024}, Row{1, kInt64Max},
                         Row{2, kInt64Max / 2}, Row{4096, kInt64Max / 4096}}) {
    const auto with_tick = [&](std::int64_t tick) {
      return Options{.tick_duration = nanoseconds(tick), .ticks_per_wheel = row.ticks_per_wheel};
    };
    EXPECT_NO_THROW(HashedWheelTimer(with_tick(row.limit - 1))) << row.ticks_per_wheel;
    expect_refused(with_tick(row.limit), "tick_duration", std::to_string(row.limit), "wheel of");
    const std::string most = "1 ms .. " + std::to_string((row.limit - 1) / 1'000'000);
    expect_refused(with_tick(row.limit), "tick_duration", std::to_string(row.limit), most);
    EXPECT_THROW(HashedWheelTimer(with_tick(kInt64Max)), std::invalid_argument);
  }
}

TEST(Constructor, TheLongestTickStillSchedulesAndStops) {
  HashedWheelTimer timer(nanoseconds(kInt64Max - 1), 1);
  Timeout timeout = timer.new_timeout([] {}, 0ms);
  const Timeout never = timer.new_timeout([] {}, std::chrono::hours::max());
  EXPECT_TRUE(timeout.cancel());
  EXPECT_EQ(timer.stop(), std::vector<Timeout>{never});
}

TEST(Constructor, EveryWheelLengthWorks) {
  for (const std::int64_t ticks : {1, 2, 3, 5, 9, 31, 33, 512, 513}) {
    Latch ran(20);
    HashedWheelTimer timer(1ms, ticks);
    for (int i = 0; i < 20; ++i) timer.new_timeout([&] { ran.count_down(); }, i * 1ms);
    EXPECT_TRUE(ran.wait()) << ticks;
  }
}

TEST(Constructor, ATickBelowAMillisecondIsRaisedWithAWarning) {
  Latch ran;
  testing::internal::CaptureStderr();
  HashedWheelTimer timer(nanoseconds(999'999));
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(contains(warning, "tick_duration") && contains(warning, "1")) << warning;
  EXPECT_TRUE(contains(warning, "999999")) << warning;
  EXPECT_EQ(count_of(warning, "\n"), 1);
  timer.new_timeout([&] { ran.count_down(); }, 1us);
  EXPECT_TRUE(ran.wait());
}

TEST(Constructor, ATickOfAMillisecondIsTakenSilently) {
  testing::internal::CaptureStderr();
  const HashedWheelTimer timer(1ms);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Constructor, NoLimitAtZeroAndBelow) {
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{-1}, -kInt64Max}) {
    HashedWheelTimer timer{{.max_pending_timeouts = limit}};
    for (int i = 0; i < 2000; ++i) timer.new_timeout([] {}, kFar);
    EXPECT_EQ(timer.pending_timeouts(), 2000);
  }
}

// The library warns of many timers once per process, so each of these tests runs in a process of its own.

/// Runs `body`, prints how many warnings it gave, and ends the process.
template <class Body>
[[noreturn]] void count_warnings_and_exit(Body body) {
  testing::internal::CaptureStderr();
  body();
  const std::string text = testing::internal::GetCapturedStderr();
  std::cerr << "warnings: " << count_of(text, "more than 64") << std::endl;
  std::_Exit(0);
}

std::vector<std::unique_ptr<HashedWheelTimer>> make_timers(int count) {
  std::vector<std::unique_ptr<HashedWheelTimer>> timers;
  for (int i = 0; i < count; ++i) timers.push_back(std::make_unique<HashedWheelTimer>());
  return timers;
}

class LiveTimersDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(LiveTimersDeathTest, SixtyFourGiveNoWarning) {
  EXPECT_EXIT(count_warnings_and_exit([] { make_timers(64); }), testing::ExitedWithCode(0), "warnings: 0");
}

TEST_F(LiveTimersDeathTest, MoreGiveOneWarning) {
  EXPECT_EXIT(count_warnings_and_exit([] {
                make_timers(70);
                make_timers(70);
              }),
              testing::ExitedWithCode(0), "warnings: 1");
}

TEST_F(LiveTimersDeathTest, StoppedOnesDoNotCount) {
  EXPECT_EXIT(count_warnings_and_exit([] {
                const auto first = make_timers(60);
                first[0]->start();
                for (const auto& timer : first) timer->stop();
                for (const auto& timer : first) timer->stop();  // counted off once
                const auto second = make_timers(64);
              }),
              testing::ExitedWithCode(0), "warnings: 0");
}

TEST_F(LiveTimersDeathTest, StoppingTwiceCountsOffOnce) {
  EXPECT_EXIT(count_warnings_and_exit([] {
                const auto first = make_timers(10);
                for (const auto& timer : first) timer->stop();
                for (const auto& timer : first) timer->stop();
                make_timers(65);
              }),
              testing::ExitedWithCode(0), "warnings: 1");
}

/// Netty counts them off in the finalizer although they were never counted (D6), so that its warning comes late.
TEST_F(LiveTimersDeathTest, DefectD6_FailedConstructorsAreNotCounted) {
  EXPECT_EXIT(count_warnings_and_exit([] {
                for (int i = 0; i < 20; ++i) EXPECT_THROW(HashedWheelTimer(0ms), std::invalid_argument);
                const auto timers = make_timers(64);
              }),
              testing::ExitedWithCode(0), "warnings: 0");
  EXPECT_EXIT(count_warnings_and_exit([] {
                for (int i = 0; i < 20; ++i) EXPECT_THROW(HashedWheelTimer(100ms, 0), std::invalid_argument);
                const auto timers = make_timers(65);
              }),
              testing::ExitedWithCode(0), "warnings: 1");
}

// The thread factory.

TEST(ThreadFactory, IsCalledOnceAndNotByTheConstructor) {
  CountingFactory workers;
  HashedWheelTimer timer{{.thread_factory = workers.factory()}};
  EXPECT_EQ(workers.calls(), 0);
  timer.new_timeout([] {}, kFar);
  timer.start();
  timer.new_timeout([] {}, kFar);
  EXPECT_EQ(workers.calls(), 1);
  timer.stop();
  EXPECT_TRUE(workers.wait_until_ended());
}

/// Fails as often as it is told to, then works.
std::function<std::thread(std::function<void()>)> failing(int times, std::function<std::thread()> failure) {
  return [left = std::make_shared<std::atomic<int>>(times), failure](std::function<void()> body) {
    if ((*left)-- > 0) return failure();
    return std::thread(std::move(body));
  };
}

std::thread throw_error() { throw std::runtime_error("out of threads"); }
std::thread not_joinable() { return {}; }

TEST(ThreadFactory, ItsExceptionReachesTheCallerAndTheTimerStaysUsable) {
  Latch ran;
  HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 1, .thread_factory = failing(3, throw_error)}};
  EXPECT_EQ(message_of<std::runtime_error>([&] { timer.start(); }), "out of threads");
  EXPECT_EQ(message_of<std::runtime_error>([&] { timer.new_timeout([] {}, kFar); }), "out of threads");
  EXPECT_FALSE(timer.try_new_timeout([] {}, kFar));
  EXPECT_EQ(timer.pending_timeouts(), 0);
  EXPECT_EQ(timer.stats().scheduled, 0);
  timer.new_timeout([&] { ran.count_down(); }, 0ms);
  EXPECT_TRUE(ran.wait());
}

TEST(ThreadFactory, AThreadThatIsNoneIsAnErrorAndTheTimerStaysUsable) {
  Latch ran;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = failing(3, not_joinable)}};
  EXPECT_ANY_THROW(timer.start());
  EXPECT_ANY_THROW(timer.new_timeout([] {}, kFar));
  EXPECT_FALSE(timer.try_new_timeout([] {}, kFar));
  EXPECT_EQ(timer.stats().scheduled, 0);
  timer.new_timeout([&] { ran.count_down(); }, 0ms);
  EXPECT_TRUE(ran.wait());
}

TEST(ThreadFactory, ATimerThatNeverStartedStopsAndGoes) {
  HashedWheelTimer timer{{.thread_factory = failing(1, throw_error)}};
  EXPECT_THROW(timer.start(), std::runtime_error);
  EXPECT_TRUE(timer.stop().empty());
  EXPECT_THROW(timer.start(), IllegalState);
}

TEST(ThreadFactory, ThatCallsTheBodyItselfIsNotTheWorker) {
  bool makes_thread = false;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](std::function<void()> body) {
                            body();
                            return makes_thread ? std::thread(std::move(body)) : std::thread();
                          }}};
  EXPECT_THROW(timer.start(), IllegalState);
  makes_thread = true;
  timer.start();
  EXPECT_TRUE(ran_in_task(timer, [] {}));
}

TEST(ThreadFactory, AThreadThatItStartsBeforeItThrowsEnds) {
  std::thread started;
  HashedWheelTimer timer{{.thread_factory = [&](std::function<void()> body) {
    started = std::thread(std::move(body));
    return throw_error();
  }}};
  EXPECT_THROW(timer.start(), std::runtime_error);
  started.join();
}

TEST(ThreadFactory, ThatCallsTheBodyTwiceHasOneWorker) {
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [](const std::function<void()>& body) {
                            return std::thread([body] {
                              body();
                              body();
                            });
                          }}};
  timer.new_timeout([] {}, kFar);
  EXPECT_TRUE(ran_in_task(timer, [] {}));
  EXPECT_EQ(timer.stop().size(), 1u) << "a second worker would overwrite what the first has left for stop()";
}

/// A thread of a pool, for example, which goes on to other work.
TEST(ThreadFactory, AThreadThatWasTheWorkerIsLikeAnyOther) {
  Latch ended, stopped;
  std::jthread pooled;
  HashedWheelTimer timer{{.tick_duration = 1ms, .thread_factory = [&](const std::function<void()>& body) {
                            pooled = std::jthread([&, body] {
                              body();
                              ended.count_down();
                              EXPECT_TRUE(stopped.wait());
                              EXPECT_NO_THROW(timer.stop());
                            });
                            return std::thread([&] { EXPECT_TRUE(ended.wait()); });
                          }}};
  timer.start();
  timer.stop();
  stopped.count_down();
  pooled.join();
}

#if defined(__linux__)
TEST(Constructor, ThrowsWithoutMemoryForTheWheel) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need all addresses";
  const int status = status_of_child([] {
    constexpr rlimit kSpace{1 << 30, 1 << 30};
    if (setrlimit(RLIMIT_AS, &kSpace) != 0) return 1;
    try {
      const HashedWheelTimer timer(1ms, std::size_t{1} << 30);
      return 2;
    } catch (const std::bad_alloc&) {
      return 0;
    }
  });
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace hwt::test
