// Which deadlines end the worker's sleep, and that they do whatever another waker is at.

#include "hashed_wheel_timer/internal/platform/sleeper.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/internal/engine/tick_grid.h"
#include "tests/support/test_support.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>
#endif

namespace hwt::internal {

class SleeperTest : public ::testing::Test {
 protected:
  /// A sleep now ends before its time.
  static bool is_called(Sleeper& sleeper) {
    const std::int64_t until = steady_now() + std::chrono::nanoseconds(test::kGenerous).count();
    sleeper.sleep_until(until);
    return steady_now() < until;
  }
  /// A sleep now lasts until its time.
  static bool is_not_called(Sleeper& sleeper) {
    const std::int64_t until = steady_now() + 5'000'000;
    sleeper.sleep_until(until);
    return steady_now() >= until;
  }
  static Parking& parking(Sleeper& sleeper) { return sleeper.parking_; }

  Sleeper sleeper_;
};

namespace {

using namespace std::chrono_literals;

TEST_F(SleeperTest, IsWokenForADeadlineUpToTheAnnouncedTimeAndNotForALaterOne) {
  sleeper_.announce(100);
  sleeper_.wake_for(101);
  EXPECT_TRUE(is_not_called(sleeper_));
  sleeper_.announce(100);
  sleeper_.wake_for(100);
  EXPECT_TRUE(is_called(sleeper_));
}

TEST_F(SleeperTest, IsNotWokenForWhatIsNeverDue) {
  sleeper_.announce(kForever);
  sleeper_.wake_for(kForever);
  EXPECT_TRUE(is_not_called(sleeper_));
  sleeper_.announce(kForever);
  sleeper_.wake_for(kForever - 1);
  EXPECT_TRUE(is_called(sleeper_));
}

TEST_F(SleeperTest, IsNotWokenWhileItIsAwake) {
  sleeper_.announce(100);
  sleeper_.retract();
  EXPECT_TRUE(sleeper_.awake());
  sleeper_.wake_for(0);
  EXPECT_TRUE(is_not_called(sleeper_));
}

// A worker that sleeps to the end of a tick announces where that tick begins. A deadline exactly there is due in the
// tick before.
TEST_F(SleeperTest, IsWokenForADeadlineOnTheGridThatIsDueInATickBefore) {
  constexpr TickGrid kGrid{5, 10};
  for (const Tick sleeps_through : {Tick{1}, Tick{7}}) {
    const std::int64_t deadline = kGrid.begin_of(sleeps_through);
    ASSERT_EQ(kGrid.due_tick(deadline), sleeps_through - 1);
    ASSERT_EQ(kGrid.due_tick(deadline + 1), sleeps_through);
    sleeper_.announce(kGrid.begin_of(sleeps_through));
    sleeper_.wake_for(deadline + 1);
    EXPECT_TRUE(is_not_called(sleeper_));
    sleeper_.announce(kGrid.begin_of(sleeps_through));
    sleeper_.wake_for(deadline);
    EXPECT_TRUE(is_called(sleeper_));
  }
}

TEST_F(SleeperTest, IsWokenFromEachSleepAnew) {
  for (int sleep = 0; sleep < 1000; ++sleep) {
    sleeper_.announce(100);
    sleeper_.wake_for(100);
    ASSERT_TRUE(is_called(sleeper_)) << "from sleep " << sleep;
  }
}

// A thread that took it away, to wake the worker, could be preempted before it does.
TEST_F(SleeperTest, TheAnnouncementStaysUntilTheWorkerTakesItBack) {
  sleeper_.announce(100);
  sleeper_.wake_for(100);
  EXPECT_FALSE(sleeper_.awake());
  EXPECT_TRUE(is_called(sleeper_));
  EXPECT_TRUE(sleeper_.awake());
}

TEST_F(SleeperTest, IsCalledOnceForAHerd) {
  sleeper_.announce(100);
  sleeper_.wake_for(100);
  // The worker is called, and does not run yet, or it would take its announcement back.
  parking(sleeper_).park_until(kForever);
  for (int i = 0; i < 1000; ++i) sleeper_.wake_for(100);
  EXPECT_TRUE(is_not_called(sleeper_)) << "some called again";
}

/// A worker in its sleep. The announcement is that of this thread, so that it stands before others wake.
class Asleep {
 public:
  explicit Asleep(Sleeper& sleeper) {
    sleeper.announce(100);
    worker_ = std::jthread([&] {
      const std::int64_t until = steady_now() + std::chrono::nanoseconds(test::kGenerous).count();
      begun_.count_down();
      sleeper.sleep_until(until);
      in_time_ = steady_now() < until;
    });
    EXPECT_TRUE(begun_.wait());
    // A worker that has not come to the system call yet makes the test easier, no more.
    std::this_thread::sleep_for(20ms);
  }
  bool ends_before_its_time() {
    worker_.join();
    return in_time_;
  }

 private:
  test::Latch begun_;
  bool in_time_ = false;
  std::jthread worker_;
};

TEST_F(SleeperTest, IsWokenByTheNextThreadWhenOneStopsBeforeItWakes) {
  Asleep worker(sleeper_);
  parking(sleeper_).leave_call();  // and not wake(): a thread that was preempted in between
  sleeper_.wake_for(100);
  EXPECT_TRUE(worker.ends_before_its_time());
}

TEST_F(SleeperTest, IsWokenFromItsSleepWhenAThreadWakesItFromAnEarlierOneTooLate) {
  sleeper_.announce(100);
  parking(sleeper_).leave_call();
  EXPECT_TRUE(is_called(sleeper_));
  Asleep worker(sleeper_);
  parking(sleeper_).wake();  // the second step of the thread above, only now
  sleeper_.wake_for(100);
  EXPECT_TRUE(worker.ends_before_its_time());
}

// Windows ends ordinary waits with a time at a tick of its own, each 15.6 ms. The first begins anywhere in one.
TEST_F(SleeperTest, ShortSleepsAreNotRoundedToTheTicksOfTheSystem) {
  std::vector<std::int64_t> lengths;
  for (int sleep = 0; sleep < 30; ++sleep) {
    const std::int64_t begin = steady_now();
    sleeper_.sleep_until(begin + 1'000'000);
    lengths.push_back(steady_now() - begin);
  }
  // The shortest but one: none of the others has to be so short on a busy machine.
  std::nth_element(lengths.begin(), lengths.begin() + 1, lengths.end());
  EXPECT_LT(lengths[1], 8'000'000) << "ns";
}

#if defined(__linux__)

/// What the system says a thread of this process is at: R while it runs or waits for a processor, S while it sleeps.
char state_of(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_ends = line.rfind(')');
  return name_ends + 2 < line.size() ? line[name_ends + 2] : '?';
}

// One that ends too early, and is begun again and again, would be over in time as well.
TEST_F(SleeperTest, SleepsInOneGo) {
  int asleep = 0;
  int awake_again = 0;
  // Two, since the system is told the time as seconds and a rest: one of them has no end of a second in it. More where
  // a busy machine does not let them begin.
  for (int sleep = 0; sleep < 2 || (asleep < 10 && sleep < 50); ++sleep) {
    const std::int64_t until = steady_now() + 100'000'000;
    std::atomic<long> id = 0;
    std::jthread worker([&] {
      id = syscall(SYS_gettid);
      sleeper_.sleep_until(until);
    });
    while (id == 0) std::this_thread::yield();
    for (bool fell_asleep = false;; std::this_thread::sleep_for(1ms)) {
      const char state = state_of(id);
      if (steady_now() >= until) break;
      if (state == 'R' && fell_asleep) ++awake_again;
      if (state != 'S') continue;
      fell_asleep = true;
      ++asleep;
    }
  }
  EXPECT_GT(asleep, 0);
  EXPECT_EQ(awake_again, 0);
}

#endif

TEST_F(SleeperTest, IsWokenFromAnEndlessSleep) {
  sleeper_.announce(kForever);
  std::jthread worker([&] { sleeper_.sleep_until(kForever); });
  std::this_thread::sleep_for(5ms);
  sleeper_.wake();
  worker.join();
  EXPECT_TRUE(sleeper_.awake());
}

}  // namespace
}  // namespace hwt::internal
