// Promise: the C interface has all that the C++ one guarantees, and refuses every wrong argument with an error code and
// one line. Without memory each function fails with ENOMEM and one line, and nothing is lost.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/c.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/clock_readings.h"
#include "tests/support/counted_abort.h"
#include "tests/support/eventually.h"
#if !defined(_WIN32)
#include "tests/support/forked_child.h"
#endif

namespace {

using namespace std::chrono_literals;
using hwt::test::eventually;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kHour = 3'600'000 * kMs;
constexpr int kThreaded[] = {HWT_HASHED_WHEEL, HWT_HIERARCHICAL_WHEEL};
constexpr int kDriven[] = {HWT_LOOP, HWT_MANUAL};
constexpr int kAll[] = {HWT_HASHED_WHEEL, HWT_HIERARCHICAL_WHEEL, HWT_LOOP, HWT_MANUAL};

struct Destroy {
  void operator()(hwt_timer* timer) const { hwt_destroy(timer); }
};
struct Owner : std::unique_ptr<hwt_timer, Destroy> {
  using unique_ptr::unique_ptr;
  operator hwt_timer*() const { return get(); }  // NOLINT(google-explicit-constructor)
};

hwt_options options_of(int kind) {
  hwt_options options;
  hwt_options_init(&options);
  options.kind = kind;
  options.tick_ns = kMs;
  return options;
}

Owner make(const hwt_options& options) {
  hwt_timer* timer = nullptr;
  EXPECT_EQ(hwt_create(&options, &timer), 0) << hwt_last_error();
  return Owner(timer);
}
Owner make(int kind) { return make(options_of(kind)); }

void count(void* argument) { ++*static_cast<std::atomic<int>*>(argument); }
void must_not_run(void*) { ADD_FAILURE() << "it must not run"; }
hwt_id add_far(hwt_timer* timer) { return hwt_add(timer, kHour, must_not_run, nullptr); }

/// Calls the function and returns its result. `errno` must stay as it was.
template <class Function>
auto without_errno(Function&& function) {
  errno = EDOM;
  const auto result = function();
  EXPECT_EQ(errno, EDOM);
  return result;
}

/// Passes the time of a timer without a thread; waits for a timer with one.
template <class Condition>
bool run_until(hwt_timer* timer, int kind, Condition&& condition) {
  return eventually([&] {
    const bool driven = kind == HWT_LOOP || kind == HWT_MANUAL;
    if (driven) without_errno([&] { return hwt_advance(timer, kind == HWT_LOOP ? 0 : hwt_now(timer) + kMs); });
    return condition();
  });
}

bool says(const std::string& text) { return std::string(hwt_last_error()).find(text) != std::string::npos; }

#define EXPECT_SAYS(text) EXPECT_TRUE(says(text)) << hwt_last_error()

// --- Timeouts --------------------------------------------------------------------------------------------------------

TEST(CInterface, RunsACallbackOnceAndNotEarly) {
  for (const int kind : kAll) {
    const Owner timer = make(kind);
    struct Ran {
      hwt_timer* timer;
      std::atomic<std::int64_t> at{0};
      std::atomic<int> times{0};
    } ran{timer};
    const auto note = [](void* argument) {
      auto& here = *static_cast<Ran*>(argument);
      here.at = hwt_now(here.timer);
      ++here.times;
    };
    const std::int64_t begun = hwt_now(timer);
    ASSERT_NE(hwt_add(timer, 5 * kMs, note, &ran), 0u) << hwt_last_error();
    EXPECT_TRUE(run_until(timer, kind, [&] { return ran.times != 0; })) << kind;
    EXPECT_GE(ran.at, begun + 5 * kMs) << kind;
    const std::int64_t deadline = hwt_now(timer) + 3 * kMs;
    ASSERT_NE(hwt_add_at(timer, deadline, note, &ran), 0u);
    EXPECT_TRUE(run_until(timer, kind, [&] { return ran.times == 2; })) << kind;
    EXPECT_GE(ran.at, deadline) << kind;
    EXPECT_EQ(hwt_pending(timer), 0);
  }
}

#ifdef HWT_TEST_COUNTS_CLOCK_READINGS
TEST(CInterface, AnExactClockIsReadForEachDelay) {
  hwt_options options = options_of(HWT_HASHED_WHEEL);
  options.exact_clock = 1;
  const Owner timer = make(options);
  ASSERT_EQ(hwt_start(timer), 0);
  std::this_thread::sleep_for(20ms);  // long enough for the cycle counter, were it used
  add_far(timer);
  const int before = hwt::test::clock_readings;
  for (int i = 0; i < 1000; ++i) add_far(timer);
  EXPECT_GE(hwt::test::clock_readings - before, 1000);
}
#endif

TEST(CInterface, AManualTimerBeginsAtItsStartANegativeDelayIsDueThenAndNeverIsNever) {
  for (const int64_t start : {-5 * kHour, 5 * kHour}) {
    hwt_options options = options_of(HWT_MANUAL);
    options.start_ns = start;
    const Owner timer = make(options);
    EXPECT_EQ(hwt_now(timer), start);
    EXPECT_EQ(hwt_next(timer), HWT_NEVER);
    EXPECT_EQ(hwt_poll_timeout(HWT_NEVER), -1);
    std::atomic<int> ran = 0;
    hwt_add(timer, -kHour, count, &ran);
    EXPECT_EQ(hwt_next(timer), start + kMs);
    const hwt_id never = hwt_add(timer, HWT_NEVER, must_not_run, nullptr);
    EXPECT_EQ(hwt_advance(timer, start + kMs), 1);
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(hwt_next(timer), HWT_NEVER);
    EXPECT_EQ(hwt_advance(timer, INT64_MAX), 0);
    EXPECT_EQ(hwt_cancel(timer, never), 0);
  }
}

TEST(CInterface, CancelAnswersWithTheNumbersOfBrpc) {
  for (const int kind : kAll) {
    const Owner timer = make(kind);
    const hwt_id pending = add_far(timer);
    EXPECT_EQ(hwt_cancel(timer, pending), 0);
    EXPECT_EQ(hwt_cancel(timer, pending), -1) << "gone";
    EXPECT_EQ(hwt_cancel_and_wait(timer, pending), -1) << "gone";
    struct Self {
      hwt_timer* timer;
      std::atomic<hwt_id> id{0};
      std::atomic<int> said{7}, waited{7};
      std::atomic<bool> ran{false};
    } self{timer};
    self.id = hwt_add(
        timer, 20 * kMs,
        [](void* argument) {
          auto& here = *static_cast<Self*>(argument);
          while (here.id == 0) std::this_thread::yield();  // hwt_add() has returned
          here.said = hwt_cancel(here.timer, here.id);
          here.waited = hwt_cancel_and_wait(here.timer, here.id);
          here.ran = true;
        },
        &self);
    EXPECT_TRUE(run_until(timer, kind, [&] { return self.ran.load(); }));
    EXPECT_EQ(self.said, 1) << "running";
    EXPECT_EQ(self.waited, 1) << "inside the callback itself";
    EXPECT_TRUE(run_until(timer, kind, [&] { return hwt_cancel(timer, self.id) == -1; }));
  }
}

TEST(CInterface, CancelAndWaitLetsTheArgumentBeFreed) {
  const auto use = [](void* argument) {
    auto& in_use = *static_cast<std::atomic<bool>*>(argument);
    in_use = true;
    std::this_thread::sleep_for(100us);
    in_use = false;
  };
  for (const int kind : kThreaded) {
    const Owner timer = make(kind);
    for (int i = 0; i < 200; ++i) {
      const auto in_use = std::make_unique<std::atomic<bool>>(false);
      const hwt_id id = hwt_add(timer, i % 3 * kMs, use, in_use.get());
      if (i % 2 == 0) std::this_thread::sleep_for(1ms);
      const int result = hwt_cancel_and_wait(timer, id);
      EXPECT_TRUE(result == 0 || result == -1) << result;
      EXPECT_FALSE(*in_use);
    }
  }
}

TEST(CInterface, ATimeoutByTheWallClockIsNotEarly) {
  for (const int kind : {HWT_HASHED_WHEEL, HWT_HIERARCHICAL_WHEEL, HWT_LOOP}) {  // a manual clock is no wall clock
    const Owner timer = make(kind);
    std::atomic<int> ran = 0;
    const auto wall = [] {
      return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
    };
    const std::int64_t due = wall() + 20 * kMs;
    ASSERT_NE(hwt_add_wall(timer, due, count, &ran), 0u);
    ASSERT_NE(hwt_add_wall(timer, (std::numeric_limits<std::int64_t>::max)(), must_not_run, nullptr), 0u);
    EXPECT_TRUE(run_until(timer, kind, [&] { return ran == 1; }));
    EXPECT_GE(wall(), due) << kind;
    EXPECT_EQ(hwt_pending(timer), 1) << "the end of the wall clock is never";
  }
}

TEST(CInterface, RescheduleMovesATimeout) {
  const Owner timer = make(HWT_MANUAL);
  std::atomic<int> ran = 0;
  const hwt_id id = hwt_add(timer, 5 * kMs, count, &ran);
  EXPECT_EQ(hwt_reschedule(timer, id, 20 * kMs), 0);
  EXPECT_EQ(hwt_advance(timer, 19 * kMs), 0);
  EXPECT_EQ(hwt_reschedule_at(timer, id, 30 * kMs), 0);
  EXPECT_EQ(hwt_advance(timer, 29 * kMs), 0);
  EXPECT_EQ(hwt_advance(timer, 30 * kMs), 1);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(hwt_reschedule(timer, id, kMs), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_SAYS("hwt_reschedule: id: " + std::to_string(id) + " (expected: that of a pending timeout)");
}

TEST(CInterface, StopHandsBackEachPendingCallbackWithItsArgument) {
  for (const int kind : kAll) {
    const Owner timer = make(kind);
    std::vector<int> arguments(100);
    for (int& argument : arguments) ASSERT_NE(hwt_add(timer, kHour, must_not_run, &argument), 0u);
    hwt_cancel(timer, add_far(timer));
    int calls = 0;
    const auto each = [](void* context, hwt_callback callback, void* argument) {
      ++*static_cast<int*>(context);
      EXPECT_EQ(callback, &must_not_run);
      ++*static_cast<int*>(argument);
    };
    EXPECT_EQ(hwt_stop(timer, each, &calls), 0);
    EXPECT_EQ(arguments, std::vector<int>(100, 1));
    EXPECT_EQ(hwt_stop(timer, each, &calls), 0) << "a second time: nothing is left";
    EXPECT_EQ(calls, 100);
    EXPECT_EQ(hwt_add(timer, kMs, must_not_run, nullptr), 0u);
    EXPECT_EQ(errno, ECANCELED);
    EXPECT_SAYS("hwt_add: the timer has been stopped");
  }
}

TEST(CInterface, ACallbackMayDestroyItsTimer) {
  for (const int kind : kAll) {
    struct Destroyer {
      hwt_timer* timer;
      std::atomic<bool> added{false}, destroyed{false};
    } destroyer{make(kind).release()};
    const auto destroy = [](void* argument) {
      auto& here = *static_cast<Destroyer*>(argument);
      while (!here.added) std::this_thread::yield();  // hwt_add() has returned
      hwt_destroy(here.timer);
      here.destroyed = true;
    };
    EXPECT_NE(hwt_add(destroyer.timer, 0, destroy, &destroyer), 0u);
    const std::int64_t later = hwt_now(destroyer.timer) + kMs;
    destroyer.added = true;
    while (!destroyer.destroyed && (kind == HWT_LOOP || kind == HWT_MANUAL)) hwt_advance(destroyer.timer, later);
    EXPECT_TRUE(eventually([&] { return destroyer.destroyed.load(); }));
  }
}

TEST(CInterface, RunTurnsTheWheelOnTheCallingThread) {
  for (const int kind : kThreaded) {
    const Owner timer = make(kind);
    std::atomic<std::thread::id> worker;
    const auto note = [](void* here) {
      *static_cast<std::atomic<std::thread::id>*>(here) = std::this_thread::get_id();
    };
    std::atomic<int> returned = -1;
    std::jthread own([&] { returned = without_errno([&] { return hwt_run(timer); }); });
    EXPECT_TRUE(eventually([&] {  // the first timeout may have started a worker that run() takes over from
      EXPECT_NE(hwt_add(timer, 0, note, &worker), 0U);
      return worker.load() == own.get_id();
    }));
    EXPECT_EQ(hwt_run(timer), EDEADLK);
    EXPECT_SAYS("hwt_run: another thread is in run()");
    hwt_stats stats;
    hwt_get_stats(timer, &stats);
    EXPECT_GT(stats.busy_ns, 0);
    EXPECT_GE(stats.busy_ns, stats.in_tasks_ns);
    EXPECT_EQ(hwt_stop(timer, nullptr, nullptr), 0);
    own.join();
    EXPECT_EQ(returned, 0);
    EXPECT_EQ(hwt_run(timer), 0) << "stopped";
  }
}

TEST(CInterface, EachKindHasATickOfItsOwn) {
  hwt_options options;
  hwt_options_init(&options);
  for (const int kind : kDriven) {
    options.kind = kind;
    const Owner timer = make(options);
    const std::int64_t now = hwt_now(timer);
    hwt_add_at(timer, now, count, nullptr);
    EXPECT_LE(hwt_next(timer), now + 2 * kMs);
  }
}

TEST(CInterface, StatsHaveEachCounterUnderItsName) {
  hwt_options options = options_of(HWT_MANUAL);
  options.max_pending = 9;
  options.slow_task_ns = 1;
  const Owner timer = make(options);
  hwt_cancel(timer, add_far(timer));
  const auto slow = [](void*) { std::this_thread::sleep_for(1us); };
  for (const std::int64_t delay : {0, 0, 3}) hwt_add(timer, delay * kMs, slow, nullptr);
  for (int i = 0; i < 5; ++i) add_far(timer);
  for (int i = 0; i < 4; ++i) hwt_advance(timer, 5 * kMs);
  for (int i = 0; i < 4; ++i) EXPECT_NE(add_far(timer), 0u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(add_far(timer), 0u);
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_SAYS("hwt_add: max_pending_timeouts: 9 timeouts are pending already");
  }
  hwt_stats stats;
  std::memset(&stats, 0xFF, sizeof stats);
  hwt_get_stats(timer, &stats);
  using Figures = std::vector<std::int64_t>;
  EXPECT_EQ(
      Figures({stats.scheduled, stats.expired, stats.cancelled, stats.rejected, stats.unprocessed, stats.pending}),
      Figures({13, 3, 1, 6, 0, 9}));
  EXPECT_EQ(Figures({stats.ticks, stats.wakeups, stats.backlog, stats.slow_tasks}), Figures({2, 4, 4, 3}))
      << "five are in the wheel";
  EXPECT_EQ(Figures({stats.last_lag_ns, stats.max_lag_ns, stats.running_for_ns}), Figures({2 * kMs, 4 * kMs, 0}))
      << "the last one is from the end of the third tick";
  EXPECT_EQ(hwt_pending(timer), 9);
  hwt_stop(timer, nullptr, nullptr);
  hwt_get_stats(timer, &stats);
  EXPECT_EQ(stats.unprocessed, 9);
  EXPECT_EQ(hwt_pending(timer), 0);
}

TEST(CInterface, AnExecutorRunsTheCallbacks) {
  for (const int kind : kAll) {
    std::vector<std::jthread> threads;
    std::atomic<int> ran = 0;
    hwt_options options = options_of(kind);
    options.executor = [](void* context, hwt_callback run, void* argument) {
      static_cast<std::vector<std::jthread>*>(context)->emplace_back(run, argument);
    };
    options.executor_context = &threads;
    const Owner timer = make(options);
    for (int i = 0; i < 3; ++i) hwt_add(timer, kMs, count, &ran);
    EXPECT_TRUE(run_until(timer, kind, [&] { return ran == 3; }));
    EXPECT_EQ(hwt_stop(timer, nullptr, nullptr), 0);
    EXPECT_EQ(threads.size(), 3u);
  }
}

TEST(CInterface, ACallThatSucceedsLeavesErrnoAlone) {
  const auto spoil = [](void*) { errno = ERANGE; };
  for (const int kind : kDriven) {
    const Owner timer = make(kind);
    ASSERT_EQ(hwt_on_earlier(timer, spoil, nullptr), 0);
    hwt_next(timer);
    const hwt_id id = without_errno([&] { return hwt_add(timer, kHour, spoil, nullptr); });
    hwt_next(timer);
    EXPECT_EQ(without_errno([&] { return hwt_reschedule(timer, id, 0); }), 0);
    EXPECT_TRUE(run_until(timer, kind, [&] { return without_errno([&] { return hwt_cancel(timer, id); }) == -1; }));
    EXPECT_EQ(without_errno([&] { return hwt_stop(timer, nullptr, nullptr); }), 0);
  }
#if !defined(_WIN32)
  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  const auto interrupt = [](void* thread) {
    for (int i = 0; i < 20; ++i, std::this_thread::sleep_for(1ms))
      pthread_kill(*static_cast<pthread_t*>(thread), SIGUSR1);
  };
  pthread_t here = pthread_self();
  const Owner timer = make(HWT_HASHED_WHEEL);
  const hwt_id id = hwt_add(timer, 0, interrupt, &here);
  EXPECT_TRUE(eventually([&] { return hwt_pending(timer) == 0; }));
  EXPECT_EQ(without_errno([&] { return hwt_cancel_and_wait(timer, id); }), -1) << "a signal interrupts the wait";
#endif
}

// --- Timers that a loop drives ---------------------------------------------------------------------------------------

TEST(CInterface, ALoopSleepsUntilTheFirstCallbackAndIsWokenForAnEarlierOne) {
  const Owner timer = make(HWT_LOOP);
  std::atomic<int> ran = 0, wakeups = 0;
  ASSERT_EQ(hwt_on_earlier(timer, count, &wakeups), 0);
  add_far(timer);
  const std::int64_t next = hwt_next(timer);
  wakeups = 0;  // the first timeout may have made a call, because nothing was due before
  EXPECT_GT(next, hwt_now(timer));
  EXPECT_LE(next, hwt_now(timer) + kHour + 2 * kMs);
  EXPECT_EQ(wakeups, 0);
  std::thread([&] { hwt_add(timer, 2 * kMs, count, &ran); }).join();
  EXPECT_EQ(wakeups, 1);
  const std::int64_t soon = hwt_next(timer);
  EXPECT_LE(soon, hwt_now(timer) + 4 * kMs);
  EXPECT_LE(hwt_poll_timeout(soon), 4);
  EXPECT_TRUE(run_until(timer, HWT_LOOP, [&] { return ran == 1; }));
  ASSERT_EQ(hwt_on_earlier(timer, nullptr, nullptr), 0);
  hwt_next(timer);
  hwt_add(timer, 0, count, &ran);
  EXPECT_EQ(wakeups, 1) << "NULL ends the calls";
}

TEST(CInterface, StopOfAnotherThreadWakesALoopThatSleeps) {
  for (const int kind : kDriven) {
    const Owner timer = make(kind);
    std::atomic<int> wakeups = 0;
    add_far(timer);
    ASSERT_EQ(hwt_on_earlier(timer, count, &wakeups), 0);
    EXPECT_GT(hwt_next(timer), hwt_now(timer));
    EXPECT_EQ(wakeups, 0);
    std::thread([&] { EXPECT_EQ(hwt_stop(timer, nullptr, nullptr), 0); }).join();
    EXPECT_EQ(wakeups, 1);
    EXPECT_EQ(hwt_next(timer), HWT_NEVER);
    EXPECT_EQ(hwt_stop(timer, nullptr, nullptr), 0);
    EXPECT_EQ(wakeups, 1) << "the timer had been stopped";
  }
}

TEST(CInterface, NextRunsNoCallbackThatIsDue) {
  for (const int kind : kDriven) {
    const Owner timer = make(kind);
    std::atomic<int> ran = 0;
    hwt_add(timer, 0, count, &ran);
    const std::int64_t later = hwt_now(timer) + 2 * kMs;
    while (kind == HWT_LOOP && hwt_now(timer) < later) std::this_thread::yield();
    EXPECT_LE(hwt_next(timer), later);
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(hwt_advance(timer, later), 1);
  }
}

// --- Misuse ----------------------------------------------------------------------------------------------------------

TEST(CMisuse, NullIsRefusedByEachFunction) {
  const auto refused = [](int error, int expected, const char* text) {
    EXPECT_EQ(error, expected) << text;
    EXPECT_EQ(errno, EINVAL) << text;
    EXPECT_SAYS(text);
    errno = 0;
  };
  refused(hwt_create(nullptr, nullptr), EINVAL, "hwt_create: timer: NULL");
  refused(hwt_start(nullptr), EINVAL, "hwt_start: timer: NULL");
  refused(hwt_run(nullptr), EINVAL, "hwt_run: timer: NULL");
  refused(static_cast<int>(hwt_add(nullptr, 0, count, nullptr)), 0, "hwt_add: timer: NULL");
  refused(static_cast<int>(hwt_add_at(nullptr, 0, count, nullptr)), 0, "hwt_add_at: timer: NULL");
  refused(static_cast<int>(hwt_add_wall(nullptr, 0, count, nullptr)), 0, "hwt_add_wall: timer: NULL");
  refused(hwt_cancel(nullptr, 1), -1, "hwt_cancel: timer: NULL");
  refused(hwt_cancel_and_wait(nullptr, 1), -1, "hwt_cancel_and_wait: timer: NULL");
  refused(hwt_reschedule(nullptr, 1, 0), -1, "hwt_reschedule: timer: NULL");
  refused(hwt_reschedule_at(nullptr, 1, 0), -1, "hwt_reschedule_at: timer: NULL");
  refused(hwt_stop(nullptr, nullptr, nullptr), EINVAL, "hwt_stop: timer: NULL");
  refused(static_cast<int>(hwt_now(nullptr)), -1, "hwt_now: timer: NULL");
  refused(static_cast<int>(hwt_pending(nullptr)), -1, "hwt_pending: timer: NULL");
  refused(static_cast<int>(hwt_next(nullptr)), -1, "hwt_next: timer: NULL");
  refused(static_cast<int>(hwt_advance(nullptr, 0)), -1, "hwt_advance: timer: NULL");
  refused(hwt_on_earlier(nullptr, count, nullptr), EINVAL, "hwt_on_earlier: timer: NULL");
  hwt_stats stats;
  std::memset(&stats, 0xFF, sizeof stats);
  hwt_get_stats(nullptr, &stats);
  refused(static_cast<int>(stats.pending), 0, "hwt_get_stats: timer: NULL");
  const Owner timer = make(HWT_HASHED_WHEEL);
  hwt_get_stats(timer, nullptr);
  refused(0, 0, "hwt_get_stats: stats: NULL");
  hwt_options_init(nullptr);
  refused(0, 0, "hwt_options_init: options: NULL");
  refused(static_cast<int>(hwt_add(timer, 0, nullptr, nullptr)), 0, "hwt_add: callback: NULL");
  EXPECT_EQ(hwt_pending(timer), 0);
  hwt_destroy(nullptr);
}

TEST(CMisuse, ATimerWithoutAThreadCannotRunAndOneWithAThreadIsNotDriven) {
  for (const int kind : kDriven) {
    const Owner timer = make(kind);
    EXPECT_EQ(hwt_start(timer), 0);
    EXPECT_EQ(hwt_run(timer), EINVAL);
    EXPECT_SAYS("hwt_run: timer: it has no thread (expected: HWT_HASHED_WHEEL or HWT_HIERARCHICAL_WHEEL)");
  }
  for (const int kind : kThreaded) {
    const Owner timer = make(kind);
    EXPECT_EQ(hwt_next(timer), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_SAYS("hwt_next: timer: it has a thread (expected: HWT_LOOP or HWT_MANUAL)");
    EXPECT_EQ(hwt_advance(timer, 0), -1);
    EXPECT_EQ(hwt_on_earlier(timer, count, nullptr), EINVAL);
  }
}

TEST(CMisuse, NullOptionsAreTheDefaults) {
  hwt_timer* timer = nullptr;
  ASSERT_EQ(hwt_create(nullptr, &timer), 0);
  const Owner owner(timer);
  EXPECT_EQ(hwt_start(timer), 0);
  EXPECT_EQ(hwt_start(timer), 0) << "again";
  hwt_options options;
  hwt_options_init(&options);
  EXPECT_EQ(options.size, sizeof options);
  EXPECT_EQ(options.kind, HWT_HASHED_WHEEL);
  EXPECT_EQ(options.tick_ns, HWT_DEFAULT_TICK);
  EXPECT_EQ(options.ticks_per_wheel, 512u);
  EXPECT_LE(options.max_pending, 0);
}

TEST(CMisuse, AnOptionOutOfRangeIsNamedWithItsValue) {
  using Options = hwt_options;
  using Row = std::pair<void (*)(Options&), const char*>;
  for (const auto& [change, text] :
       {Row{[](Options& options) { options.size = 0; }, "hwt_create: size: 0 (expected: "},
        Row{[](Options& options) { options.size = 7; }, "hwt_create: size: 7 (expected: "},
        Row{[](Options& options) { options.size = sizeof options + 8; }, "(expected: "},
        Row{[](Options& options) { options.kind = 4; }, "hwt_create: kind: 4 (expected: 0 .. 3)"},
        Row{[](Options& options) { options.kind = -1; }, "hwt_create: kind: -1 (expected: 0 .. 3)"},
        Row{[](Options& options) { options.tick_ns = 0; }, "tick_duration: 0 ns (expected: "},
        Row{[](Options& options) { options.tick_ns = -2; }, "tick_duration: -2 ns (expected: "},
        Row{[](Options& options) { options.tick_ns = HWT_NEVER / options.ticks_per_wheel; },
            " for a wheel of 512 ticks)"},
        Row{[](Options& options) { options.ticks_per_wheel = 0; }, "ticks_per_wheel: 0 (expected: "},
        Row{[](Options& options) { options.slow_task_ns = -1; }, "slow_task: -1 ns (expected: "}}) {
    Options options = options_of(HWT_HASHED_WHEEL);
    change(options);
    auto* timer = reinterpret_cast<hwt_timer*>(&options);
    EXPECT_EQ(hwt_create(&options, &timer), EINVAL);
    EXPECT_EQ(timer, nullptr);
    EXPECT_SAYS(text);
  }
}

TEST(CMisuse, ATickBelowTheShortestOfItsKindIsRaisedWithALine) {
  const auto line_of = [](int kind, std::int64_t tick_ns) {
    hwt_options options = options_of(kind);
    options.tick_ns = tick_ns;
    testing::internal::CaptureStderr();
    make(options);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(line_of(HWT_HASHED_WHEEL, kMs - 1).find("is below 1 ms; using 1 ms"), std::string::npos);
  EXPECT_NE(line_of(HWT_HIERARCHICAL_WHEEL, 999).find("is below 1 us; using 1 us"), std::string::npos);
  EXPECT_EQ(line_of(HWT_HASHED_WHEEL, 999).find("using 1 us"), std::string::npos)
      << "a hashed wheel has one shortest tick, 1 ms";
  EXPECT_EQ(line_of(HWT_HASHED_WHEEL, kMs), "");
  EXPECT_EQ(line_of(HWT_HIERARCHICAL_WHEEL, 1000), "");
  for (const int kind : kDriven) EXPECT_EQ(line_of(kind, 1), "");
}

TEST(CMisuse, ATickMayBeAsLongAsTimeUnlessTheWheelIsHashed) {
  for (const int kind : kAll) {
    hwt_options options = options_of(kind);
    options.tick_ns = kind == HWT_HASHED_WHEEL ? HWT_NEVER / options.ticks_per_wheel - 1 : HWT_NEVER;
    make(options);
  }
}

/// A structure of a later version.
template <class T>
struct Longer {
  Longer() noexcept { std::memset(static_cast<void*>(this), 0x5A, sizeof *this); }
  T known;
  std::int64_t newer;
};

TEST(CMisuse, OptionsOfAnUnknownSizeAreLeftAlone) {
  Longer<hwt_options> place;
  hwt_options_init_sized(&place.known, sizeof place);
  EXPECT_EQ(place.known.size, sizeof place);
  EXPECT_EQ(place.newer, 0x5A5A5A5A5A5A5A5A);
  EXPECT_EQ(place.known.kind, 0x5A5A5A5A);
  hwt_timer* timer = nullptr;
  EXPECT_EQ(hwt_create(&place.known, &timer), EINVAL);
}

TEST(CMisuse, StatsOfAnotherVersionAreFilledAsFarAsKnown) {
  const Owner timer = make(HWT_MANUAL);
  add_far(timer);
  Longer<hwt_stats> place, part;
  hwt_get_stats_sized(timer, &place.known, sizeof place);
  EXPECT_EQ(place.known.pending, 1);
  EXPECT_EQ(place.newer, 0);
  hwt_get_stats_sized(timer, &part.known, sizeof(std::int64_t));
  EXPECT_EQ(part.known.scheduled, 1);
  EXPECT_EQ(part.known.expired, 0x5A5A5A5A5A5A5A5A);
}

TEST(CMisuse, AnyNumberMayBeAnId) {
  for (const int kind : kAll) {
    const Owner timer = make(kind);
    const Owner other = make(kind);
    const hwt_id foreign = add_far(other);
    const hwt_id live = add_far(timer);
    for (const hwt_id id : {hwt_id{0}, hwt_id{1}, ~hwt_id{0}, live ^ 1, live + (hwt_id{1} << 40), foreign}) {
      EXPECT_EQ(hwt_cancel(timer, id), -1) << id;
      EXPECT_EQ(hwt_cancel_and_wait(timer, id), -1) << id;
      EXPECT_EQ(hwt_reschedule(timer, id, kMs), -1) << id;
    }
    EXPECT_EQ(hwt_pending(timer), 1);
    EXPECT_EQ(hwt_pending(other), 1);
  }
}

TEST(CMisuse, OnlyACallOfTheThreadThatFailsChangesTheLine) {
  for (const int kind : kAll) {
    const Owner timer = make(kind);
    const std::string line = "hwt_add: callback: NULL (expected: a function)";
    ASSERT_EQ(hwt_add(timer, 0, nullptr, nullptr), 0u);
    const hwt_id gone = add_far(timer);
    EXPECT_EQ(hwt_cancel(timer, gone), 0);
    EXPECT_EQ(hwt_last_error(), line) << "a success";
    std::thread([] {
      EXPECT_STREQ(hwt_last_error(), "");
      EXPECT_EQ(hwt_cancel(nullptr, 1), -1);
    }).join();
    EXPECT_EQ(hwt_last_error(), line) << "of this thread";
    for (const hwt_id stale : {hwt_id{0}, gone}) {
      EXPECT_EQ(hwt_cancel(timer, stale), -1);
      EXPECT_EQ(hwt_last_error(), line) << "hwt_cancel() of " << stale;
      EXPECT_EQ(hwt_cancel_and_wait(timer, stale), -1);
      EXPECT_EQ(hwt_last_error(), line) << "hwt_cancel_and_wait() of " << stale;
    }
    EXPECT_EQ(hwt_reschedule(timer, gone, 0), -1);
    EXPECT_EQ(hwt_last_error(),
              "hwt_reschedule: id: " + std::to_string(gone) + " (expected: that of a pending timeout)");
  }
}

/// The exceptions of the C++ library name C++ functions, so the C interface must replace these names.
TEST(CMisuse, AMessageNamesOnlyTheFunctionOfC) {
  for (const int kind : kAll) {
    const Owner timer = make(kind);
    struct Inside {
      hwt_timer* timer;
      bool driven;
      std::atomic<bool> ran{false};
    } inside{timer, kind == HWT_LOOP || kind == HWT_MANUAL};
    const auto misuse = [](void* argument) {
      auto& here = *static_cast<Inside*>(argument);
      EXPECT_EQ(hwt_stop(here.timer, nullptr, nullptr), EDEADLK);
      EXPECT_STREQ(hwt_last_error(), "hwt_stop: cannot be called from inside a task");
      if (here.driven) {
        const std::int64_t next = hwt_next(here.timer);
        EXPECT_LE(next, hwt_now(here.timer));
        EXPECT_EQ(hwt_advance(here.timer, HWT_NEVER), -1);
        EXPECT_EQ(errno, EDEADLK);
        EXPECT_STREQ(hwt_last_error(), "hwt_advance: cannot be called from inside a task");
        EXPECT_EQ(hwt_on_earlier(here.timer, nullptr, nullptr), EDEADLK);
        EXPECT_STREQ(hwt_last_error(), "hwt_on_earlier: cannot be called from inside a task");
      }
      here.ran = true;
    };
    ASSERT_NE(hwt_add(timer, 0, misuse, &inside), 0u);
    EXPECT_TRUE(run_until(timer, kind, [&] { return inside.ran.load(); }));
    EXPECT_EQ(hwt_stop(timer, nullptr, nullptr), 0);
    if (!inside.driven) {
      EXPECT_EQ(hwt_start(timer), ECANCELED);
      EXPECT_STREQ(hwt_last_error(), "hwt_start: the timer has been stopped");
    }
    EXPECT_EQ(hwt_add_at(timer, 0, count, nullptr), 0u);
    EXPECT_STREQ(hwt_last_error(), "hwt_add_at: the timer has been stopped");
    EXPECT_EQ(hwt_add_at(timer, 0, count, nullptr), 0u);
    EXPECT_EQ(hwt_cancel(nullptr, 1), -1);
    EXPECT_SAYS("hwt_cancel: timer: NULL") << "the later of two errors";
  }
}

// --- No memory -------------------------------------------------------------------------------------------------------

/// Calls the function without memory, and returns its result.
template <class Function>
std::int64_t without_memory(Function&& function) {
  errno = 0;
  const auto result = static_cast<std::int64_t>(hwt::test::without_memory(function));
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_SAYS("out of memory");
  return result;
}

TEST(CMemory, CreatingATimer) {
  for (const int kind : kAll) {
    hwt_options options = options_of(kind);
    auto* timer = reinterpret_cast<hwt_timer*>(&options);
    EXPECT_EQ(without_memory([&] { return hwt_create(&options, &timer); }), ENOMEM);
    EXPECT_EQ(timer, nullptr);
  }
}

TEST(CMemory, DestroyingATimerFreesAllOfIt) {
  for (const int kind : kAll) {
    const auto live = [&] {
      const Owner timer = make(kind);
      for (int i = 0; i < 100; ++i) ASSERT_NE(add_far(timer), 0u);
    };
    live();  // this thread keeps some memory for its next timer
    const std::int64_t before = hwt::test::bytes_in_use;
    live();
    EXPECT_EQ(hwt::test::bytes_in_use, before) << kind;
  }
}

TEST(CMemory, AddingEachTimeoutAlsoWithoutMemory) {
  const Owner timer = make(HWT_MANUAL);
  int added = 0, refused = 0;
  for (; added < 3000; ++added) {
    ASSERT_NE(add_far(timer), 0u);
    hwt_next(timer);  // it goes to the wheel, and only its node stays in use
    errno = 0;
    const hwt_id id = hwt::test::without_memory([&] { return add_far(timer); });
    if (id != 0) {
      EXPECT_EQ(hwt_cancel(timer, id), 0);
    } else {
      EXPECT_EQ(errno, ENOMEM);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(hwt_pending(timer), added);
}

TEST(CMemory, StartingTheWorker) {
  const Owner timer = make(HWT_HASHED_WHEEL);
  EXPECT_EQ(without_memory([&] { return hwt_start(timer); }), ENOMEM);
  EXPECT_EQ(without_memory([&] { return add_far(timer); }), 0);
  EXPECT_EQ(hwt_start(timer), 0);
}

TEST(CMemory, MovingATimeoutToAnEarlierTime) {
  const Owner timer = make(HWT_MANUAL);
  std::atomic<int> ran = 0;
  const hwt_id id = hwt_add(timer, kHour, count, &ran);
  hwt_advance(timer, kMs);  // it is in the wheel now
  EXPECT_EQ(without_memory([&] { return hwt_reschedule(timer, id, kMs); }), -1);
  EXPECT_EQ(hwt_advance(timer, kHour / 2), 0) << "nothing has changed";
  EXPECT_EQ(hwt_reschedule(timer, id, kMs), 0);
  EXPECT_EQ(hwt_advance(timer, kHour / 2 + 2 * kMs), 1);
}

TEST(CMemory, Stopping) {
  const Owner timer = make(HWT_MANUAL);
  int freed = 0;
  for (int i = 0; i < 100; ++i) hwt_add(timer, kHour, must_not_run, &freed);
  const auto free_it = [](void*, hwt_callback, void* argument) { ++*static_cast<int*>(argument); };
  EXPECT_EQ(without_memory([&] { return hwt_stop(timer, free_it, nullptr); }), ENOMEM);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(hwt_stop(timer, free_it, nullptr), 0) << "once more";
  EXPECT_EQ(freed, 100);
}

// The timer is HWT_MANUAL, so the thread that calls hwt_advance() is its worker.
TEST(CMemory, HandingACallbackToTheExecutorRunsItOnTheWorker) {
  hwt_options options = options_of(HWT_MANUAL);
  options.executor = [](void* context, hwt_callback run, void* argument) {
    ++*static_cast<int*>(context);
    run(argument);
  };
  int given = 0;
  options.executor_context = &given;
  std::atomic<int> ran = 0;
  const Owner timer = make(options);
  for (int i = 0; i < 2; ++i) hwt_add(timer, i * 2 * kMs, count, &ran);
  hwt_next(timer);  // they are in the wheel now
  hwt::test::without_memory([&] { hwt_advance(timer, kMs); });
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(given, 0);
  hwt_advance(timer, 3 * kMs);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(given, 1);
}

#if !defined(_WIN32)
TEST(CDeathTest, AFunctionThatThrowsEndsTheProgramWithALine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto dies = [](const char* line, int kind, const std::function<void(hwt_timer*)>& use, auto... executor) {
    hwt_options options = options_of(kind);
    ((options.executor = executor), ...);
    EXPECT_DEATH((hwt::test::count_until_abort(), use(make(options))),
                 std::string("a callback of the C interface ") + line);
  };
  constexpr char kMistake[] = "threw: a mistake\n";
  const auto throws = [](void*) { throw std::runtime_error("a mistake"); };
  const auto throws_with_three = [](void*, hwt_callback, void*) { throw std::runtime_error("a mistake"); };
  const auto run = [](hwt_timer* timer, int kind, hwt_callback callback) {
    hwt_add(timer, 0, callback, nullptr);
    run_until(timer, kind, [] { return false; });
  };
  dies(kMistake, HWT_HASHED_WHEEL, [&](hwt_timer* timer) { run(timer, HWT_HASHED_WHEEL, throws); });
  dies(kMistake, HWT_MANUAL, [&](hwt_timer* timer) { run(timer, HWT_MANUAL, throws); });
  dies("threw\n", HWT_MANUAL, [&](hwt_timer* timer) { run(timer, HWT_MANUAL, [](void*) { throw 1; }); });
  const auto handed = [&](hwt_timer* timer) { run(timer, HWT_MANUAL, must_not_run); };
  dies(kMistake, HWT_MANUAL, handed, throws_with_three);
  dies(kMistake, HWT_MANUAL, [&](hwt_timer* timer) { add_far(timer), hwt_stop(timer, throws_with_three, nullptr); });
  dies(kMistake, HWT_MANUAL, [&](hwt_timer* timer) {
    hwt_on_earlier(timer, throws, nullptr);
    hwt_next(timer);
    hwt_add(timer, 0, must_not_run, nullptr);
  });
}

bool refused(std::int64_t result, std::int64_t expected) {
  return result == expected && std::exchange(errno, 0) == EPERM;
}

template <class F>
bool holds_in_child(F f) {
  return hwt::test::status_of_child([&] { return f() ? 0 : 1; }) == 0;
}

TEST(CMisuse, AChildThatACallbackForksCannotUseTheTimerInsideTheCallback) {
  for (const int kind : kDriven) {
    const Owner timer = make(kind);
    const auto fork_here = [](void* argument) {
      auto* const inherited = static_cast<hwt_timer*>(argument);
      EXPECT_TRUE(holds_in_child([&] {
        return hwt_advance(inherited, kHour) == -1 && hwt_on_earlier(inherited, nullptr, nullptr) == EDEADLK &&
               hwt_next(inherited) != -1 && refused(hwt_pending(inherited), -1);
      }));
    };
    const hwt_id id = hwt_add(timer, 0, fork_here, timer.get());
    EXPECT_TRUE(run_until(timer, kind, [&] { return hwt_cancel(timer, id) == -1; }));
    EXPECT_TRUE(holds_in_child([&] { return hwt_next(timer) != -1 && hwt_pending(timer) == 0; }));
  }
}

// A child of a program with threads must not make threads under a sanitizer; this one makes none.
TEST(CMisuse, AForkedChildIsRefusedTheTimersInUseUnlessItTurnsThem) {
  const Owner timer = make(HWT_HASHED_WHEEL);
  const Owner unused = make(HWT_HASHED_WHEEL);
  const hwt_id id = add_far(timer);
  const Owner loop = make(HWT_LOOP);
  const hwt_id in_loop = add_far(loop);
  const Owner manual = make(HWT_MANUAL);
  hwt_add(manual, 0, [](void* inherited) { add_far(static_cast<hwt_timer*>(inherited)); }, manual.get());
  EXPECT_TRUE(holds_in_child([&, inherited = timer.get()] {
    const bool right = refused(static_cast<std::int64_t>(hwt_add(inherited, kMs, must_not_run, nullptr)), 0) &&
                       refused(hwt_cancel(inherited, id), -1) && refused(hwt_cancel_and_wait(inherited, id), -1) &&
                       refused(hwt_reschedule(inherited, id, kMs), -1) && refused(hwt_now(inherited), -1) &&
                       refused(hwt_pending(inherited), -1) && says("in use by the parent of this process") &&
                       refused(hwt_start(inherited), EPERM) && refused(hwt_run(inherited), EPERM) &&
                       hwt_stop(inherited, nullptr, nullptr) == 0 && hwt_pending(unused) == 0 &&
                       refused(hwt_cancel(loop, in_loop), -1) && hwt_next(loop) != -1 &&
                       hwt_cancel(loop, in_loop) == 0 && hwt_advance(manual, kMs) == 1 && hwt_pending(manual) == 1;
    hwt_destroy(inherited);
    return right;
  }));
  EXPECT_EQ(hwt_cancel(timer, id), 0) << "the parent goes on";
}
#endif

}  // namespace
