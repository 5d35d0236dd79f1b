// Constructors, with Netty's checks of their arguments and Netty's warnings, and the thread factory.

#include <cstdlib>
#include <iostream>

#include "tests/support/any_timer.h"

#if defined(__linux__)
#include <sys/resource.h>

#include "tests/support/forked_child.h"
#endif

namespace hwt::test {
namespace {
using std::chrono::nanoseconds;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

/// The message of a refusal. Each names the option, its value and the valid range.
template <class T>
std::string refusal(const Options& options) {
  return message_of<std::invalid_argument>([&] { const T timer(options); });
}
std::string hashed(const Options& options) { return refusal<HashedWheelTimer>(options); }
std::string hierarchical(const Options& options) { return refusal<HierarchicalWheelTimer>(options); }

/// Returns the text that the constructor of T(arguments...) writes to stderr.
template <class T, class... Arguments>
std::string warning_of(Arguments... arguments) {
  testing::internal::CaptureStderr();
  const T timer(arguments...);
  return testing::internal::GetCapturedStderr();
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

template <class T>
class ConstructorOf : public ::testing::Test {};
TYPED_TEST_SUITE(ConstructorOf, ThreadedTimers, TimerNames);

TYPED_TEST(ConstructorOf, MakesAWorkingTimerWithEveryOverload) {
  Latch ran(4);
  TypeParam by_default;
  TypeParam by_tick(1ms);
  TypeParam by_tick_and_length(1ms, 8);
  TypeParam by_options{{.tick_duration = 1ms}};
  for (TypeParam* timer : {&by_default, &by_tick, &by_tick_and_length, &by_options}) {
    timer->new_timeout([&] { ran.count_down(); }, 0ms);
  }
  EXPECT_TRUE(ran.wait());
}

TYPED_TEST(ConstructorOf, TakesEveryWheelLength) {
  const std::vector<std::int64_t> of_hashed{1, 2, 3, 5, 9, 31, 33, 512, 513};
  const std::vector<std::int64_t> of_hierarchical{2, 3, 4, 5, 63, 64, 65, 512, 4095, 4096};
  for (const std::int64_t length : std::is_same_v<TypeParam, HashedWheelTimer> ? of_hashed : of_hierarchical) {
    Latch ran(20);
    TypeParam timer(1ms, length);
    for (int i = 0; i < 20; ++i) timer.new_timeout([&] { ran.count_down(); }, i * 1ms);
    EXPECT_TRUE(ran.wait()) << length;
  }
}

TYPED_TEST(ConstructorOf, TakesTheLongestTickWhichStillSchedulesAndStops) {
  constexpr bool kHashed = std::is_same_v<TypeParam, HashedWheelTimer>;
  for (const std::int64_t length : kHashed ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{2, 64, 4096}) {
    TypeParam timer(nanoseconds(kHashed ? kInt64Max - 1 : kInt64Max), length);
    Timeout timeout = timer.new_timeout([] {}, 0ms);
    const Timeout never = timer.new_timeout([] {}, std::chrono::hours::max());
    EXPECT_TRUE(timeout.cancel());
    EXPECT_EQ(timer.stop(), std::vector<Timeout>{never});
  }
}

// Which values are refused: tests/fuzz/options.cpp.
TEST(Constructor, ARefusalNamesTheOptionItsValueAndTheRange) {
  EXPECT_EQ(hashed({.ticks_per_wheel = 1073741825}),
            "HashedWheelTimer: ticks_per_wheel: 1073741825 (expected: 1 .. 1073741824)");
  EXPECT_EQ(hierarchical({.ticks_per_wheel = 4097}),
            "HierarchicalWheelTimer: ticks_per_wheel: 4097 (expected: 2 .. 4096)");
  for (const auto& [tick, text] :
       {std::pair(nanoseconds(0), "0 ns"), std::pair(nanoseconds::min(), "-9223372036854775808 ns")}) {
    const std::string value = std::string("tick_duration: ") + text + " (expected: 1 ";
    EXPECT_EQ(hashed({.tick_duration = tick}).rfind("HashedWheelTimer: " + value + "ms", 0), 0u);
    EXPECT_EQ(hierarchical({.tick_duration = tick}).rfind("HierarchicalWheelTimer: " + value + "us", 0), 0u);
  }
  // A whole revolution must fit into 64 bits.
  constexpr std::int64_t kLimit = kInt64Max / 1024;
  EXPECT_NO_THROW(HashedWheelTimer({.tick_duration = nanoseconds(kLimit - 1), .ticks_per_wheel = 513}));
  const std::string message = hashed({.tick_duration = nanoseconds(kLimit), .ticks_per_wheel = 513});
  for (const std::string& part : {"tick_duration: " + std::to_string(kLimit), std::string("wheel of"),
                                  "expected: 1 ms .. " + std::to_string((kLimit - 1) / 1'000'000)}) {
    EXPECT_TRUE(contains(message, part)) << "no \"" << part << "\" in: " << message;
  }
  EXPECT_THROW(HashedWheelTimer(100ms, 0), std::invalid_argument);
  EXPECT_THROW(HierarchicalWheelTimer(100ms, 1), std::invalid_argument);
  EXPECT_THROW(HierarchicalWheelTimer(-1ms), std::invalid_argument);
}

TEST(Constructor, ATickBelowTheLeastIsRaisedWithAWarning) {
  const std::string prefix = "hashed_wheel_timer: HashedWheelTimer: tick_duration: ";
  EXPECT_EQ(warning_of<HashedWheelTimer>(nanoseconds(999'999)), prefix + "999999 ns is below 1 ms; using 1 ms\n");
  for (const auto tick : {999ns, 1ns}) {
    EXPECT_EQ(warning_of<HierarchicalWheelTimer>(tick),
              "hashed_wheel_timer: HierarchicalWheelTimer: tick_duration: " + std::to_string(tick.count()) +
                  " ns is below 1 us; using 1 us\n");
  }
  EXPECT_EQ(warning_of<HashedWheelTimer>(1ms), "");
  for (const nanoseconds tick : {nanoseconds(1us), nanoseconds(1001), nanoseconds(999us), nanoseconds(1ms)}) {
    EXPECT_EQ(warning_of<HierarchicalWheelTimer>(tick), "");
  }
  testing::internal::CaptureStderr();
  HashedWheelTimer raised(nanoseconds(999'999));
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(ran_in_task(raised, [] {}));
}

TEST(Constructor, NoLimitAtZeroAndBelow) {
  for (const std::int64_t limit : {std::int64_t{0}, std::int64_t{-1}, -kInt64Max}) {
    HashedWheelTimer timer{{.max_pending_timeouts = limit}};
    EXPECT_EQ(far_timeouts(timer, 2000).size(), 2000U);
  }
}

// The library warns of many timers once per process, so each of these tests runs in a process of its own.

/// Expects that `body` gives so many warnings.
void expect_warnings(int count, const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        testing::internal::CaptureStderr();
        body();
        const std::string text = testing::internal::GetCapturedStderr();
        std::cerr << "warnings: " << count_of(text, "more than 64") << std::endl;
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "warnings: " + std::to_string(count));
}

std::vector<std::unique_ptr<HashedWheelTimer>> make_timers(int count) {
  std::vector<std::unique_ptr<HashedWheelTimer>> timers;
  for (int i = 0; i < count; ++i) timers.push_back(std::make_unique<HashedWheelTimer>());
  return timers;
}

TEST(LiveTimersDeathTest, MoreThanSixtyFourGiveOneWarning) {
  expect_warnings(0, [] { make_timers(64); });
  expect_warnings(1, [] {
    make_timers(70);
    make_timers(70);
  });
}

TEST(LiveTimersDeathTest, StoppedOnesDoNotCountAndAreCountedOffOnce) {
  for (const int second : {64, 65}) {
    expect_warnings(second - 64, [second] {
      const auto first = make_timers(60);
      first[0]->start();
      for (const auto& timer : first) timer->stop();
      for (const auto& timer : first) timer->stop();
      make_timers(second);
    });
  }
}

/// Netty counts them off in the finalizer although they were never counted (D6), so that its warning comes late.
TEST(LiveTimersDeathTest, DefectD6_FailedConstructorsAreNotCounted) {
  for (const int count : {64, 65}) {
    expect_warnings(count - 64, [count] {
      for (int i = 0; i < 20; ++i) EXPECT_THROW(HashedWheelTimer(i % 2 * 1ms, 0), std::invalid_argument);
      make_timers(count);
    });
  }
}

TEST(ThreadFactory, IsCalledOnceAndNotBeforeATimeoutOrStart) {
  for (const bool by_start : {false, true}) {
    CountingFactory workers;
    HashedWheelTimer timer{{.thread_factory = workers.factory()}};
    timer.pending_timeouts();
    timer.stats();
    timer.now();
    EXPECT_EQ(workers.calls(), 0);
    if (by_start) timer.start();
    timer.new_timeout([] {}, kFar);
    for (int i = 0; i < 3; ++i) timer.start();
    EXPECT_EQ(workers.calls(), 1);
    timer.stop();
    EXPECT_TRUE(workers.wait_until_ended());
  }
  CountingFactory unused;
  HashedWheelTimer{{.thread_factory = unused.factory()}}.stop();
  EXPECT_EQ(unused.calls(), 0);
}

std::thread throw_error() { throw std::runtime_error("out of threads"); }
std::thread not_joinable() { return {}; }

TEST(ThreadFactory, ItsExceptionReachesTheCallerAndTheTimerStaysUsable) {
  for (const auto failure : {throw_error, not_joinable}) {
    bool fails = true;
    const auto factory = [&](std::function<void()> body) { return fails ? failure() : std::thread(std::move(body)); };
    HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = 1, .thread_factory = factory}};
    const auto message = [&](auto call) { return message_of<std::exception>(call); };
    for (const auto& said : {message([&] { timer.start(); }), message([&] { timer.new_timeout([] {}, kFar); }),
                             message([&] { timer.new_timeout([] {}, kFar, Leeway(1s)); })}) {
      EXPECT_EQ(said == "out of threads", failure == throw_error) << said;
    }
    EXPECT_FALSE(timer.try_new_timeout([] {}, kFar) || timer.try_new_timeout([] {}, kFar, Leeway(1s)));
    EXPECT_EQ(timer.pending_timeouts(), 0);
    EXPECT_EQ(timer.stats().scheduled, 0);
    fails = false;
    EXPECT_TRUE(ran_in_task(timer, [] {}));
  }
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
