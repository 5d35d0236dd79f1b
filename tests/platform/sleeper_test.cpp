// Tests which deadlines end the worker's sleep, also while another thread is in the middle of waking the worker.

#include "hashed_wheel_timer/internal/platform/sleeper.h"

#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "tests/support/test_support.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#endif

namespace hwt::internal {
namespace {

using namespace std::chrono_literals;

class SleeperTest : public ::testing::Test {
 protected:
  /// Sleeps. Returns whether a thread ends the sleep early.
  bool is_woken() {
    const std::int64_t until = steady_now() + std::chrono::nanoseconds(test::kGenerous).count();
    sleeper_.sleep_until(until);
    return steady_now() < until;
  }
  /// Sleeps. Returns whether the sleep lasts until its time.
  bool is_not_woken() {
    const std::int64_t until = steady_now() + 5'000'000;
    sleeper_.sleep_until(until);
    return steady_now() >= until;
  }

  class OpenSleeper : public Sleeper {
   public:
    using Sleeper::parking_;
  };
  OpenSleeper sleeper_;
};

TEST_F(SleeperTest, IsWokenForADeadlineUpToTheAnnouncedTimeAndNotForALaterOneNorForOneThatNeverComes) {
  for (const auto& [announced, too_late, in_time] :
       {std::array<std::int64_t, 3>{100, 101, 100}, {kForever, kForever, kForever - 1}}) {
    sleeper_.announce(announced);
    sleeper_.wake_for(too_late);
    EXPECT_TRUE(is_not_woken()) << announced;
    sleeper_.announce(announced);
    sleeper_.wake_for(in_time);
    EXPECT_TRUE(is_woken()) << announced;
  }
}

TEST_F(SleeperTest, IsWokenForADeadlineUpToTheEarlierTimeThatItAnnouncesNext) {
  sleeper_.announce(100);
  sleeper_.announce_earlier(100, 50);
  sleeper_.wake_for(51);
  EXPECT_TRUE(is_not_woken());
  sleeper_.announce(kForever);
  sleeper_.announce_earlier(kForever, 50);
  sleeper_.wake_for(50);
  EXPECT_TRUE(is_woken());
}

TEST_F(SleeperTest, AThreadThatHasTakenTheAnnouncementCallsTheDriverOnce) {
  struct Driver final : Sleeper::Outside {
    void call() noexcept override { ++calls; }
    int calls = 0;
  };
  Driver driver;
  sleeper_.set_outside(&driver);
  sleeper_.announce(100);
  sleeper_.wake_for(100);
  sleeper_.announce_earlier(100, 50);
  sleeper_.wake_for(50);
  EXPECT_EQ(driver.calls, 1);
  EXPECT_TRUE(sleeper_.awake());
}

TEST_F(SleeperTest, IsNotWokenWhileItIsAwake) {
  sleeper_.announce(100);
  sleeper_.retract();
  EXPECT_TRUE(sleeper_.awake());
  sleeper_.wake_for(0);
  sleeper_.wake_if_asleep();
  EXPECT_TRUE(is_not_woken());
}

// A worker that sleeps until the end of a tick announces the beginning of that tick. A deadline at exactly this time is
// due in the tick before.
TEST_F(SleeperTest, IsWokenForADeadlineOnTheGridThatIsDueInATickBefore) {
  constexpr TickGrid kGrid{5, 10};
  for (const Tick sleeps_through : {Tick{1}, Tick{7}}) {
    const std::int64_t deadline = kGrid.begin_of(sleeps_through);
    ASSERT_EQ(kGrid.due_tick(deadline), sleeps_through - 1);
    ASSERT_EQ(kGrid.due_tick(deadline + 1), sleeps_through);
    sleeper_.announce(kGrid.begin_of(sleeps_through));
    sleeper_.wake_for(deadline + 1);
    EXPECT_TRUE(is_not_woken());
    sleeper_.announce(kGrid.begin_of(sleeps_through));
    sleeper_.wake_for(deadline);
    EXPECT_TRUE(is_woken());
  }
}

// If a waker took the announcement away, it could be preempted before it wakes the worker, and no other thread would
// wake it.
TEST_F(SleeperTest, TheAnnouncementStaysUntilTheWorkerTakesItBack) {
  sleeper_.announce(100);
  sleeper_.wake_for(100);
  EXPECT_FALSE(sleeper_.awake());
  EXPECT_TRUE(is_woken());
  EXPECT_TRUE(sleeper_.awake());
}

TEST_F(SleeperTest, IsWokenOnceForAHerd) {
  sleeper_.announce(100);
  sleeper_.wake_for(100);
  // Consumes the wake-up without retracting the announcement, as if the woken worker did not run yet.
  sleeper_.parking_.park_until(kForever);
  for (int i = 0; i < 1000; ++i) sleeper_.wake_for(100);
  EXPECT_TRUE(is_not_woken()) << "some thread woke it again";
}

/// A sleeping worker. The test thread makes the announcement, so that it precedes all wake-ups.
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
    // If the worker has not reached the system call by then, the test is only easier to pass.
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
  sleeper_.parking_.set_permit();  // without wake_sleeper(), like a thread that is preempted between the two steps
  sleeper_.wake_for(100);
  EXPECT_TRUE(worker.ends_before_its_time());
}

TEST_F(SleeperTest, IsWokenFromItsSleepWhenAThreadWakesItFromAnEarlierOneTooLate) {
  sleeper_.announce(100);
  sleeper_.parking_.set_permit();
  EXPECT_TRUE(is_woken());
  Asleep worker(sleeper_);
  sleeper_.parking_.wake_sleeper();  // the late second step of that thread
  sleeper_.wake_for(100);
  EXPECT_TRUE(worker.ends_before_its_time());
}

// Windows ends ordinary timed waits at its own ticks of 15.6 ms. By chance one sleep may end soon at such a tick.
TEST_F(SleeperTest, ShortSleepsAreNotRoundedToTheTicksOfTheSystem) {
  std::vector<std::int64_t> lengths;
  for (int sleep = 0; sleep < 30; ++sleep) {
    const std::int64_t begin = steady_now();
    sleeper_.sleep_until(begin + 1'000'000);
    lengths.push_back(steady_now() - begin);
  }
  // Checks the second shortest only, because on a busy machine the others may be longer.
  std::nth_element(lengths.begin(), lengths.begin() + 1, lengths.end());
  EXPECT_LT(lengths[1], 8'000'000) << "ns";
}

#if defined(__linux__)

/// Returns the state of a thread of this process: R while it runs or waits for a processor, S while it sleeps.
char state_of(long thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_ends = line.rfind(')');
  return name_ends + 2 < line.size() ? line[name_ends + 2] : '?';
}

// A loop of short sleeps would end in time too. So the test checks that the thread stays asleep.
TEST_F(SleeperTest, SleepsInOneGo) {
  int samples_asleep = 0, awake_again = 0;
  // The system call takes seconds and nanoseconds apart. So there are two sleeps, of which one crosses no full second.
  // On a busy machine there are more, until ten samples have found the thread asleep.
  for (int sleep = 0; sleep < 2 || (samples_asleep < 10 && sleep < 50); ++sleep) {
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
      ++samples_asleep;
    }
  }
  EXPECT_GT(samples_asleep, 0);
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
