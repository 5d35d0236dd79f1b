// Floods. Memory is bounded by the number of pending timeouts, however long the worker is held. The work of a pass is
// bounded by a constant. The worker looks only at threads that have something for it, however many there are.

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/handover/intake.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt::test {
namespace {

constexpr int kSlower = kSanitized || kCounting ? 10 : 1;

constexpr std::int64_t kMayGrow = 4 << 20;

class HeldWorker : public ::testing::TestWithParam<int> {
 protected:
  static constexpr int kOperations = 2'000'000 / kSlower;
  int threads() const { return GetParam(); }
  int each() const { return kOperations / threads(); }

  /// Calls f(thread, growth) on all threads at once while the worker is held. Then lets the worker go on.
  template <class F>
  void flood(HashedWheelTimer& timer, F f) {
    const std::int64_t pending_before = timer.pending_timeouts();
    const auto gate = std::make_unique<Gate>(timer);
    Growth growth;
    run_together(threads(), [&](int thread) { f(thread, growth); });
    EXPECT_LE(growth.most(), kMayGrow) << "during";
    gate->open();
    EXPECT_TRUE(ran_in_task(timer, [] {}));
    EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
    EXPECT_LE(growth.now(), kMayGrow) << "after";
    EXPECT_EQ(timer.pending_timeouts(), pending_before);
  }
};

/// Calls step(i) so often, and looks at the memory now and then.
template <class Step>
void repeat(int times, Growth& growth, Step step) {
  for (int i = 0; i < times; ++i) {
    step(i);
    if (i % 4096 == 0) growth.look();
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, HeldWorker, ::testing::Values(1, 2, 8),
                         [](const auto& info) { return std::to_string(info.param); });

TEST_P(HeldWorker, OwnCancelsLeaveNothing) {
  for (const std::int64_t limit : {-1, 10}) {
    HashedWheelTimer timer{{.tick_duration = 1ms, .max_pending_timeouts = limit}};
    flood(timer, [&](int, Growth& growth) {
      repeat(each(), growth, [&](int) {
        Timeout timeout = timer.try_new_timeout(must_not_run, kFar);
        EXPECT_EQ(timeout.cancel(), limit < 0 || timeout);
      });
    });
  }
}

TEST_P(HeldWorker, OwnCancelsAmongPendingOnesLeaveNothing) {
  constexpr std::size_t kPending = 1000;
  HashedWheelTimer timer(1ms);
  flood(timer, [&](int thread, Growth& growth) {
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    std::array<Timeout, kPending> ring;
    repeat(each(), growth, [&](int) {
      Timeout& timeout = ring[random() % kPending];
      timeout.cancel();
      timeout = timer.new_timeout(must_not_run, kFar);
    });
    for (Timeout& timeout : ring) timeout.cancel();
  });
}

TEST_P(HeldWorker, CancelsByAnotherThreadLeaveNothing) {
  constexpr int kBatch = 256;
  HashedWheelTimer timer(1ms);
  flood(timer, [&](int, Growth& growth) {
    const int rounds = each() / kBatch;
    std::vector<Timeout> batch(kBatch);
    Barrier handed_over(2);
    std::jthread canceller([&] {
      for (int round = 0; round < rounds; ++round) {
        handed_over.arrive_and_wait();
        for (Timeout& timeout : batch) EXPECT_TRUE(std::exchange(timeout, {}).cancel());
        handed_over.arrive_and_wait();
      }
    });
    for (int round = 0; round < rounds; ++round) {
      for (Timeout& timeout : batch) timeout = timer.new_timeout(must_not_run, kFar);
      handed_over.arrive_and_wait();
      handed_over.arrive_and_wait();
      growth.look();
    }
  });
}

TEST_P(HeldWorker, CallablesOfTheirOwnMemoryLeaveNothing) {
  HashedWheelTimer timer(1ms);
  flood(timer, [&](int, Growth& growth) {
    const auto large = [pad = std::array<char, 200>{}] { (void)pad; };
    repeat(each() / 4, growth, [&](int) { EXPECT_TRUE(timer.new_timeout(large, kFar).cancel()); });
  });
}

/// In the wheel: one timeout of each thread, and one that all have in common. And one of each thread in the queue.
TEST_P(HeldWorker, ReschedulesLeaveNothing) {
  HashedWheelTimer timer(1ms);
  const std::vector<Timeout> in_wheel = far_timeouts(timer, static_cast<std::size_t>(threads()) + 1, 2 * kFar);
  flood(timer, [&](int thread, Growth& growth) {
    Timeout queued = timer.new_timeout(must_not_run, 2 * kFar);
    std::array<Timeout, 3> moved{in_wheel[static_cast<std::size_t>(thread)], in_wheel.back(), queued};
    repeat(each() / 2, growth, [&](int i) {
      for (Timeout& timeout : moved) EXPECT_TRUE(timeout.reschedule(kFar + (i % 2 == 0 ? -i : i) * 1us));
    });
    EXPECT_TRUE(queued.cancel());
  });
}

constexpr int kFlood = 300'000;
// The most entries of each kind that a pass takes; see Worker. The tests allow 1,000 more, of the next pass.
constexpr int kNewInAPass = 100'000;
constexpr int kRechecksInAPass = 8192;

TEST(Pass, OverCancelledTimeoutsEndsForADueOne) {
  const auto task = std::make_shared<RecordingTask>();
  int collected_before_it = -1;
  Latch ran;
  HashedWheelTimer timer(1ms);
  std::vector<Timeout> timeouts;
  for (int i = 0; i < kFlood; ++i) timeouts.push_back(timer.new_timeout(task, kFar));
  ASSERT_TRUE(ran_in_task(timer, [] {}));
  ASSERT_TRUE(eventually([&] {
    EXPECT_TRUE(ran_in_task(timer, [] {}));
    return timer.stats().backlog == 0;
  }));
  {
    const Gate gate(timer);
    for (Timeout& timeout : timeouts) EXPECT_TRUE(timeout.cancel());
    after(timer, 0ns, [&] {
      collected_before_it = task->cancellations;
      ran.count_down();
    });
    std::this_thread::sleep_for(5ms);  // so that its tick is over
  }
  ASSERT_TRUE(ran.wait());
  EXPECT_LE(collected_before_it, kRechecksInAPass + 1000);
  EXPECT_TRUE(eventually([&] { return task->cancellations == kFlood; })) << task->cancellations;
  EXPECT_EQ(task->runs, 0);
}

/// Due timeouts are in the wheel, each in a tick of its own. Another thread has scheduled one more, which is therefore
/// not behind the flood in one place of the inbox.
TEST(Pass, OfNewOnesEndsForAllThatIsDue) {
  constexpr int kDue = 50;
  std::int64_t least_backlog = kFlood;
  Latch ran(kDue + 1);
  HashedWheelTimer timer(1ms);
  const auto probe = [&](std::chrono::milliseconds delay) {
    return timer
        .new_timeout(
            [&] {
              least_backlog = std::min(least_backlog, timer.stats().backlog);
              ran.count_down();
            },
            delay)
        .deadline();
  };
  for (int i = 1; i < kDue; ++i) probe(300ms + i * 2ms);
  const auto due = probe(300ms + kDue * 2ms);
  Gate gate(timer);
  least_backlog = kFlood;  // forgets probes that ran before the gate, on a machine that took 300 ms to come here
  for (int i = 0; i < kFlood; ++i) timer.new_timeout(must_not_run, kFar);
  std::jthread([&] { probe(0ms); }).join();
  std::this_thread::sleep_until(std::max(due, timer.now()) + 10ms);  // so that the ticks of all are over
  gate.open();
  ASSERT_TRUE(ran.wait());
  EXPECT_GE(least_backlog, kFlood - kNewInAPass - 1000);
}

TEST(ManyThreads, AreNotLookedAtWhenTheyHaveNothing) {
  constexpr std::size_t kPlaces = 20'000 / kSlower;
  internal::Inbox inbox;
  internal::Intake intake(inbox);
  std::vector<internal::Inbox::Place> places(kPlaces);
  std::array<internal::NodeName, 16> entries;
  const auto put = [&](internal::Inbox::Place& place) {
    ASSERT_NE(internal::Inbox::make_room(place, 1, 1), 0U);
    ASSERT_TRUE(internal::Inbox::put(place, {0, 1}));
    inbox.list(place, 2);
  };
  for (auto& place : places) put(place);
  EXPECT_EQ(intake.earliest_waiting(), 2);
  intake.open(2, false);
  std::size_t taken = 0;
  std::array<internal::Node*, 16> looks;
  const auto no_looks = [&] { return intake.take_rechecks(looks.data(), looks.size()) == 0; };
  EXPECT_TRUE(no_looks());
  while (const std::size_t count = intake.take(entries.data(), entries.size())) taken += count;
  EXPECT_EQ(taken, kPlaces);
  EXPECT_FALSE(intake.any());
  intake.open(2, true);
  EXPECT_FALSE(intake.any());
  EXPECT_EQ(intake.earliest_waiting(), internal::Inbox::kUnlisted);
  for (const std::size_t i : {std::size_t{0}, kPlaces / 2, kPlaces - 1}) {
    put(places[i]);
    EXPECT_EQ(intake.earliest_waiting(), 2);
    intake.open(2, false);
    EXPECT_TRUE(no_looks());
    EXPECT_EQ(intake.take(entries.data(), entries.size()), 1u);
    EXPECT_FALSE(intake.any()) << "it has more to look at than that one";
  }
}

TEST(ManyThreads, LeaveNothingForTheWorkerToLookAt) {
  constexpr int kThreads = 1000 / kSlower;
  HashedWheelTimer timer(1ms);
  Barrier all_have_used_it(kThreads + 1);
  auto threads = start_threads(kThreads, [&](int) {
    EXPECT_TRUE(timer.new_timeout(must_not_run, kFar).cancel());
    all_have_used_it.arrive_and_wait();  // all of them are there
    all_have_used_it.arrive_and_wait();
  });
  all_have_used_it.arrive_and_wait();
  const Timeout timeout = timer.new_timeout([] {}, 0ms);  // after it, a pass takes the rest
  internal::Core& core = internal::Node::of(timeout)->core();
  int producers = 0;
  EXPECT_TRUE(eventually([&] {
    int listed = 0;
    producers = 0;
    core.producers().for_each([&](internal::Producer& producer) {
      ++producers;
      listed += producer.place.earliest() != internal::Inbox::kUnlisted ? 1 : 0;
    });
    return listed == 0;
  }));
  EXPECT_GE(producers, kThreads);
  all_have_used_it.arrive_and_wait();
}

}  // namespace
}  // namespace hwt::test
