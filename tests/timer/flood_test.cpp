// A timeout of one thread stays punctual, whatever floods of other threads' timeouts beside it do.

#include <iostream>

#include "tests/support/any_timer.h"
#include "tests/support/floods.h"

namespace hwt::test {
namespace {
using std::chrono::nanoseconds;

constexpr int kShare = kSanitized ? 10 : 1;  // of each flood

/// A kind of timer with a tick.
template <class T, int kMicroseconds>
struct Kind {
  using Timer = T;
  static std::unique_ptr<T> make() {
    return std::make_unique<T>(Options{.tick_duration = std::chrono::microseconds(kMicroseconds)});
  }
};

template <class K>
class UnderAFlood : public ::testing::Test {
 protected:
  using T = typename K::Timer;

  /// Schedules a timeout of 20 ms again and again beside the flood, and checks how late each one is.
  void expect_punctual(const std::function<void(Timer&, const std::atomic<bool>&)>& flood) {
    constexpr auto kDelay = 20ms;
    // Two quiet processors keep to 100 ms. But the threads of the flood take turns with the worker, and a busy machine
    // or a sanitizer makes each turn longer.
    constexpr auto kMost = 10s;
    std::atomic<bool> over = false;  // outlives the timer, whose tasks read it
    const std::unique_ptr<T> timer = K::make();
    std::jthread flooding([&] { flood(*timer, over); });
    std::atomic<int> ran = 0;
    std::atomic<nanoseconds> latest = 0ns;
    std::jthread probing([&] {
      const auto begin = steady_clock::now();
      for (int i = 0; i < 25 && steady_clock::now() - begin < 1s; ++i) {
        const auto due = steady_clock::now() + kDelay;
        std::atomic<bool> done = false;
        Timeout probe = after(*timer, kDelay, [&, due] {
          const nanoseconds late = steady_clock::now() - due;
          EXPECT_GE(late, 0ns);
          latest = std::max(latest.load(), late);
          ++ran;
          done = true;
        });
        while (!done && steady_clock::now() - due < kMost) std::this_thread::sleep_for(500us);
        if (!done) {
          probe.cancel_and_wait();
          latest = std::max<nanoseconds>(latest.load(), steady_clock::now() - due);
          break;
        }
      }
      over = true;
    });
    if constexpr (kDriven<T>) {
      while (!over) {
        timer->run_due();
        std::this_thread::sleep_for(100us);
      }
    }
    flooding.join();
    probing.join();
    EXPECT_GT(ran, 0);
    EXPECT_LT(latest.load(), kMost);
    std::cout << ran << " ran, at most " << latest.load() / 1us << " us late" << std::endl;
  }

  FloodCalls calls_;
};

struct KindNames {
  template <class K>
  static std::string GetName(int number) {
    return TimerNames::GetName<typename K::Timer>(number) + std::to_string(number);
  }
};
using Kinds = ::testing::Types<Kind<HashedWheelTimer, 1000>, Kind<HierarchicalWheelTimer, 1000>,
                               Kind<HierarchicalWheelTimer, 100>, Kind<LoopTimer, 1000>>;
TYPED_TEST_SUITE(UnderAFlood, Kinds, KindNames);

TYPED_TEST(UnderAFlood, OfThreadsThatScheduleAndCancelATimeoutIsPunctual) {
  for (const auto& [threads, in_flight] : {std::pair(2, 100'000), std::pair(6, 20'000)}) {
    this->expect_punctual([this, threads = threads, in_flight = in_flight](Timer& timer, const auto& over) {
      schedule_and_cancel(timer, over, this->calls_, threads, static_cast<std::size_t>(in_flight / kShare));
    });
  }
}

TYPED_TEST(UnderAFlood, OfDueTasksATimeoutIsPunctual) {
  for (const int tasks : {150'000, 300'000}) {
    this->expect_punctual([tasks](Timer& timer, const auto& over) { schedule_again(timer, over, tasks / kShare); });
  }
}

TYPED_TEST(UnderAFlood, OfCancelledTimerTasksATimeoutIsPunctual) {
  this->expect_punctual([this](Timer& timer, const auto& over) {
    schedule_and_cancel(timer, over, this->calls_, 2, 20'000 / kShare, std::make_shared<RecordingTask>());
  });
}

TYPED_TEST(UnderAFlood, OfRescheduledTimeoutsATimeoutIsPunctual) {
  this->expect_punctual(
      [this](Timer& timer, const auto& over) { reschedule_always(timer, over, this->calls_, 3, 50'000 / kShare); });
}

TYPED_TEST(UnderAFlood, OfManyThreadsWithFarTimeoutsATimeoutIsPunctual) {
  this->expect_punctual(
      [this](Timer& timer, const auto& over) { leave_far_ones(timer, over, this->calls_, 60, 1'000 / kShare); });
}

}  // namespace
}  // namespace hwt::test
