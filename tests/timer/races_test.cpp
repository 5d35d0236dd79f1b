// Races of several threads, each hunted for a bounded time. More of them: conformance_test, cancel_and_wait_test and
// tests/oracle.

#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"
#include "tests/support/when_copied.h"

namespace hwt::test {
namespace {

/// The destruction of a cancelled callable, on any thread, destroys the timer.
TEST(Races, DestroyInsideACancel) {
  for (const Deadline end(350ms); !end.passed();) {
    std::vector<Timeout> handles(2);
    {
      const auto timer = std::make_shared<HashedWheelTimer>(1ms, 8);
      handles[0] = timer->new_timeout([timer] {}, 1ms);
      handles[1] = handles[0];
      timer->new_timeout([] {}, 1ms);
    }
    std::atomic<int> wins = 0;
    run_together(2, [&](int thread) {
      std::this_thread::sleep_for(1500us);
      wins += handles[thread].cancel() ? 1 : 0;
    });
    EXPECT_LE(wins, 1);
    EXPECT_TRUE(eventually([&] { return handles[0].timer() == nullptr; }));
    EXPECT_EQ(wins == 1, handles[0].is_cancelled());
  }
}

// Only ThreadSanitizer finds a data race here.
TEST(Races, PrintingAHandleWhileItsTimerGoes) {
  for (int round = 0; round < 100; ++round) {
    auto timer = std::make_unique<HashedWheelTimer>(1ms);
    const Timeout timeout = timer->new_timeout([] {}, kFar);
    run_together(2, [&](int thread) {
      if (thread == 0) {
        timer.reset();
      } else {
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(contains(text_of(timeout), "ns later"));
      }
    });
  }
}

/// While a callable is copied it has no place, and another timeout takes the last one. The copy is destroyed.
TEST(Limit, ACallerWhoLosesThePlaceWhileCopyingIsRefused) {
  for (const bool by_id : {false, true}) {
    const auto token = std::make_shared<int>();
    HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = 1});
    Timeout winner;
    const std::function<void()> take_the_place = [&] {
      EXPECT_EQ(timer.pending_timeouts(), 0);
      winner = timer.new_timeout([] {}, kFar);
    };
    const auto copied = [when_copied = WhenCopied(take_the_place), token] {};
    const auto schedule = [&] { by_id ? void(timer.add(copied, kFar)) : void(timer.new_timeout(copied, kFar)); };
    EXPECT_THROW(schedule(), RejectedExecution);
    EXPECT_TRUE(winner);
    EXPECT_EQ(token.use_count(), 2);
    EXPECT_EQ(timer.pending_timeouts(), 1);
    EXPECT_EQ(timer.stats().rejected, 1);
    EXPECT_TRUE(winner.cancel());
    EXPECT_EQ(timer.pending_timeouts(), 0);
    // It leaves no memory in use.
    const std::int64_t bytes = bytes_in_use;
    for (int i = 0; i < 10'000; ++i) {
      EXPECT_THROW(schedule(), RejectedExecution);
      EXPECT_TRUE(winner.cancel());
    }
    EXPECT_LT(bytes_in_use - bytes, 10'000 * 32);
  }
}

/// One place, which one thread gives back and asks for again while another asks for it: exactly one of them gets it. A
/// refusal takes nothing from others, not even for a moment.
TEST(Limit, APlaceIsRefusedOnlyIfItIsTaken) {
  HashedWheelTimer timer({.tick_duration = 1ms, .max_pending_timeouts = 1});
  std::array<Timeout, 2> held{timer.new_timeout([] {}, kFar), {}};  // by each thread
  std::atomic<int> arrived = 0;
  std::atomic<bool> over = false;
  const auto meet = [&](int times) {
    ++arrived;
    for (int spins = 0; arrived < 2 * times; ++spins)
      if (spins > 1000) std::this_thread::yield();
  };
  const Deadline end(700ms);
  run_together(2, [&](int thread) {
    Timeout& mine = held[static_cast<std::size_t>(thread)];
    std::minstd_rand random(static_cast<unsigned>(thread) + 1);
    for (int round = 1;; round += 2) {
      if (thread == 0) over = round > 200 && end.passed();
      meet(round);
      if (over) return;
      for (auto spin = random() % 512; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      mine.cancel();
      mine = timer.try_new_timeout([] {}, kFar);
      meet(round + 1);
      if (thread != 0) continue;
      EXPECT_NE(static_cast<bool>(held[0]), static_cast<bool>(held[1])) << "both or none, in round " << round;
      held[1].cancel();
      held[1] = Timeout();
      if (!held[0]) held[0] = timer.new_timeout([] {}, kFar);
    }
  });
}

}  // namespace
}  // namespace hwt::test
