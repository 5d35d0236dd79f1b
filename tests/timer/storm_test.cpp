// Storms of reschedule(): several threads move the same timeouts, to earlier and to later. The worker may meet a
// timeout at any point of a move.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

template <class T>
class Storm : public ::testing::Test {};
TYPED_TEST_SUITE(Storm, ThreadedTimers);

struct Run {
  std::atomic<int> count = 0;
  std::atomic<steady_clock::rep> at = 0;
  std::atomic<steady_clock::rep> first_promise = std::numeric_limits<steady_clock::rep>::max();  // the earliest of all

  void promise(steady_clock::time_point deadline) {
    const auto promised = deadline.time_since_epoch().count();
    for (auto seen = first_promise.load(); promised < seen && !first_promise.compare_exchange_weak(seen, promised);) {
    }
  }
};

/// A reschedule() that returned false.
struct Refusal {
  std::size_t which;
  steady_clock::rep begun;
};

/// Several threads move the same timeouts, but never to before `floor`. At last each gets a deadline of its own.
TYPED_TEST(Storm, NothingIsEarlyOrLostAndEachRunsOnce) {
  constexpr int kThreads = 4;
  constexpr std::size_t kTimeouts = 200;
  constexpr int kRounds = 20 / (kSanitized ? 4 : 1);
  std::vector<Run> runs(kTimeouts);
  TypeParam timer{1ms};
  for (int round = 0; round < kRounds; ++round) {
    Latch ran(kTimeouts);
    std::vector<Timeout> timeouts;
    for (Run& run : runs) {
      run.count = 0;
      timeouts.push_back(timer.new_timeout(
          [&run, &ran] {
            run.at = steady_clock::now().time_since_epoch().count();
            ++run.count;
            ran.count_down();
          },
          kFar));
    }
    if (round % 2 == 0) await_transfer(timer);
    const auto floor = steady_clock::now() + 60ms;
    std::atomic<int> early = 0;
    run_together(kThreads, [&](int thread) {
      std::minstd_rand random(static_cast<unsigned>(round * kThreads + thread) + 1);
      while (steady_clock::now() < floor - 20ms) {
        Timeout timeout = timeouts[random() % kTimeouts];
        const std::chrono::microseconds later(random() % (random() % 2 == 0 ? 2000 : 1'000'000));
        const auto delay = (floor - steady_clock::now()) + later;
        // reschedule() reads its clock after this thread, so the new deadline is not before `floor`.
        if (!timeout.reschedule(delay) && steady_clock::now() < floor) ++early;
      }
    });
    EXPECT_EQ(early, 0);
    std::minstd_rand random(static_cast<unsigned>(round) + 1);
    std::vector<steady_clock::time_point> promised(kTimeouts, floor);
    for (std::size_t i = 0; i < kTimeouts; ++i) {
      const std::chrono::microseconds delay(20'000 + random() % 20'000);
      const auto before = steady_clock::now();
      if (timeouts[i].reschedule(delay)) promised[i] = before + delay;
    }
    ASSERT_TRUE(ran.wait()) << "lost";
    for (std::size_t i = 0; i < kTimeouts; ++i) {
      EXPECT_GE(steady_clock::time_point(steady_clock::duration(runs[i].at)), promised[i]) << "early";
    }
    EXPECT_EQ(timer.pending_timeouts(), 0);
    for (const Run& run : runs) EXPECT_EQ(run.count, 1);
  }
  EXPECT_TRUE(is_balanced(timer.stats()));
}

/// Deadlines that come while they are moved: each timeout runs or is cancelled, once, none is early, and none is lost.
/// In odd rounds there are few timeouts, so that the threads meet at them, and most deadlines are far away.
TYPED_TEST(Storm, AtTheirDeadlinesEachTimeoutEndsOnce) {
  constexpr int kThreads = 4;
  TypeParam timer{1ms};
  std::int64_t rounds = 0;
  for (const Deadline end(2s); !end.passed(); ++rounds) {
    const bool few = rounds % 2 != 0;
    const std::size_t count = few ? 4 : 64;
    std::vector<Run> runs(count);
    std::vector<std::atomic<int>> cancels(count);
    std::atomic<int> refused_and_pending = 0;
    std::vector<std::vector<Refusal>> refusals(kThreads);
    Latch ended(static_cast<int>(count));
    std::vector<Timeout> timeouts;
    for (Run& run : runs) {
      timeouts.push_back(timer.new_timeout(
          [&] {
            run.at = steady_clock::now().time_since_epoch().count();
            ++run.count;
            ended.count_down();
          },
          kFar));
    }
    run_together(kThreads, [&](int thread) {
      std::minstd_rand random(static_cast<unsigned>(rounds * kThreads + thread) + 1);
      const auto move = [&](std::size_t which, std::chrono::microseconds delay) {
        Timeout timeout = timeouts[which];
        const auto before = steady_clock::now();
        if (timeout.reschedule(delay)) {
          runs[which].promise(before + delay);
          return;
        }
        refusals[static_cast<std::size_t>(thread)].push_back({which, before.time_since_epoch().count()});
        if (!timeout.is_expired() && !timeout.is_cancelled()) ++refused_and_pending;
      };
      for (int i = 0; i < 2000; ++i) {
        const std::size_t which = random() % count;
        if (random() % (few ? 20'000 : 256) == 0) {
          if (!Timeout(timeouts[which]).cancel()) continue;
          ++cancels[which];
          ended.count_down();
        } else if (few) {
          move(which, (random() % 64 == 0 ? 2000 + random() % 1000 : 100'000 + random() % 100'000'000) * 1us);
        } else {
          move(which, (random() % 8 == 0 ? random() % 4000 : 2000 + random() % 20'000) * 1us);
        }
      }
      // The last deadline is near, whichever thread comes last.
      for (std::size_t which = 0; which < count; ++which) move(which, (random() % 3000) * 1us);
    });
    ASSERT_TRUE(ended.wait(10s)) << "lost";
    EXPECT_EQ(refused_and_pending, 0);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(runs[i].count + cancels[i], 1);
      if (runs[i].count == 0) continue;
      EXPECT_GE(runs[i].at, runs[i].first_promise) << "early";
      // If two calls raced with the expiry and were refused, one of them may have left its own deadline there.
      std::ptrdiff_t raced = 0;
      for (const std::vector<Refusal>& of_thread : refusals) {
        raced += std::count_if(of_thread.begin(), of_thread.end(), [&](const Refusal& refusal) {
          return refusal.which == i && refusal.begun <= runs[i].at;
        });
      }
      if (raced < 2) {
        EXPECT_GE(runs[i].at, timeouts[i].deadline().time_since_epoch().count()) << "early";
      }
    }
    EXPECT_EQ(timer.pending_timeouts(), 0);
  }
  EXPECT_TRUE(is_balanced(timer.stats()));
}

}  // namespace
}  // namespace hwt
