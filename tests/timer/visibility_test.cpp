// A thread that learns how a timeout has ended sees all that the task wrote. The objects are plain, so ThreadSanitizer
// reports an order that is missing.

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/any_timer.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

/// A timer that is turned on another thread than the test's.
template <class T>
class Turned {
 public:
  explicit Turned(Options options = {}) : timer_(make_timer<T>(std::move(options))) {
    if constexpr (kDriven<T>) {
      driver_ = std::jthread([this](const std::stop_token& stop) {
        for (; !stop.stop_requested(); std::this_thread::sleep_for(10us)) turn(*timer_);
      });
    }
  }
  T& operator*() { return *timer_; }
  T* operator->() { return timer_.get(); }

 private:
  std::unique_ptr<T> timer_;
  std::jthread driver_;
};

template <class T>
class Visibility : public ::testing::Test {};
TYPED_TEST_SUITE(Visibility, AllTimers, TimerNames);

constexpr int kRounds = kSanitized ? 50 : 300;

TYPED_TEST(Visibility, ATaskSeesWhatItsThreadWroteBeforeItScheduled) {
  Turned<TypeParam> timer;
  for (int round = 1; round <= kRounds; ++round) {
    int object = round;
    int seen = 0;
    Latch ran;
    timer->add(
        [&] {
          seen = object;
          ran.count_down();
        },
        0ns);
    ASSERT_TRUE(ran.wait());
    EXPECT_EQ(seen, round);
  }
}

TYPED_TEST(Visibility, AfterGoneEverythingThatTheTaskWrote) {
  Turned<TypeParam> timer;
  for (int round = 1; round <= kRounds; ++round) {
    int written = 0;
    const TimeoutId id = timer->add([&] { written = round; }, 0ns);
    CancelResult result{};
    while ((result = timer->cancel(id)) == CancelResult::Running) {
    }
    if (result == CancelResult::Cancelled) {
      EXPECT_EQ(written, 0);
    } else {
      EXPECT_EQ(written, round);
    }
    if (round % 2 == 0) std::this_thread::sleep_for(1ms);
  }
}

/// Nothing but the result of cancel() tells the thread that the task has ended.
TYPED_TEST(Visibility, AfterGoneEverythingThatATaskInTheWheelWrote) {
  Turned<TypeParam> timer;
  for (int round = 1; round <= kRounds / 5; ++round) {
    int written = 0;
    const TimeoutId id = timer->add([&] { written = round; }, 2ms);
    std::this_thread::sleep_for(4ms);
    CancelResult result{};
    while ((result = timer->cancel(id)) == CancelResult::Running) {
    }
    EXPECT_EQ(written, result == CancelResult::Gone ? round : 0);
  }
}

TYPED_TEST(Visibility, AfterRunningEverythingThatEarlierTasksWrote) {
  Turned<TypeParam> timer;
  int running = 0;
  for (int round = 1; round <= kRounds / 5; ++round) {
    int written = 0;
    const auto hold = std::make_shared<Hold>();
    std::atomic<bool> began = false;
    timer->add([&] { written = round; }, 0ns);
    const TimeoutId id = timer->add(
        [&began, hold] {
          began.store(true, std::memory_order_relaxed);  // which orders nothing
          (*hold)();
        },
        0ns);
    while (!began.load(std::memory_order_relaxed)) std::this_thread::yield();
    const CancelResult result = timer->cancel(id);
    if (result == CancelResult::Running) {
      ++running;
      EXPECT_EQ(written, round);
    }
    hold->let_go();
    EXPECT_NE(timer->cancel_and_wait(id), CancelResult::Running);
  }
  EXPECT_GT(running, 0);
}

TYPED_TEST(Visibility, AfterCancelAndWaitEverythingThatTheTaskWrote) {
  Turned<TypeParam> timer;
  for (int round = 1; round <= kRounds; ++round) {
    int written = 0;
    if (round % 2 == 0) {
      const TimeoutId id = timer->add([&] { written = round; }, 0ns);
      if (round % 4 == 0) std::this_thread::sleep_for(1ms);
      const bool cancelled = timer->cancel_and_wait(id) == CancelResult::Cancelled;
      EXPECT_EQ(written, cancelled ? 0 : round);
    } else {
      Timeout timeout = timer->new_timeout([&] { written = round; }, 0ns);
      if (round % 4 == 1) std::this_thread::sleep_for(1ms);
      const bool cancelled = timeout.cancel_and_wait();
      EXPECT_EQ(written, cancelled ? 0 : round);
    }
  }
}

TYPED_TEST(Visibility, AlsoOfATaskInAnExecutor) {
  JobQueue jobs;
  Turned<TypeParam> timer({.executor = jobs.executor()});
  std::jthread runner([&](const std::stop_token& stop) {
    for (; !stop.stop_requested(); std::this_thread::yield()) jobs.run_all();
  });
  for (int round = 1; round <= kRounds / 5; ++round) {
    int written = 0;
    const TimeoutId id = timer->add([&] { written = round; }, 0ns);
    if (round % 2 == 0) std::this_thread::sleep_for(2ms);
    CancelResult result{};
    while ((result = timer->cancel(id)) == CancelResult::Running) {
    }
    EXPECT_EQ(written, result == CancelResult::Gone ? round : 0);
  }
}

}  // namespace
}  // namespace hwt
