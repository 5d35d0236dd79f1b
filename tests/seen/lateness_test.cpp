// The promises of lateness(): with exact numbers on an engine to which the test tells the time, and on real timers.

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#endif

#include "hashed_wheel_timer/internal/core/counters.h"
#include "perf/micro/threadless_timer.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace std::chrono_literals;
using perf::ThreadlessTimer;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using test::eventually;
using test::Gate;
using test::kFar;

constexpr std::int64_t ns(nanoseconds duration) { return duration.count(); }

/// Processes the next tick with due timeouts from `begun` on.
void expire_next(ThreadlessTimer& timer, nanoseconds begun) {
  timer.worker().transfer();
  timer.worker().expire(timer.worker().next_due(), ns(begun));
}

TEST(Lateness, CountsFromTheDeadlineToTheBeginningOfTheWorkOnATick) {
  ThreadlessTimer timer;  // started at 0, a tick of 1 ms
  // Later tasks of the tick do not include this one's time.
  timer.new_timeout([&] { timer.set_time(ns(1800us)), std::this_thread::sleep_for(1ms); }, 250us);
  timer.new_timeout([] {}, 1ms);
  timer.new_timeout([] {}, 1200us);
  expire_next(timer, 1300us);
  LatencyHistogram lateness = timer.core().lateness();
  EXPECT_EQ(lateness.count(), 2U);
  EXPECT_EQ(lateness.sum(), 1050us + 300us);
  EXPECT_EQ(lateness.max(), 1050us);
  EXPECT_LE(lateness.percentile(50), 300us * 9 / 8);
  expire_next(timer, 2ms);
  lateness = timer.core().lateness();
  EXPECT_EQ(lateness.count(), 3U);
  EXPECT_EQ(lateness.sum(), 1050us + 300us + 800us);
  EXPECT_EQ(lateness.max(), 1050us);
}

TEST(Lateness, IsZeroAtTheDeadlineAndNeverNegative) {
  ThreadlessTimer timer;
  timer.new_timeout([] {}, 1ms);
  timer.new_timeout([] {}, 1ms);
  expire_next(timer, 1ms);
  timer.new_timeout([] {}, 5ms);
  expire_next(timer, 4ms);  // no worker begins a tick before its deadlines
  const LatencyHistogram lateness = timer.core().lateness();
  EXPECT_EQ(lateness.count(), 3U);
  EXPECT_EQ(lateness.sum(), 0ns);
}

TEST(Lateness, GoesByTheLatestDeadline) {
  ThreadlessTimer timer;
  Timeout later = timer.new_timeout([] {}, 1ms);
  timer.worker().transfer();
  ASSERT_TRUE(later.reschedule(1h));
  timer.worker().expire(timer.worker().next_due(), ns(1ms));
  EXPECT_EQ(timer.core().lateness().count(), 0U);
  timer.worker().expire(timer.worker().next_due(), ns(later.deadline().time_since_epoch()) + 42);
  EXPECT_EQ(timer.core().lateness().count(), 1U);
  EXPECT_EQ(timer.core().lateness().sum(), 42ns);
}

TEST(Lateness, BeyondTheRangeOfADurationIsTheLongest) {
  ThreadlessTimer timer;
  timer.set_time(std::numeric_limits<std::int64_t>::min());
  timer.new_timeout([] {}, 0ns);
  expire_next(timer, 5ms);
  EXPECT_EQ(timer.core().lateness().max(), nanoseconds::max());
  EXPECT_EQ(timer.core().lateness().sum(), nanoseconds::max());
  EXPECT_EQ(timer.core().lateness().count(), 1U);
}

TEST(LatenessRecord, IsTheHistogramOfTheAddedValues) {
  internal::LatenessRecord record;
  LatencyHistogram model;
  for (std::int64_t value = 1; value < std::numeric_limits<std::int64_t>::max() / 3; value = value * 3 / 2 + 1) {
    record.add(value, 0);
    model.add(nanoseconds(value));
  }
  record.add(0, 0);
  model.add(0ns);
  record.add(std::numeric_limits<std::int64_t>::max(), 0);
  model.add(nanoseconds::max());
  const LatencyHistogram snapshot = record.snapshot();
  EXPECT_EQ(snapshot.count(), model.count());
  EXPECT_EQ(snapshot.sum(), nanoseconds::max());
  EXPECT_EQ(snapshot.max(), model.max());
  for (int p = 0; p <= 100; ++p) EXPECT_EQ(snapshot.percentile(p), model.percentile(p));
}

TEST(LatenessRecord, IsExactBeyondTheLastBucket) {
  constexpr std::int64_t kYears = 10 * 365 * ns(24h);
  internal::LatenessRecord record;
  record.add(kYears + ns(1h), ns(1h));
  EXPECT_EQ(record.snapshot().max(), nanoseconds(kYears));
  EXPECT_EQ(record.snapshot().sum(), nanoseconds(kYears));
  record.add(kYears - 5, -5);
  EXPECT_EQ(record.snapshot().max(), nanoseconds(kYears));
  EXPECT_EQ(record.snapshot().sum(), nanoseconds(2 * kYears));
  record.add(kYears, 0);
  EXPECT_EQ(record.snapshot().sum(), nanoseconds(3 * kYears));
  EXPECT_EQ(record.snapshot().count(), 3U);
}

TEST(LatenessRecord, ASnapshotHasNoValueWithoutItsMaximumAndSum) {
  internal::LatenessRecord record;
  std::atomic<bool> done = false;
  std::jthread worker([&] {
    for (std::int64_t value = 1; value <= (test::kSanitized ? 20'000 : 200'000); ++value) record.add(value * 1000, 0);
    done = true;
  });
  LatencyHistogram before;
  while (!done) {
    const LatencyHistogram now = record.snapshot();
    ASSERT_GE(now.count(), before.count());
    // The values are 1, 2, 3, ... us.
    const auto count = static_cast<std::int64_t>(now.count());
    ASSERT_GE(now.max(), count * 1us);
    ASSERT_GE(now.sum(), count * (count + 1) / 2 * 1us);
    before = now;
  }
}

template <class T>
class LatenessOfTimers : public ::testing::Test {};
TYPED_TEST_SUITE(LatenessOfTimers, test::ThreadedTimers);

TYPED_TEST(LatenessOfTimers, EveryExpiredTimeoutCountsAndNoOther) {
  TypeParam timer{1ms};
  std::atomic<int> ran = 0;
  std::atomic<std::int64_t> measured = 0;
  constexpr int kTimeouts = 1000;
  for (int i = 0; i < kTimeouts; ++i) {
    test::after(timer, std::chrono::microseconds(i * 20), [&](Timeout& self) {
      measured += ns(steady_clock::now() - self.deadline());
      ++ran;
    });
    timer.new_timeout([] {}, kFar).cancel();
  }
  ASSERT_TRUE(eventually([&] { return ran == kTimeouts; }));
  timer.new_timeout([] {}, kFar);
  timer.stop();
  const LatencyHistogram lateness = timer.lateness();
  EXPECT_EQ(lateness.count(), static_cast<std::uint64_t>(kTimeouts));
  EXPECT_EQ(lateness.count(), static_cast<std::uint64_t>(timer.stats().expired));
  // A lateness ends when the worker begins the tick, before the task reads the clock.
  EXPECT_LE(lateness.sum(), nanoseconds(measured));
}

#if !defined(_WIN32) && !HWT_TEST_THREAD_SANITIZER  // ThreadSanitizer puts a signal off until the sleep is over

/// Holds a thread inside a signal handler, as the system holds a thread that gets no processor.
class Stall {
 public:
  explicit Stall(pthread_t thread) {
    entered_ = released_ = false;
    struct sigaction action = {};
    action.sa_handler = [](int) {
      entered_ = true;
      while (!released_) usleep(100);
    };
    EXPECT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    EXPECT_EQ(pthread_kill(thread, SIGUSR1), 0);
    EXPECT_TRUE(eventually([] { return entered_.load(); }));
  }
  ~Stall() { released_ = true; }

 private:
  static inline std::atomic<bool> entered_, released_;
};

// max_lag does not show it: the worker cannot tell this deadline from one that had passed when it was scheduled.
TYPED_TEST(LatenessOfTimers, ShowsThatTheWorkerWokeUpAfterADeadlineItWasWokenFor) {
  TypeParam timer{1ms};
  pthread_t worker = {};
  ASSERT_TRUE(test::ran_in_task(timer, [&] { worker = pthread_self(); }));
  std::atomic<bool> ran = false;
  {
    const Stall stall(worker);
    const Timeout due = timer.new_timeout([&] { ran = true; }, 3ms);
    EXPECT_TRUE(eventually([&] { return steady_clock::now() > due.deadline() + 40ms; }));
  }
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
  EXPECT_GT(timer.lateness().max(), 40ms);
}

#endif

TYPED_TEST(LatenessOfTimers, IncludesTheTasksOfTheTickBefore) {
  // The sum of all latenesses, as these tasks see it.
  std::atomic<std::int64_t> in_first = 0, in_second = 0;
  TypeParam timer{1ms};
  Gate gate(timer);
  const std::int64_t before = ns(timer.lateness().sum());
  const steady_clock::time_point due = timer.now() + 1ms;
  test::after(timer, due, [&] {
    in_first = ns(timer.lateness().sum());
    std::this_thread::sleep_for(60ms);
  });
  timer.new_timeout([&] { in_second = ns(timer.lateness().sum()); }, due + 1ms);
  // When the gate opens, both ticks are over.
  ASSERT_TRUE(eventually([&] { return steady_clock::now() > due + 10ms; }));
  gate.open();
  ASSERT_TRUE(eventually([&] { return in_second != 0; }));
  const std::int64_t of_first = in_first - before;
  const std::int64_t of_second = in_second - in_first;
  EXPECT_GT(of_second, of_first + ns(50ms));
}

TYPED_TEST(LatenessOfTimers, DoesNotIncludeTheWaitInAnExecutor) {
  test::JobQueue jobs;
  TypeParam timer{{.tick_duration = 1ms, .executor = jobs.executor()}};
  std::atomic<bool> ran = false;
  timer.new_timeout([&] { ran = true; }, 0ns);
  ASSERT_TRUE(jobs.wait_for(1));
  const LatencyHistogram before = timer.lateness();
  EXPECT_EQ(before.count(), 1U);
  jobs.run_all();
  EXPECT_TRUE(ran);
  EXPECT_EQ(timer.lateness().count(), 1U);
  EXPECT_EQ(timer.lateness().sum(), before.sum());
}

}  // namespace
}  // namespace hwt
