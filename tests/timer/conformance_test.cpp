// The promises of every Timer: the same tests for timers with a worker and for timers that the test drives.

#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

using std::chrono::nanoseconds;

/// A HierarchicalWheelTimer, but with a tick of 1 us.
struct ShortTicks {};

/// A timer of one kind with a tick of kTick, and how time passes for it.
template <class Kind>
class Rig {
 public:
  static constexpr bool kShort = std::is_same_v<Kind, ShortTicks>;
  static constexpr nanoseconds kTick = kShort ? nanoseconds(1us) : nanoseconds(1ms);
  using T = std::conditional_t<kShort, HierarchicalWheelTimer, Kind>;

  explicit Rig(Options options = {}) {
    if constexpr (kShort) {
      options.tick_duration = kTick;
      timer_ = std::make_unique<T>(options);
    } else {
      timer_ = make_timer<T>(options);
    }
  }

  Timer& operator*() { return *timer_; }
  Timer* operator->() { return timer_.get(); }

  /// Lets time pass until the condition holds.
  template <class Condition>
  [[nodiscard]] bool until(Condition condition) {
    return condition() || passes_until(*timer_, condition);
  }

  /// Lets at least so much time pass.
  void pass(nanoseconds time) {
    const auto end = timer_->now() + time;
    EXPECT_TRUE(until([&] { return timer_->now() >= end; }));
  }

  /// Holds a worker inside a task until the result is destroyed. The worker finds all timeouts that are scheduled
  /// meanwhile at once.
  [[nodiscard]] std::unique_ptr<Gate> hold() { return hold_worker(*timer_); }

  /// Waits until all earlier timeouts and cancels have reached the wheel, and due tasks have run.
  void settle() { test::settle(*timer_); }

 private:
  std::unique_ptr<T> timer_;
};

template <class T>
class Conformance : public ::testing::Test {};

using Timers = ThreadedTimersAnd<ShortTicks, ManualTimer, LoopTimer>;

struct Names {
  template <class T>
  static std::string GetName(int number) {
    return std::is_same_v<T, ShortTicks> ? "ShortTicks" : TimerNames::GetName<T>(number);
  }
};

TYPED_TEST_SUITE(Conformance, Timers, Names);

TYPED_TEST(Conformance, AnEarlierTickRunsFirst) {
  std::vector<int> order;
  std::atomic<bool> done = false;
  Rig<TypeParam> timer;
  {
    // Otherwise a worker that wakes up late may find some of them overdue. It runs those in the order of scheduling.
    const auto held = timer.hold();
    const auto start = timer->now();
    for (const int ms : {60, 5, 40, 20}) timer->new_timeout([&order, ms] { order.push_back(ms); }, start + ms * 1ms);
    timer->new_timeout([&] { done = true; }, start + 100ms);
  }
  ASSERT_TRUE(timer.until([&] { return done.load(); }));
  EXPECT_EQ(order, (std::vector<int>{5, 20, 40, 60}));
}

using Time = steady_clock::time_point;

/// Deadlines in the past, now, near, far and never.
std::vector<Time> deadlines_around(Time now) {
  return {Time::min(), Time::min() + 1ns, Time(),   now - 1h,         now - 1ns,         now,
          now + 1ns,   now + 3ms,         now + 1h, Time::max() - 1h, Time::max() - 1ns, Time::max()};
}

TYPED_TEST(Conformance, ADeadlineIsKeptAsItWasPassed) {
  const auto shared = std::make_shared<RecordingTask>();
  Rig<TypeParam> timer;
  for (const Time deadline : deadlines_around(timer->now())) {
    EXPECT_EQ(timer->new_timeout([] {}, deadline).deadline(), deadline);
    EXPECT_EQ(timer->new_timeout(shared, deadline).deadline(), deadline);
    EXPECT_EQ(timer->try_new_timeout([] {}, deadline).deadline(), deadline);
    EXPECT_EQ(timer->try_new_timeout(shared, deadline).deadline(), deadline);
    for (const bool in_the_wheel : {false, true}) {
      Timeout moved = timer->new_timeout([] {}, kFar);
      if (in_the_wheel) timer.settle();
      EXPECT_TRUE(moved.reschedule(deadline));
      EXPECT_EQ(moved.deadline(), deadline);
    }
  }
}

TYPED_TEST(Conformance, ANegativeDelayOrAPassedDeadlineIsDueNowAndTheEndOfTimeIsNever) {
  std::atomic<int> due = 0, never = 0;
  const auto shared = std::make_shared<RecordingTask>();
  Rig<TypeParam> timer;
  const Time now = timer->now();
  const std::array<When, 8> past{-1h, nanoseconds::min(), 0s, Time::min(), Time(), now - 1h, now - 1ns, now};
  for (const When when : past) {
    timer->new_timeout([&] { ++due; }, when);
    timer->new_timeout(shared, when);
  }
  const auto infinite = std::chrono::duration<double>(std::numeric_limits<double>::infinity());
  const std::array<When, 4> endless{nanoseconds::max(), std::chrono::hours::max(), infinite, Time::max()};
  for (const When when : endless) EXPECT_EQ(timer->new_timeout([&] { ++never; }, when).deadline(), Time::max());
  timer->new_timeout([&] { ++never; }, Time::max() - 1ns);
  timer.settle();
  EXPECT_EQ(due, static_cast<int>(past.size())) << "no later than a delay of zero that came after them";
  EXPECT_EQ(shared->runs, static_cast<int>(past.size()));
  EXPECT_EQ(never, 0);
  EXPECT_EQ(timer->pending_timeouts(), static_cast<std::int64_t>(endless.size()) + 1);
}

/// Nothing else is pending, so only these timeouts can have woken the worker.
TYPED_TEST(Conformance, APastDeadlineAndOneMovedThereNeedNoOtherTimeoutToRun) {
  std::atomic<int> runs = 0;
  Rig<TypeParam> timer;
  for (int i = 0; i < 20; ++i) {
    timer.settle();
    timer->new_timeout([&] { ++runs; }, i % 2 == 0 ? Time::min() : timer->now() - 1ms);
    EXPECT_TRUE(timer.until([&] { return runs == 2 * i + 1; }));
    Timeout moved = timer->new_timeout([&] { ++runs; }, Time::max());
    if (i % 4 < 2) timer.settle();
    EXPECT_TRUE(moved.reschedule(i % 2 == 0 ? Time::min() : timer->now() - 1ms));
    EXPECT_TRUE(timer.until([&] { return runs == 2 * i + 2; }));
  }
}

/// By rising delays, near and far at once, so that those far away come down among those that are near. And by past,
/// equal and rising deadlines of one thread, while some of them come to lie in the past.
TYPED_TEST(Conformance, TimeoutsWithDeadlinesThatDoNotFallRunInThatOrder) {
  constexpr int kTimeouts = 2000;
  for (const bool by_delay : {true, false}) {
    std::vector<int> order;
    std::atomic<int> ran = 0;
    Rig<TypeParam> timer;
    const Time base = timer->now() - 5ms;
    for (int i = 0; i < kTimeouts; ++i) {
      const Time deadline = i < 100 ? Time::min() + i * 1h : base + i / 4 * 100us;
      after(*timer, by_delay ? When(i * 100us) : When(deadline), [&, i, deadline](Timeout& self) {
        EXPECT_TRUE(by_delay || self.deadline() == deadline);
        EXPECT_GE(timer->now(), self.deadline());
        order.push_back(i);
        ++ran;
      });
      if (i % 500 == 0) timer.settle();
    }
    EXPECT_TRUE(timer.until([&] { return ran == kTimeouts; }));
    EXPECT_EQ(order.size(), std::size_t{kTimeouts});
    EXPECT_TRUE(std::ranges::is_sorted(order));
  }
}

TYPED_TEST(Conformance, TasksThatScheduleThemselvesInThePastLetTimePass) {
  std::atomic<int> runs = 0;
  std::atomic<bool> other_ran = false;
  Rig<TypeParam> timer;
  std::function<void()> again = [&] {
    ++runs;
    if (!other_ran) timer->new_timeout(again, Time::min());
  };
  const Time before = timer->now();
  timer->new_timeout(again, Time::min());
  timer->new_timeout([&] { other_ran = true; }, 20ms);
  EXPECT_TRUE(timer.until([&] { return other_ran.load(); }));
  timer.settle();
  EXPECT_GT(runs, 1);
  EXPECT_LE(runs, (timer->now() - before) / Rig<TypeParam>::kTick + 2) << "no more than once in a tick";
}

TYPED_TEST(Conformance, ANewDeadlineHoldsLaterEarlierAndForNeverAndLetsTheTimeoutBeCancelled) {
  std::atomic<int> runs = 0, early = 0;
  const auto task = [&](Timeout& self) {
    ++runs;
    if (self.timer()->now() < self.deadline()) ++early;
  };
  Rig<TypeParam> timer;
  for (const auto& [in_the_wheel, by_delay] : {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
    runs = 0;
    Timeout never = timer->new_timeout(task, timer->now() + 1h);
    Timeout earlier = timer->new_timeout(task, Time::max());
    Timeout same = timer->new_timeout(task, timer->now() + 20ms);
    Timeout later = timer->new_timeout(task, timer->now() + 1h);
    if (in_the_wheel) timer.settle();
    const Time deadline = timer->now() + 60ms;
    const auto near = [&, delayed = by_delay] { return delayed ? When(deadline - timer->now()) : When(deadline); };
    EXPECT_TRUE(never.reschedule(Time::max()));
    EXPECT_TRUE(earlier.reschedule(near()));
    EXPECT_TRUE(later.reschedule(later.deadline() + 1h));
    static_cast<void>(same.reschedule(same.deadline()));  // false if this thread was held up
    EXPECT_TRUE(later.reschedule(near()));
    EXPECT_TRUE(timer.until([&] { return earlier.is_expired() && later.is_expired() && same.is_expired(); }));
    EXPECT_GE(timer->now(), deadline);
    timer.settle();
    EXPECT_EQ(runs, 3);
    EXPECT_FALSE(earlier.reschedule(Time::max()));
    EXPECT_TRUE(never.cancel());
    EXPECT_FALSE(never.reschedule(Time::min()));
    EXPECT_EQ(never.deadline(), Time::max());
  }
  EXPECT_EQ(early, 0);
  EXPECT_FALSE(Timeout().reschedule(Time::max()));
}

TYPED_TEST(Conformance, CancelIsTrueOnceAndThenTheTaskNeverRuns) {
  std::atomic<int> ran = 0;
  int too_late = 0;  // where this thread was held up until the task had run
  Rig<TypeParam> timer;
  for (const bool in_the_wheel : {false, true}) {
    Timeout timeout;
    bool cancelled = false;
    for (int attempt = 0; attempt < 100 && !cancelled; ++attempt) {
      timeout = timer->new_timeout([&] { ++ran; }, 50ms);
      if (in_the_wheel) timer.settle();
      EXPECT_FALSE(timeout.is_cancelled());
      cancelled = timeout.cancel();
      EXPECT_NE(cancelled, timeout.is_expired());
      too_late += cancelled ? 0 : 1;
    }
    EXPECT_TRUE(cancelled);
    Timeout other = timeout;
    EXPECT_FALSE(timeout.cancel());
    EXPECT_FALSE(other.cancel());
    EXPECT_TRUE(other.is_cancelled());
    EXPECT_FALSE(other.is_expired());
  }
  EXPECT_EQ(timer->pending_timeouts(), 0);
  timer.pass(60ms);
  timer.settle();
  EXPECT_EQ(ran, too_late);
}

TYPED_TEST(Conformance, AnExpiredTimeoutCannotBeCancelledOrMoved) {
  std::atomic<bool> done = false;
  Timeout seen;
  Rig<TypeParam> timer;
  Timeout timeout = after(*timer, 1ms, [&](Timeout& self) {
    seen = self;
    EXPECT_TRUE(self.is_expired());
    EXPECT_FALSE(self.cancel());
    EXPECT_FALSE(self.reschedule(1s) || self.reschedule(-1s));
    EXPECT_EQ(timer->pending_timeouts(), 0) << "a running task is not pending";
    done = true;
  });
  EXPECT_TRUE(timer.until([&] { return done.load(); }));
  EXPECT_EQ(seen, timeout);
  EXPECT_TRUE(timeout.is_expired());
  EXPECT_FALSE(timeout.is_cancelled());
  EXPECT_FALSE(timeout.cancel());
  const Time deadline = timeout.deadline();
  EXPECT_FALSE(timeout.reschedule(1s));
  EXPECT_EQ(timeout.deadline(), deadline);
}

TYPED_TEST(Conformance, ExceptionsReachTheHandlerAndTheTimerGoesOn) {
  std::atomic<int> errors = 0, runs = 0;
  Rig<TypeParam> timer({.on_task_error = [&](const std::exception_ptr& error, const Timeout& timeout) {
    EXPECT_TRUE(timeout.is_expired());
    EXPECT_THROW(std::rethrow_exception(error), std::runtime_error);
    ++errors;
  }});
  for (int i = 0; i < 3; ++i) {
    timer->new_timeout([] { throw std::runtime_error("on purpose"); }, 1ms);
    timer->new_timeout([&] { ++runs; }, 1ms);
  }
  EXPECT_TRUE(timer.until([&] { return runs == 3 && errors == 3; }));
}

TYPED_TEST(Conformance, BadArgumentsAreRefusedAndNothingIsPending) {
  Rig<TypeParam> timer;
  const Time far = timer->now() + kFar;
  for (const When when : {When(1ms), When(far)}) {
    const auto expect_refused = [&](const auto& task) {
      EXPECT_THROW(timer->new_timeout(task, when), std::invalid_argument);
      EXPECT_FALSE(timer->try_new_timeout(task, when));
    };
    expect_refused(std::function<void()>());
    expect_refused(std::function<void(Timeout&)>());
    expect_refused(static_cast<void (*)()>(nullptr));
    expect_refused(std::shared_ptr<TimerTask>());
  }
  const auto nothing = [] {};
  EXPECT_THROW(timer->new_timeout(nothing, kNanDelay), std::invalid_argument);
  static_assert(noexcept(std::declval<Timer&>().try_new_timeout(nothing, far)));
  static_assert(noexcept(std::declval<Timer&>().try_new_timeout(std::shared_ptr<TimerTask>(), far)));
  EXPECT_EQ(timer->stats().scheduled, 0);
  Timeout timeout = timer->new_timeout(nothing, far);
  EXPECT_THROW(timeout.reschedule(kNanDelay), std::invalid_argument);
  EXPECT_EQ(timer->pending_timeouts(), 1);
  EXPECT_EQ(timer->stop().size(), 1u);
  for (const Time deadline : deadlines_around(timer->now())) {
    const auto shared = std::make_shared<RecordingTask>();
    EXPECT_THROW(timer->new_timeout(nothing, deadline), IllegalState);
    EXPECT_THROW(timer->new_timeout(shared, deadline), IllegalState);
    EXPECT_FALSE(timer->try_new_timeout(nothing, deadline) || timer->try_new_timeout(shared, deadline));
    EXPECT_FALSE(timeout.reschedule(deadline));
    EXPECT_EQ(timeout.deadline(), far);
  }
  EXPECT_EQ(timer->pending_timeouts(), 0);
}

TYPED_TEST(Conformance, StopReturnsPendingTimeoutsCancelledAndRefusesFromThenOn) {
  std::atomic<int> ran = 0;
  const auto in_wheel = std::make_shared<RecordingTask>();
  const auto queued = std::make_shared<RecordingTask>();
  Rig<TypeParam> timer;
  for (int i = 0; i < 9; ++i) timer->new_timeout([&] { ++ran; }, kFar + i * 1h);
  timer->new_timeout(in_wheel, kFar);
  timer->new_timeout([&] { ++ran; }, kFar).cancel();
  timer.settle();
  timer->new_timeout(queued, kFar);
  const int before = ran;
  std::vector<Timeout> pending = timer->stop();
  EXPECT_EQ(pending.size(), 11u);
  for (Timeout& timeout : pending) {
    EXPECT_TRUE(timeout.is_cancelled());
    EXPECT_FALSE(timeout.cancel());
    EXPECT_FALSE(timeout.reschedule(1ms));
    EXPECT_EQ(timeout.timer(), &*timer) << "stopped, not gone";
  }
  for (const auto& task : {in_wheel, queued}) {
    EXPECT_EQ(task->cancellations, 1);
    EXPECT_TRUE(task->saw_cancelled);
    EXPECT_EQ(task->runs, 0);
  }
  pending.clear();
  EXPECT_EQ(in_wheel.use_count() + queued.use_count(), 2) << "a stopped timer keeps no tasks";
  EXPECT_EQ(timer->pending_timeouts(), 0);
  EXPECT_TRUE(timer->stop().empty());
  EXPECT_THROW(timer->new_timeout([&] { ++ran; }, 1ms), IllegalState);
  EXPECT_FALSE(timer->try_new_timeout([&] { ++ran; }, 1ms));
  EXPECT_EQ(ran, before);
}

TYPED_TEST(Conformance, StopWaitsForTheTaskThatRunsAndNoFurtherOneStarts) {
  Hold hold;
  std::atomic<bool> finished = false;
  std::atomic<int> later = 0;
  std::size_t returned = 0;
  Rig<TypeParam> timer;
  {
    const auto held = timer.hold();
    const Time due = timer->now();  // of all, which therefore lie in one bucket
    after(*timer, due, [&] {
      hold();
      finished = true;
    });
    for (int i = 0; i < 10; ++i) timer->new_timeout([&] { ++later; }, due);
  }
  std::thread driver([&] {
    if constexpr (std::is_same_v<TypeParam, ManualTimer>) {
      EXPECT_EQ(static_cast<ManualTimer&>(*timer).advance(1s), 1u);
    } else {
      EXPECT_TRUE(timer.until([&] { return finished.load(); }));
    }
  });
  EXPECT_TRUE(hold.wait_until_entered());
  std::thread stopper([&] {
    returned = timer->stop().size();
    EXPECT_TRUE(finished);
  });
  wait_until_refusing(*timer);
  hold.let_go();
  driver.join();
  stopper.join();
  EXPECT_EQ(returned, 10u);
  EXPECT_EQ(later, 0);
}

TYPED_TEST(Conformance, ATimeoutThatRacesStopIsRefusedOrReturned) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> accepted = 0;
    std::atomic<std::size_t> returned = 0;
    Rig<TypeParam> timer;
    timer->new_timeout([] {}, kFar);
    run_together(3, [&](int thread) {
      if (thread == 0) {
        while (accepted < round) std::this_thread::yield();
        returned = timer->stop().size();
      } else {
        while (timer->try_new_timeout([] {}, kFar)) ++accepted;
      }
    });
    ASSERT_EQ(returned, static_cast<std::size_t>(accepted) + 1);
    ASSERT_EQ(timer->pending_timeouts(), 0);
  }
}

TYPED_TEST(Conformance, StopInsideATaskOrCancelledIsRefused) {
  std::atomic<int> refused = 0;
  Rig<TypeParam> timer;
  const auto stop = [&] { refused += throws<IllegalState>([&] { timer->stop(); }) ? 1 : 0; };
  timer->new_timeout(stop, 1ms);
  timer->new_timeout(on_cancelled(stop), kFar).cancel();
  EXPECT_TRUE(timer.until([&] { return refused == 2; }));
  timer->new_timeout([] {}, 1ms);
}

TYPED_TEST(Conformance, EveryTimeoutHasExactlyOneFate) {
  constexpr int kThreads = 3, kPerThread = 4000;
  std::array<std::vector<std::atomic<int>>, kThreads> fates;
  for (auto& of_thread : fates) of_thread = std::vector<std::atomic<int>>(kPerThread);
  Rig<TypeParam> timer;
  std::atomic<int> producing = kThreads, early = 0, cancelled = 0, expired = 0;
  std::thread crowd([&] {
    run_together(kThreads, [&](int thread) {
      std::mt19937 random(static_cast<std::uint32_t>(thread));
      std::vector<std::pair<Timeout, std::atomic<int>*>> mine;
      for (std::atomic<int>& fate : fates[static_cast<std::size_t>(thread)]) {
        const auto task = [&](Timeout& self) {
          // If its thread moves the timeout too late, deadline() shows the new deadline until the call takes it back.
          const Time now = timer->now();
          if (now < self.deadline() && !eventually([&] { return now >= self.deadline(); })) ++early;
          ++fate;
          ++expired;
        };
        const nanoseconds delay = random() % 8 == 0 ? nanoseconds(kFar) : nanoseconds(random() % 8'000'000);
        const bool by_delay = random() % 2 == 0;
        const Time deadline = timer->now() + delay - (by_delay ? 0ms : 2ms);
        mine.emplace_back(timer->new_timeout(task, by_delay ? When(delay) : When(deadline)), &fate);
        if (mine.back().first.deadline() < deadline) ++early;
        auto& [timeout, its_fate] = mine[random() % mine.size()];
        const nanoseconds soon(random() % 8'000'000);
        const std::array<When, 4> deadlines{soon, kFar, timer->now() + soon - 2ms,
                                            random() % 8 == 0 ? Time::min() : Time::max()};
        const auto use = random() % 6;
        if (use < deadlines.size()) {
          timeout.reschedule(deadlines[use]);
        } else if (use == deadlines.size() && timeout.cancel()) {
          ++*its_fate;
          ++cancelled;
        }
      }
      --producing;
    });
  });
  EXPECT_TRUE(timer.until([&] { return producing == 0; }));
  crowd.join();
  const Time due = timer->now();
  timer.pass(10ms);
  timer.settle();
  const std::vector<Timeout> returned = timer->stop();
  const int expired_in_all = expired;
  EXPECT_EQ(static_cast<std::size_t>(cancelled + expired_in_all) + returned.size(), std::size_t{kThreads * kPerThread});
  for (const Timeout& timeout : returned) ASSERT_GT(timeout.deadline(), due) << "lost";
  for (const auto& of_thread : fates)
    for (const auto& fate : of_thread) ASSERT_LE(fate, 1);
  EXPECT_EQ(early, 0);
  EXPECT_GT(expired_in_all, 0);
  EXPECT_FALSE(returned.empty());
}

TYPED_TEST(Conformance, MayBeDestroyedInsideOneOfItsTasks) {
  for (const bool elsewhere : {false, true}) {
    if (elsewhere && kDriven<TypeParam>) continue;  // the test thread would drive a timer that is gone
    std::atomic<int> runs = 0;
    const auto alive = std::make_shared<int>();
    CountingFactory workers;
    ThreadPerJob threads;
    Options options{.tick_duration = Rig<TypeParam>::kTick};
    if (!kDriven<TypeParam>) options.thread_factory = workers.factory();
    if (elsewhere) options.executor = threads.executor();
    auto* const timer = new typename Rig<TypeParam>::T(options);
    std::atomic<bool> destroyed = false;
    timer->new_timeout([&runs, alive] { ++runs; }, kFar);
    after(*timer, 1ms, [&, alive] {
      ++runs;
      delete timer;
      destroyed = true;
    });
    while (kDriven<TypeParam> && !destroyed) turn(*timer);
    EXPECT_TRUE(eventually([&] { return destroyed && alive.use_count() == 1; }));
    EXPECT_TRUE(kDriven<TypeParam> || workers.wait_until_ended());
    EXPECT_EQ(runs, 1);
  }
}

}  // namespace
}  // namespace hwt::test
