// The promises of a TimerManager of Thrift, kept by that of docs/examples/thrift_timers. The tests also run on the
// one of Thrift itself, as in libthrift 0.17.0 of Debian.

#include <gtest/gtest.h>
#include <thrift/concurrency/FunctionRunner.h>
#include <thrift/concurrency/TimerManager.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "docs/examples/thrift_timers/wheel_timer_manager.h"
#include "tests/support/eventually.h"

namespace thrift_timers {
namespace {

using namespace std::chrono_literals;
using namespace apache::thrift::concurrency;
using Clock = std::chrono::steady_clock;

/// A task that calls a function.
std::shared_ptr<Runnable> task_of(std::function<void()> function) {
  return std::make_shared<FunctionRunner>(std::move(function));
}

/// Notes the thread that it makes.
class NotingFactory final : public ThreadFactory {
 public:
  explicit NotingFactory(bool detached) : ThreadFactory(detached) {}
  std::shared_ptr<Thread> newThread(std::shared_ptr<Runnable> runnable) const override {
    return ThreadFactory::newThread(task_of([this, runnable] {
      thread_ = std::this_thread::get_id();
      runnable->run();
    }));
  }
  bool made_this_thread() const { return thread_ == std::this_thread::get_id(); }

 private:
  mutable std::thread::id thread_;
};

class ThriftTimers : public testing::TestWithParam<bool> {
 protected:
  bool on_wheel() const { return GetParam(); }
  std::unique_ptr<TimerManager> make() const {
    return on_wheel() ? std::unique_ptr<TimerManager>(new WheelTimerManager) : std::make_unique<TimerManager>();
  }
  void start(bool detached = true) {
    manager_->threadFactory(std::make_shared<ThreadFactory>(detached));
    manager_->start();
  }
  /// Adds a task that is due soon, and waits until it has run.
  void run(const std::function<void()>& function = [] {}, std::chrono::milliseconds delay = 1ms) {
    std::latch ran(1);
    manager_->add(task_of([&] {
                    function();
                    ran.count_down();
                  }),
                  delay);
    ran.wait();
  }

  std::unique_ptr<TimerManager> manager_ = make();
};

INSTANTIATE_TEST_SUITE_P(Of, ThriftTimers, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Wheel" : "Thrift"; });

TEST_P(ThriftTimers, RunsATaskAfterItsDelayOrAtATimeAndNotEarlier) {
  start();
  std::latch ran(3);
  const auto time = Clock::now() + 20ms;
  const auto task = task_of([&] {
    EXPECT_GE(Clock::now(), time);
    ran.count_down();
  });
  manager_->add(task, 20ms);
  manager_->add(task, std::uint64_t{20});
  manager_->add(task, time);
  ran.wait();
}

TEST_P(ThriftTimers, RunsAnEarlierTaskThatIsAddedLater) {
  start();
  manager_->add(task_of([] { ADD_FAILURE(); }), 1h);
  run();  // now the thread sleeps until that one
  run();
  EXPECT_EQ(manager_->taskCount(), 1U);
}

TEST_P(ThriftTimers, StartsOnceWithAFactory) {
  EXPECT_EQ(manager_->state(), TimerManager::UNINITIALIZED);
  EXPECT_THROW(manager_->start(), InvalidArgumentException);
  EXPECT_THROW(manager_->add(task_of([] {}), 1ms), IllegalStateException);
  start();
  manager_->start();
  EXPECT_EQ(manager_->state(), TimerManager::STARTED);
  manager_->stop();
  EXPECT_EQ(manager_->state(), TimerManager::STOPPED);
  manager_->start();
  EXPECT_EQ(manager_->state(), TimerManager::STOPPED);
}

// Thrift's own timer may end the program when its thread is not detached: that thread may be the one that destroys its
// std::thread.
TEST_P(ThriftTimers, RunsTasksOnTheThreadOfItsFactory) {
  for (const bool detached : {true, false}) {
    if (!detached && !on_wheel()) break;
    const auto factory = std::make_shared<NotingFactory>(detached);
    manager_ = make();
    manager_->threadFactory(factory);
    EXPECT_EQ(manager_->threadFactory(), factory);
    manager_->start();
    run([&] { EXPECT_TRUE(factory->made_this_thread()); });
  }
}

TEST_P(ThriftTimers, RefusesATimeThatHasPassed) {
  start();
  EXPECT_THROW(manager_->add(task_of([] {}), -1ms), InvalidArgumentException);
  EXPECT_THROW(manager_->add(task_of([] {}), Clock::now() - 1ms), InvalidArgumentException);
  EXPECT_EQ(manager_->taskCount(), 0U);
}

TEST_P(ThriftTimers, RemovesOneTimer) {
  start();
  const auto task = task_of([] { ADD_FAILURE(); });
  const std::weak_ptr<Runnable> kept = task;
  const TimerManager::Timer removed = manager_->add(task, 1h);
  const TimerManager::Timer other = manager_->add(task, 1h);
  EXPECT_EQ(manager_->taskCount(), 2U);
  manager_->remove(removed);
  EXPECT_EQ(manager_->taskCount(), 1U);
  EXPECT_TRUE(removed.expired());
  EXPECT_FALSE(other.expired());
  EXPECT_THROW(manager_->remove(removed), NoSuchTaskException);
  EXPECT_THROW(manager_->remove(TimerManager::Timer()), NoSuchTaskException);
  manager_->remove(other);
  EXPECT_EQ(manager_->taskCount(), 0U);
  EXPECT_EQ(kept.use_count(), 1);  // `task`
}

TEST_P(ThriftTimers, RemovesAllTimersOfATask) {
  start();
  std::latch ran(1);
  const auto removed = task_of([] { ADD_FAILURE(); });
  const auto other = task_of([&] { ran.count_down(); });
  std::vector<TimerManager::Timer> timers;
  for (int i = 0; i < 10; ++i) {
    timers.push_back(manager_->add(removed, 1h + i * 1ms));
    timers.push_back(manager_->add(removed, std::chrono::milliseconds(3'600'500 - i)));
  }
  for (const int single : {0, 7, 19}) manager_->remove(timers[static_cast<std::size_t>(single)]);
  manager_->add(other, 1h);
  EXPECT_EQ(manager_->taskCount(), 18U);
  manager_->remove(removed);
  EXPECT_EQ(manager_->taskCount(), 1U);
  EXPECT_THROW(manager_->remove(removed), NoSuchTaskException);
  for (const auto& timer : timers) EXPECT_THROW(manager_->remove(timer), NoSuchTaskException);
  EXPECT_EQ(removed.use_count(), 1);
  manager_->add(other, 1ms);
  ran.wait();
  manager_->remove(other);
  EXPECT_EQ(manager_->taskCount(), 0U);
}

TEST_P(ThriftTimers, DoesNotRemoveATaskThatRuns) {
  start();
  std::latch inside(1);
  std::latch go_on(1);
  const auto task = task_of([&] {
    inside.count_down();
    go_on.wait();
  });
  const TimerManager::Timer timer = manager_->add(task, 1ms);
  inside.wait();
  EXPECT_EQ(manager_->taskCount(), 0U);
  EXPECT_THROW(manager_->remove(timer), UncancellableTaskException);
  EXPECT_THROW(manager_->remove(task), NoSuchTaskException);
  const TimerManager::Timer later = manager_->add(task, 1h);
  manager_->remove(task);
  EXPECT_THROW(manager_->remove(later), NoSuchTaskException);
  go_on.count_down();
  run();
  EXPECT_TRUE(hwt::test::eventually([&] { return timer.expired(); }));
  EXPECT_THROW(manager_->remove(timer), NoSuchTaskException);
}

TEST_P(ThriftTimers, AddsAndRemovesInsideATask) {
  start();
  std::latch ran(1);
  const auto removed = task_of([] { ADD_FAILURE(); });
  manager_->add(removed, 1h);
  manager_->add(task_of([&] {
                  manager_->remove(removed);
                  manager_->add(task_of([&] { ran.count_down(); }), 1ms);
                }),
                1ms);
  ran.wait();
  EXPECT_EQ(manager_->taskCount(), 0U);
}

TEST_P(ThriftTimers, DropsItsTasksWhenItStopsAndWhenItIsDestroyed) {
  for (const bool is_destroyed : {false, true}) {
    manager_ = make();
    start();
    auto task = task_of([] { ADD_FAILURE(); });
    const std::weak_ptr<Runnable> dropped = task;
    const TimerManager::Timer timer = manager_->add(task, 1h);
    for (int i = 0; i < 1'000; ++i) manager_->add(task, 1h);
    task = nullptr;
    is_destroyed ? manager_.reset() : manager_->stop();
    EXPECT_TRUE(dropped.expired());
    EXPECT_TRUE(timer.expired());
    if (is_destroyed) break;
    EXPECT_THROW(manager_->add(task_of([] {}), 1ms), IllegalStateException);
    EXPECT_THROW(manager_->remove(timer), IllegalStateException);
    EXPECT_THROW(manager_->remove(task_of([] {})), IllegalStateException);
    manager_->stop();
  }
}

TEST_P(ThriftTimers, IsStoppedAfterAStopThatRacesTheStart) {
  for (int round = 0; round < 30; ++round) {
    manager_ = make();
    std::jthread other([&] { manager_->stop(); });
    start();
    other.join();
    EXPECT_EQ(manager_->state(), TimerManager::STOPPED);
  }
}

TEST_P(ThriftTimers, StopWaitsForTheTaskThatRuns) {
  start();
  std::latch inside(1);
  std::atomic<bool> ended{false};
  manager_->add(task_of([&] {
                  inside.count_down();
                  std::this_thread::sleep_for(20ms);
                  ended = true;
                }),
                1ms);
  inside.wait();
  manager_.reset();
  EXPECT_TRUE(ended);
}

// Each timer ends once: it runs, or one thread removes it.
TEST_P(ThriftTimers, EndsEachTimerOnceForManyThreads) {
  constexpr int kThreads = 3, kTimers = 2'000;
  start();
  std::atomic<int> ran{0}, removed{0};
  const auto task = task_of([&] { ++ran; });
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(i);
      const auto own = task_of([&] { ++ran; });
      std::vector<TimerManager::Timer> timers;
      for (int n = 0; n < kTimers; ++n) {
        timers.push_back(manager_->add(random() % 2 == 0 ? own : task, std::chrono::milliseconds(1 + random() % 5)));
        try {
          manager_->remove(timers[random() % timers.size()]);
          ++removed;
        } catch (const NoSuchTaskException&) {
        } catch (const UncancellableTaskException&) {
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(hwt::test::eventually([&] { return ran + removed == kThreads * kTimers; }));
  EXPECT_EQ(manager_->taskCount(), 0U);
  manager_.reset();
  EXPECT_EQ(ran + removed, kThreads * kTimers);
}

/// Not Thrift's own timer: it refuses a delay of zero, ends the program after an exception, and adds a long delay to
/// the time, which overflows.
class ThriftTimersOnWheel : public ThriftTimers {};

INSTANTIATE_TEST_SUITE_P(Of, ThriftTimersOnWheel, testing::Values(true), [](const auto&) { return "Wheel"; });

TEST_P(ThriftTimersOnWheel, TakesTheShortestAndTheLongestDelay) {
  start();
  manager_->add(task_of([] { ADD_FAILURE(); }), std::chrono::milliseconds::max());
  run([] {}, 0ms);
  EXPECT_EQ(manager_->taskCount(), 1U);
}

// Thrift's own timer waits for itself.
TEST_P(ThriftTimersOnWheel, RefusesToStopInsideATask) {
  start();
  run([&] { EXPECT_THROW(manager_->stop(), hwt::IllegalState); });
  EXPECT_EQ(manager_->state(), TimerManager::STARTED);
  run();
}

// The wheel makes no thread of its own, however early a timer comes.
TEST_P(ThriftTimersOnWheel, RunsTheTimersOfThreadsThatRaceTheStartOnTheThreadOfItsFactory) {
  constexpr int kThreads = 3;
  for (int round = 0; round < 30; ++round) {
    const auto factory = std::make_shared<NotingFactory>(round % 2 == 0);
    manager_ = make();
    manager_->threadFactory(factory);
    std::latch ran(kThreads);
    const auto task = task_of([&] {
      EXPECT_TRUE(factory->made_this_thread());
      ran.count_down();
    });
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (bool added = false; !added;) {
          try {
            manager_->add(task, 0ms);
            added = true;
          } catch (const IllegalStateException&) {
            std::this_thread::yield();
          }
        }
      });
    }
    manager_->start();
    ran.wait();
  }
}

// A thread that adds while another stops either gets a timer that is dropped, or Thrift's exception.
TEST_P(ThriftTimersOnWheel, RefusesTimersOfThreadsThatRaceTheStop) {
  for (int round = 0; round < 30; ++round) {
    manager_ = make();
    start();
    const auto task = task_of([] { ADD_FAILURE(); });
    std::latch added(1);
    std::jthread thread([&] {
      try {
        for (;;) {
          manager_->add(task, 1h);
          added.try_wait() ? void() : added.count_down();
        }
      } catch (const IllegalStateException&) {
      }
    });
    added.wait();
    manager_->stop();
    thread.join();
    EXPECT_EQ(task.use_count(), 1);
    EXPECT_EQ(manager_->taskCount(), 0U);
  }
}

TEST_P(ThriftTimersOnWheel, GoesOnAfterAnException) {
  start();
  manager_->add(task_of([] { throw std::runtime_error("of a task"); }), 0ms);
  run();
}

}  // namespace
}  // namespace thrift_timers
