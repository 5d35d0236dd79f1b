#pragma once

// The promises of timers in the guide's loops.

#include <cstdlib>

#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "tests/support/test_support.h"

namespace hwt::test {

/// Threads schedule on a timer that a loop drives on another thread: by delay, by deadline, through a KeyedTimer, and
/// by moving a far timeout to earlier. Each thread waits until its own timeout has run, which must not be before the
/// deadline. Every 21st call finds a loop that has slept for some time, and would sleep on without end or for an hour.
inline void expect_driven(LoopTimer& timer) {
  struct Wait {
    steady_clock::time_point deadline;
    Latch ran;
    void end() {
      EXPECT_GE(steady_clock::now(), deadline);
      ran.count_down();
    }
  };
  for (const bool far : {false, true}) {
    Timeout keeps_asleep;
    if (far) keeps_asleep = timer.new_timeout([] {}, kFar);
    KeyedTimer<int, Wait*> keyed(timer, [](int, Wait* wait) { wait->end(); });
    run_together(3, [&](int thread) {
      std::mt19937 random(static_cast<std::uint32_t>(thread));
      for (int i = 0; i < 84; ++i) {
        if (i % 21 == 0) std::this_thread::sleep_for(20ms);  // lets the loop fall asleep before each kind of call
        Wait wait;
        const std::chrono::milliseconds delay(random() % 5);
        wait.deadline = steady_clock::now() + delay;
        if (i % 4 == 0) {
          timer.new_timeout([&] { wait.end(); }, delay);
        } else if (i % 4 == 1) {
          timer.new_timeout([&] { wait.end(); }, wait.deadline);
        } else if (i % 4 == 2) {
          (void)keyed.set(thread, &wait, delay);
        } else {
          EXPECT_TRUE(timer.new_timeout([&] { wait.end(); }, 2 * kFar).reschedule(delay));
        }
        ASSERT_TRUE(wait.ran.wait());
      }
    });
    keeps_asleep.cancel();
    EXPECT_EQ(timer.pending_timeouts(), 0);
  }
}

/// Runs a loop on a thread of its own by run(), and ends it by end() on this thread. Before, other threads use the
/// timer in some rounds. In the others the loop may sleep until a far timeout, sleep without one, be awake, or not run
/// yet. The loop ends in all of them.
template <class Run, class End>
void expect_driven_and_ended(int round, LoopTimer& timer, Run run, End end) {
  Latch ended;
  std::thread loop([&] {
    run();
    ended.count_down();
  });
  if (round == 0) expect_driven(timer);
  Timeout far, earlier;
  if (round % 2 == 0) far = timer.new_timeout(must_not_run, 2 * kFar);
  if (round % 3 != 0) std::this_thread::sleep_for(1ms);  // it may fall asleep
  if (round % 5 == 0) earlier = timer.new_timeout(must_not_run, kFar);
  end();
  if (!ended.wait()) {
    ADD_FAILURE() << "the loop sleeps on, although it was told to end: round " << round;
    std::abort();  // because nothing ends its thread
  }
  loop.join();
}

inline constexpr int kDrivenRounds = 60;

}  // namespace hwt::test
