// Promise: a forked child may use timers of its own, go on with inherited ones without a thread, stop and destroy any,
// and exit. If it does not go on, the other threads of its parent may have been anywhere at the fork.

#if !defined(_WIN32)

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/support/forked_child.h"
#include "tests/support/test_support.h"

namespace {
// A child releases no inherited memory, and the memory of the parent's other threads has no owner there.
bool this_is_a_child = false;
}  // namespace
/// Asked by LeakSanitizer.
extern "C" int __lsan_is_turned_off() { return this_is_a_child; }  // NOLINT(bugprone-reserved-identifier)

namespace hwt::test {
namespace {

/// Enough for a hang that is there once in some thousand forks.
constexpr int kForks = kSanitized ? 15 : kCounting ? 150 : 5000;

// Sanitizers have locks of their own, which a fork() leaves as they are: with them a child can have no threads. (A
// program of nothing but threads and fork() hangs, too.)
constexpr bool kChildMayHaveThreads = !kSanitized;
#define NEEDS_THREADS_IN_THE_CHILD() \
  if (!kChildMayHaveThreads) GTEST_SKIP()

std::string text_of_status(int status) {
  if (WIFEXITED(status)) return "ended with " + std::to_string(WEXITSTATUS(status));
  return WTERMSIG(status) == SIGALRM ? "hung" : "killed by signal " + std::to_string(WTERMSIG(status));
}

/// Expects that f() returns 0 in a forked child.
template <class F>
void expect_child_returns_0(F f) {
  const int status = status_of_child(f);
  EXPECT_EQ(status, 0) << "the child " << text_of_status(status);
}

/// For a fork inside a task. Returns true in the child. In the parent, waits until the child has called exit(0).
bool is_forked_child() {
  const pid_t child = fork();
  if (child == 0) {
    this_is_a_child = true;
    alarm(20);
    return true;
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child " << text_of_status(status);
  return false;
}

/// Threads that do all that can be done with timers, while the test's thread forks.
class Hammer {
 public:
  Hammer() {
    const auto keep_on = [this](auto work) {
      threads_.emplace_back([this, work] {
        while (!over_) {
          work();
          ++rounds_;
        }
      });
    };
    // A first use by a new thread, and its end.
    keep_on([this] {
      std::thread([this] {
        Timeout timeout = shared.new_timeout([] {}, kFar);
        timeout.reschedule(kFar / 2);
        timeout.cancel();
      }).join();
    });
    // A life of a timer. From its construction until after stop(), a child finds it in `lives`.
    keep_on([this] {
      std::shared_ptr<HashedWheelTimer> timer = std::make_shared<HashedWheelTimer>(1ms);
      const std::size_t place = next_++ % lives.size();
      lives[place].store(timer.get());
      timer->start();
      timer->new_timeout([] {}, kFar);
      timer->stop();
      lives[place].store(nullptr);
      // Destroyed when the place is used again. By then `lives` has not shown it for some time, so no child sees it.
      graves_[place] = std::move(timer);
    });
    // The work of a request. With pauses, because a backlog would make each fork() slow, which copies the page tables.
    keep_on([this] {
      for (int i = 0; i < 100; ++i) {
        Timeout timeout = shared.new_timeout([] {}, i % 2 == 0 ? 0ns : std::chrono::nanoseconds(kFar));
        timeout.reschedule(1ms * i);
        if (i % 3 == 0) timeout.cancel();
      }
      manual.new_timeout([] {}, 1ms);
      manual.advance(1ms);
      std::this_thread::sleep_for(50us);
    });
  }
  ~Hammer() { over_ = true; }
  Hammer(const Hammer&) = delete;
  Hammer& operator=(const Hammer&) = delete;

  int rounds() const { return rounds_; }

  HashedWheelTimer shared{1ms};
  ManualTimer manual;
  std::array<std::atomic<HashedWheelTimer*>, 4> lives{};

 private:
  std::array<std::shared_ptr<HashedWheelTimer>, 4> graves_{};
  std::atomic<std::size_t> next_ = 0;
  std::atomic<int> rounds_ = 0;
  std::atomic<bool> over_ = false;
  std::vector<std::jthread> threads_;
};

/// Does everything that a child may do. Returns 0 if all of it worked.
int live_as_a_child(Hammer& parents, int round) {
  Latch ran;
  {
    HashedWheelTimer own(1ms);
    own.new_timeout([&] { ran.count_down(); }, 0ns);
    Timeout timeout = own.new_timeout([] {}, kFar);
    std::thread([&] { own.new_timeout([] {}, kFar); }).join();
    if (!ran.wait()) return 1;
    if (!timeout.cancel()) return 2;
    if (own.stop().size() != 1) return 3;
  }
  for (auto& life : parents.lives) {
    if (HashedWheelTimer* const timer = life.load()) {
      timer->stop();
      if (round % 2 == 0) timer->~HashedWheelTimer();
    }
  }
  parents.shared.stop();
  parents.manual.stop();
  if (round % 2 == 0) {
    parents.shared.~HashedWheelTimer();
    parents.manual.~ManualTimer();
  }
  return 0;
}

TEST(Fork, AChildWorksInTheMiddleOfAnyCallOfItsParentsThreads) {
  NEEDS_THREADS_IN_THE_CHILD();
  Hammer hammer;
  for (int round = 0; round < kForks; ++round) {
    const int status = status_of_child([&] { return live_as_a_child(hammer, round); });
    ASSERT_EQ(status, 0) << "the child of round " << round << ' ' << text_of_status(status);
  }
  EXPECT_GT(hammer.rounds(), 0);
}

// This thread has used timers before the fork, and the child destroys inherited static timers when it exits.
TEST(Fork, AChildCanExitInTheMiddleOfAnyCallOfItsParentsThreads) {
  static HashedWheelTimer timer(1ms);
  static ManualTimer manual;
  timer.new_timeout([] {}, kFar);
  Hammer hammer;
  for (int round = 0; round < kForks && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    if (is_forked_child()) std::exit(0);  // NOLINT(concurrency-mt-unsafe): this is the tested case
  }
}

TEST(Fork, AChildCanUseATimerThatWasNotStarted) {
  NEEDS_THREADS_IN_THE_CHILD();
  HashedWheelTimer timer(1ms);
  expect_child_returns_0([&] {
    if (!ran_in_task(timer, [] {})) return 1;
    timer.new_timeout([] {}, kFar);
    return timer.stop().size() == 1 ? 0 : 2;
  });
  EXPECT_TRUE(ran_in_task(timer, [] {})) << "the parent's own";
}

// At the fork, another thread is starting the timer. The child can neither wait for that thread nor start the timer.
TEST(Fork, AChildIsRefusedATimerThatIsBeingStarted) {
  Hold hold;
  HashedWheelTimer timer({.thread_factory = [&](std::function<void()> body) {
    hold();
    return std::thread(std::move(body));
  }});
  std::jthread starter([&] { timer.start(); });
  ASSERT_TRUE(hold.wait_until_entered());
  expect_child_returns_0([&] {
    if (timer.try_new_timeout([] {}, 0ns)) return 1;
    if (!throws<IllegalState>([&] { timer.start(); })) return 2;
    return timer.stop().empty() ? 0 : 3;
  });
  hold.let_go();
  starter.join();
  EXPECT_TRUE(ran_in_task(timer, [] {})) << "the parent's own";
}

// The child's only thread is then a copy of the worker. It cancels nothing of its parent.
TEST(Fork, AChildOfATaskCanDestroyTheTimerAndReturn) {
  NEEDS_THREADS_IN_THE_CHILD();
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  const auto end_a_child = [] {
    if (this_is_a_child) end_child(3);
  };
  timer->new_timeout(on_cancelled(end_a_child), kFar);
  EXPECT_TRUE(ran_in_task(*timer, [&] {
    if (is_forked_child()) timer.reset();  // returns to a loop that ends, and with it the last thread of the child
  }));
  EXPECT_TRUE(ran_in_task(*timer, [] {})) << "the parent's own";
}

// A child gives back nothing, because the state of its parent's timers may be half changed.
TEST(Fork, AChildThatStopsOrDestroysATimerChangesNothingOfTheParents) {
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  auto manual = std::make_unique<ManualTimer>();
  bool ran = false;
  const Timeout one = timer->new_timeout([] {}, kFar);
  const Timeout other = manual->new_timeout([] {}, kFar);
  manual->new_timeout([&] { ran = true; }, 1ms);
  expect_child_returns_0([&] {
    if (!timer->stop().empty() || !manual->stop().empty()) return 1;
    if (timer->try_new_timeout([] {}, kFar) || manual->try_new_timeout([] {}, kFar)) return 2;
    if (manual->advance(1s) != 0 || ran) return 4;
    timer.reset();
    manual.reset();
    return one.timer() == nullptr && other.timer() == nullptr ? 0 : 3;
  });
  EXPECT_EQ(timer->stop().size(), 1u);
  EXPECT_EQ(manual->advance(1s), 1u);
  EXPECT_EQ(manual->stop().size(), 1u);
}

TEST(Fork, AChildThatTurnsATimerWithoutAThreadHasItsTimeoutsAndObjects) {
  auto timer = std::make_unique<ManualTimer>();
  int ran = 0;
  const auto run = [&] { ++ran; };
  timer->new_timeout(run, 1ms);
  Hold idle;
  const std::jthread other([&] { timer->new_timeout(run, 1ms), timer->new_timeout(run, kFar), idle(); });
  ASSERT_TRUE(idle.wait_until_entered());
  auto scope = std::make_unique<TimeoutScope>(*timer);
  scope->add(run, 5ms);
  auto keyed = std::make_unique<KeyedTimer<int, int>>(*timer, [&](int, int) { ++ran; });
  for (const int key : {1, 2, 3}) (void)keyed->set(key, 0, 5ms);
  RepeatedTimer repeated("inherited", 1ms, *timer, {.on_trigger = run});
  repeated.start();
  const auto task = schedule(*timer, Schedule::fixed_rate(1ms, 1ms), run);
  expect_child_returns_0([&] {
    if (timer->advance(2ms) != 6 || ran != 6) return 1;
    scope.reset();
    repeated.stop();
    if (repeated.running() || !task->cancel()) return 2;
    if (keyed->move(1, kFar) != KeyedResult::Moved || !keyed->remove(2) || keyed->drain().size() != 2) return 3;
    (void)keyed->set(4, 0, 1ms);
    keyed.reset();
    if (timer->advance(1s) != 0 || timer->stop().size() != 1) return 4;
    timer.reset();
    return task->done() ? 0 : 5;
  });
  idle.let_go();
  EXPECT_EQ(timer->advance(2ms), 6u) << "the parent's own";
}

TEST(Fork, AChildThatTurnsALoopTimerIsWokenWaitsForTasksAndStopsIt) {
  NEEDS_THREADS_IN_THE_CHILD();
  LoopTimer timer;
  std::atomic<int> calls = 0;
  timer.on_earlier([&] { ++calls; });
  Timeout pending = timer.new_timeout([] {}, kFar);
  expect_child_returns_0([&] {
    timer.run_due();
    const int before = calls;
    std::atomic<bool> over = false;
    Hold hold;
    Timeout busy;
    std::thread([&] { busy = timer.new_timeout([&] { hold(), over = true; }, 0ns); }).join();
    if (calls != before + 1) return 1;
    std::jthread loop([&] {
      while (!over) timer.run_due();
    });
    if (!hold.wait_until_entered()) return 2;
    const std::jthread later([&] { std::this_thread::sleep_for(20ms), hold.let_go(); });
    busy.cancel_and_wait();
    if (!over) return 3;
    loop.join();
    const int last = calls;
    return timer.stop().size() == 1 && pending.is_cancelled() && calls == last + 1 ? 0 : 4;
  });
  EXPECT_TRUE(pending.cancel()) << "the parent's own";
}

TEST(Fork, AChildThatStartsATimerHasTheObjectsThatWereMadeBefore) {
  NEEDS_THREADS_IN_THE_CHILD();
  HashedWheelTimer timer(1ms);
  KeyedTimer<int, int> keyed(timer, [](int, int) {});
  std::optional<TimeoutScope> scope(timer);
  expect_child_returns_0([&] {
    (void)keyed.set(1, 0, kFar);
    scope->add([] {}, kFar);
    scope.reset();
    return keyed.stop().size() == 1 && timer.pending_timeouts() == 0 ? 0 : 1;
  });
}

TEST(Fork, AChildOfATaskThatDestroysATimerWithoutAThreadRunsNoOtherTask) {
  auto timer = std::make_unique<ManualTimer>();
  bool ran = false;
  after(*timer, 1ms, [&] {
    if (is_forked_child()) timer.reset();
  });
  timer->new_timeout([&] { ran = true; }, 2ms);
  [&]() noexcept { timer->advance(1s); }();  // an exception must not lead the child to other tests
  if (this_is_a_child) end_child(ran ? 3 : 0);
  EXPECT_TRUE(ran) << "the parent's own";
}

// Schedules keep the timer alive while they make their next wait, and fork() may come at any moment of that.
TEST(Fork, AChildOfATimerWithBusySchedulesCanDestroyIt) {
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  for (int i = 0; i < 5000; ++i) schedule(*timer, Schedule::fixed_rate(0ms, 1ms), [] {});
  for (int round = 0; round < 100; ++round) {
    ASSERT_EQ(status_of_child([&] { return timer.reset(), 0; }), 0);
  }
}

TEST(Fork, AChildOfATimerThatIsBeingStoppedSeesNoTaskAtWorkAndCanDestroyIt) {
  auto timer = std::make_unique<HashedWheelTimer>(1ms);
  std::jthread stopper;
  {
    const Gate gate(*timer);
    stopper = std::jthread([&] { timer->stop(); });
    wait_until_refusing(*timer);
    ASSERT_TRUE(eventually([&] { return timer->stats().running_for > 0ns; }));
    expect_child_returns_0([&] {
      if (timer->stats().running_for != 0ns) return 1;
      timer.reset();
      return 0;
    });
  }
}

TEST(Fork, AChildMayStopTheTimerInsideItsThreadFactory) {
  HashedWheelTimer* started = nullptr;
  HashedWheelTimer timer({.thread_factory = [&](std::function<void()> body) {
    if (is_forked_child()) {
      started->stop();
      throw std::runtime_error("no thread for a child");
    }
    return std::thread(std::move(body));
  }});
  started = &timer;
  try {
    timer.start();
  } catch (const std::runtime_error&) {
    if (!this_is_a_child) throw;
    end_child(0);
  }
}

}  // namespace
}  // namespace hwt::test

#endif
