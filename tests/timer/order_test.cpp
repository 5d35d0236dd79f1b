// Timeouts that one thread schedules with deadlines that do not decrease run in that order. This also holds when the
// thread sifts its place and drops dead entries.

#include <algorithm>
#include <optional>
#include <random>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/handover/inbox.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

void must_not_run() { ADD_FAILURE() << "ran although it was cancelled"; }

class Order {
 public:
  explicit Order(int timeouts) : ran_(timeouts) { order_.reserve(static_cast<std::size_t>(timeouts)); }

  /// A task for number `i`.
  auto task(int i) {
    return [this, i] {
      order_.push_back(i);
      ran_.count_down();
    };
  }
  void expect_ascending() {
    ASSERT_TRUE(ran_.wait()) << "lost";
    EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
    EXPECT_EQ(std::adjacent_find(order_.begin(), order_.end()), order_.end()) << "ran twice";
  }

 private:
  std::vector<int> order_;
  Latch ran_;
};

/// While the worker is held, and while it runs.
class OrderOfOneThread : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Worker, OrderOfOneThread, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Held" : "Runs"; });

TEST_P(OrderOfOneThread, HoldsWhileItTidiesUpBehindItself) {
  constexpr int kTimeouts = 20'000 / (kSanitized ? 10 : 1);
  constexpr int kDead = 40;  // for each that lives
  Order order(kTimeouts);
  HashedWheelTimer timer(1ms);
  {
    std::optional<Gate> gate;
    if (GetParam()) gate.emplace(timer);
    std::minstd_rand random(1);
    std::vector<Timeout> dead_soon;
    for (int i = 0; i < kTimeouts; ++i) {
      for (auto dead = random() % kDead; dead != 0; --dead) {
        dead_soon.push_back(timer.new_timeout(must_not_run, kFar));
        if (random() % 2 == 0) dead_soon.back().cancel();
      }
      timer.new_timeout(order.task(i), 0ns);
      if (i % 100 != 99) continue;
      std::jthread([&] {
        for (Timeout& timeout : dead_soon) timeout.cancel();
        dead_soon.clear();
      }).join();
    }
    EXPECT_LT(timer.stats().backlog, 4 * kTimeouts) << "it did not tidy up";
  }
  order.expect_ascending();
}

/// Without memory, some entries that a thread sifts cannot go back to their queue. Nothing that it schedules afterwards
/// overtakes that, be it before the worker comes to it or after. Whether it happens depends on how the entries lie.
TEST(OrderWithoutMemory, NothingOvertakesEntriesThatCouldNotBePutBack) {
  constexpr int kTidy = internal::Producer::kTidyAt;
  int spilled = 0;
  for (int dead = 1; dead <= 80; ++dead) {
    int next = 0;
    const int timeouts = 4 * (kTidy - dead) + 200;
    Order order(timeouts);
    HashedWheelTimer timer(1ms);
    const auto schedule = [&](int count) {
      for (int i = 0; i < count; ++i) timer.new_timeout(order.task(next++), 0ns);
    };
    {
      const Gate gate(timer);
      const Timeout far = timer.new_timeout([] {}, kFar);
      for (int i = 0; i < dead; ++i) EXPECT_TRUE(timer.new_timeout(must_not_run, kFar).cancel());
      schedule(kTidy - dead);
      // With `far` they are alive, and the place may grow to four times as many.
      schedule(3 * (kTidy - dead) - 5);
      {
        const Shortage shortage(0, Shortage::kAll);
        for (int i = 0; i < 6; ++i) next += timer.try_new_timeout(order.task(next), 0ns) ? 1 : 0;
      }
      internal::Node::of(far)->core().producers().for_each(
          [&](internal::Producer& producer) { spilled += internal::Inbox::spilled(producer.place) ? 1 : 0; });
      if (dead % 2 == 0) schedule(timeouts - next);
    }
    EXPECT_TRUE(dead % 2 == 0 || eventually([&] { return timer.stats().backlog == 0; }));
    schedule(timeouts - next);
    order.expect_ascending();
  }
  EXPECT_GT(spilled, 0) << "memory was never missing";
}

}  // namespace
}  // namespace hwt
