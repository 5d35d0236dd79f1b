// The function of LoopTimer::on_earlier() may use the objects whose calls run it. A lock or a role that is held
// meanwhile makes these tests hang.

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/coroutine/coroutine_support.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

class UseInOnEarlier : public ::testing::Test {
 protected:
  // With a limit, run_due() forgets all cancelled timeouts when none is pending. Then the next one needs a call again.
  explicit UseInOnEarlier(const Options& options = {.tick_duration = 1ms, .max_pending_timeouts = 100})
      : timer_(options) {
    timer_.on_earlier([this] {
      ++calls_;
      if (use_) use_();
    });
  }
  ~UseInOnEarlier() override { timer_.on_earlier({}); }

  /// Makes one call that runs on_earlier(), whose function is `use`.
  void expect_call(const std::function<void()>& call, std::function<void()> use) {
    use_ = nullptr;
    timer_.run_due();  // from now on, an earlier timeout needs a call
    calls_ = 0;
    use_ = std::move(use);
    call();
    use_ = nullptr;
    EXPECT_EQ(calls_, 1);
  }

  std::atomic<int> calls_ = 0;
  std::function<void()> use_;
  LoopTimer timer_;
};

class KeyedTimerInOnEarlier : public UseInOnEarlier {
 protected:
  using Sessions = KeyedTimer<int, std::string>;

  void use_every_member() {
    EXPECT_TRUE(sessions_.contains(1));
    EXPECT_TRUE(sessions_.remaining(1));
    EXPECT_EQ(sessions_.size(), 1U);
    EXPECT_EQ(sessions_.move(1, 20s), KeyedResult::Moved);
    EXPECT_EQ(sessions_.set(1, "again", 10s), KeyedResult::Replaced);
    EXPECT_EQ(sessions_.set(2, "other", 10s), KeyedResult::Added);
    EXPECT_EQ(sessions_.remove(2), "other");
    EXPECT_EQ(sessions_.drain().size(), 1U);
    EXPECT_EQ(sessions_.set(1, "last", kFar), KeyedResult::Added);
  }
  void expect_call_of(const std::function<KeyedResult()>& call, KeyedResult result) {
    expect_call([&] { EXPECT_EQ(call(), result); }, [this] { use_every_member(); });
    EXPECT_EQ(sessions_.remove(1), "last");
    timer_.run_due();
  }

  Sessions sessions_{timer_, [](const int&, std::string&) { FAIL() << "it must not expire"; }};
};

TEST_F(KeyedTimerInOnEarlier, EveryCallThatArms) {
  expect_call_of([this] { return sessions_.set(1, "first", 30s); }, KeyedResult::Added);
  expect_call_of([this] { return sessions_.set(1, "first", timer_.now() + 30s); }, KeyedResult::Added);
  (void)sessions_.set(1, "first", kFar);
  expect_call_of([this] { return sessions_.set(1, "second", 30s); }, KeyedResult::Replaced);
  for (const bool by_deadline : {false, true}) {
    (void)sessions_.set(1, "first", kFar);
    const When when = by_deadline ? When(timer_.now() + 30s) : When(30s);
    expect_call_of([&] { return sessions_.move(1, when); }, KeyedResult::Moved);
  }
}

TEST_F(KeyedTimerInOnEarlier, StopsAndRefusesTheNextSet) {
  expect_call([this] { EXPECT_EQ(sessions_.set(1, "first", 30s), KeyedResult::Added); },
              [this] { EXPECT_EQ(sessions_.stop().size(), 1U); });
  EXPECT_EQ(sessions_.set(1, "second", 30s), KeyedResult::Stopped);
}

struct ThrowingEqual {
  static inline bool throws = false;
  bool operator()(int a, int b) const {
    if (throws) throw std::runtime_error("from Equal");
    return a == b;
  }
};

// Nothing is held back after an exception.
TEST_F(UseInOnEarlier, IsCalledAtOnceAfterAnExceptionOfEqual) {
  KeyedTimer<int, int, std::hash<int>, ThrowingEqual> sessions(timer_, [](const int&, int&) {});
  (void)sessions.set(1, 1, kFar);
  ThrowingEqual::throws = true;
  EXPECT_THROW((void)sessions.move(1, 1s), std::runtime_error);
  ThrowingEqual::throws = false;
  expect_call([this] { timer_.new_timeout(must_not_run, 1s); }, [] {});
}

class RepeatedTimerInOnEarlier : public UseInOnEarlier {
 protected:
  void make(std::chrono::nanoseconds timeout) {
    repeated_.emplace("test", timeout, timer_,
                      RepeatedTimer::Hooks{.on_trigger = [this] { ++triggers_; }, .on_destroy = [this] { ++ended_; }});
  }
  void set_to(std::chrono::nanoseconds timeout) {
    repeated_->stop();
    timer_.run_due();
    repeated_->reset(timeout);
    repeated_->start();
  }
  void use_every_member() {
    EXPECT_TRUE(repeated_->running());
    EXPECT_EQ(repeated_->describe(), "RepeatedTimer(test, timeout: 30000000000 ns, running)");
    repeated_->start();
    repeated_->restart();
    repeated_->reset();
    repeated_->reset(30s);
    EXPECT_TRUE(repeated_->run_once_now());
    repeated_->stop();
    EXPECT_FALSE(repeated_->running());
    repeated_->start();
  }

  std::optional<RepeatedTimer> repeated_;
  int triggers_ = 0, ended_ = 0;
};

TEST_F(RepeatedTimerInOnEarlier, EveryCallThatArms) {
  make(30s);
  const auto use = [this] { use_every_member(); };
  expect_call([this] { repeated_->start(); }, use);
  repeated_->stop();
  expect_call([this] { repeated_->restart(); }, use);
  EXPECT_EQ(triggers_, 2);
  set_to(kFar);
  expect_call([this] { repeated_->reset(30s); }, use);
  EXPECT_EQ(triggers_, 3);
  set_to(kFar);
  expect_call([this] { EXPECT_TRUE(repeated_->run_once_now()); }, [this] { repeated_->reset(30s); });
  EXPECT_EQ(triggers_, 4);
  EXPECT_TRUE(repeated_->running());
  EXPECT_EQ(timer_.pending_timeouts(), 1);
}

TEST_F(RepeatedTimerInOnEarlier, TheLaterCallDecides) {
  make(30s);
  for (const auto& end : std::vector<std::function<void()>>{
           [this] { repeated_->stop(); }, [this] { repeated_->destroy(); }, [this] { repeated_.reset(); }}) {
    if (ended_ != 0) make(30s);
    expect_call([this] { repeated_->start(); }, end);
    EXPECT_FALSE(repeated_ && repeated_->running());
    EXPECT_EQ(timer_.pending_timeouts(), 0);
  }
  EXPECT_EQ(ended_, 2);
}

// A hook may wait for the loop, so no call is held back while one runs.
TEST_F(UseInOnEarlier, IsCalledAtOnceInAHook) {
  std::vector<int> calls;
  const auto arm = [&] {
    use_ = nullptr;
    timer_.run_due();
    calls_ = 0;
    timer_.new_timeout(must_not_run, 1s).cancel();
    calls.push_back(calls_);
  };
  RepeatedTimer repeated("test", kFar, timer_,
                         {.on_trigger = arm,
                          .adjust_timeout =
                              [&](auto timeout) {
                                arm();
                                return timeout;
                              },
                          .on_destroy = arm});
  repeated.start();
  EXPECT_TRUE(repeated.run_once_now());
  repeated.destroy();
  EXPECT_EQ(calls, std::vector<int>(4, 1));
}

// --- With an executor, whose threads arm the next timeout ----------------------------------------------------------

struct WithQueue {
  JobQueue queue_;
};

class ExecutorInOnEarlier : public WithQueue, public UseInOnEarlier {
 protected:
  ExecutorInOnEarlier()
      : UseInOnEarlier({.tick_duration = 1ms, .max_pending_timeouts = 100, .executor = queue_.executor()}) {}

  /// Turns the wheel until the executor has a job.
  void await_job() {
    EXPECT_TRUE(eventually([&] {
      timer_.run_due();
      jobs_ = queue_.take();
      return !jobs_.empty();
    }));
  }
  void run_jobs() {
    for (const auto& job : std::exchange(jobs_, {})) job();
  }

  std::vector<std::function<void()>> jobs_;
};

TEST_F(ExecutorInOnEarlier, ARepeatedTimerThatArmsAfterATrigger) {
  std::optional<RepeatedTimer> repeated;
  repeated.emplace("test", 1ms, timer_, RepeatedTimer::Hooks{.on_trigger = [] {}});
  repeated->start();
  await_job();
  expect_call([this] { run_jobs(); }, [&] { repeated->stop(); });
  EXPECT_FALSE(repeated->running());
  EXPECT_EQ(timer_.pending_timeouts(), 0);
}

TEST_F(ExecutorInOnEarlier, AScheduleThatArmsAfterARun) {
  const auto task = schedule(timer_, Schedule::fixed_delay(1ms, 30s), [] {});
  await_job();
  expect_call([this] { run_jobs(); },
              [&] {
                EXPECT_FALSE(task->done());
                EXPECT_EQ(task->runs(), 1U);
                EXPECT_TRUE(task->next()) << "a thread is arming";
                EXPECT_TRUE(task->cancel());
              });
  EXPECT_TRUE(task->done());
  EXPECT_EQ(timer_.pending_timeouts(), 0);
}

// --- The others hold nothing ---------------------------------------------------------------------------------------

TEST_F(UseInOnEarlier, ATimeoutScope) {
  TimeoutScope scope(timer_);
  const TimeoutId first = scope.add(must_not_run, kFar);
  expect_call([&] { scope.add(must_not_run, 30s); },
              [&] {
                EXPECT_EQ(scope.size(), 1U) << "the second add() has not returned";
                EXPECT_EQ(scope.cancel(first), CancelResult::Cancelled);
                EXPECT_TRUE(scope.add(must_not_run, kFar));
                EXPECT_EQ(scope.cancel_all(), 1U);
              });
  EXPECT_EQ(scope.size(), 1U);
}

// With a limit, the cancel of the last pending timeout runs on_earlier() too.
TEST_F(UseInOnEarlier, AStopAfterMayBeUsedAndDestroyed) {
  std::stop_source parent;
  auto limit = std::make_unique<StopAfter>(timer_, kFar, parent.get_token());
  const std::stop_token token = limit->token();
  expect_call([&] { EXPECT_TRUE(limit->reschedule(30s)); }, [&] { EXPECT_TRUE(limit->reschedule(kFar)); });
  expect_call([&] { parent.request_stop(); },
              [&] {
                EXPECT_TRUE(limit->cancel());
                EXPECT_FALSE(limit->reschedule(1s));
                limit.reset();
              });
  EXPECT_TRUE(token.stop_requested());
}

TEST_F(UseInOnEarlier, ACoroutineMayBeAskedToStop) {
  std::stop_source stop;
  std::optional<Wake> wake;
  const auto sleep = [&]() -> Detached { wake = co_await sleep_for(timer_, 30s, stop.get_token()); };
  expect_call(sleep, [&] { stop.request_stop(); });
  EXPECT_EQ(wake, Wake::Stopped);
  EXPECT_EQ(timer_.pending_timeouts(), 0);
}

TEST_F(UseInOnEarlier, ASetOfAKeyAfterTheLastCancel) {
  KeyedTimer<int, int> sessions(timer_, [](const int&, int&) {});
  (void)sessions.set(1, 1, kFar);
  expect_call([&] { EXPECT_EQ(sessions.remove(1), 1); },
              [&] { EXPECT_EQ(sessions.set(1, 2, kFar), KeyedResult::Added); });
  EXPECT_EQ(sessions.size(), 1U);
}

TEST_F(UseInOnEarlier, ByManyThreadsWhileTheLoopTurns) {
  KeyedTimer<int, int> sessions(timer_, [](const int&, int&) {});
  RepeatedTimer repeated("test", kFar, timer_, {.on_trigger = [] {}});
  use_ = [&] {
    (void)sessions.move(1, kFar);
    repeated.restart();
  };
  const Deadline over(500ms);
  run_together(4, [&](int index) {
    while (!over.passed()) {
      if (index == 0) {
        timer_.run_due();
      } else if (index == 1) {
        repeated.reset(30s);
        repeated.stop();
      } else {
        (void)sessions.set(index % 2, index, 1s);
        (void)sessions.move(index % 2, 10ms);
        sessions.remove(index % 2);
      }
    }
  });
  timer_.on_earlier({});  // waits for calls that are held back
  EXPECT_GT(calls_, 0);
}

}  // namespace
}  // namespace hwt
