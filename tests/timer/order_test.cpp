// Timeouts that one thread schedules with deadlines that do not decrease run in that order. This also holds when the
// thread sifts its place and drops dead entries.

#include <algorithm>
#include <optional>
#include <random>

#include "hashed_wheel_timer/internal/handover/entry_buffer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

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

/// So many stay alive that they move to the queue.
TEST(OrderOfManyTimeouts, HoldsWhileTheyMoveToTheQueue) {
  constexpr int kTimeouts = 70'000;
  Order order(kTimeouts);
  HashedWheelTimer timer(1ms);
  {
    const Gate gate(timer);
    for (int i = 0; i < kTimeouts; ++i) timer.new_timeout(order.task(i), 0ns);
  }
  order.expect_ascending();
}

/// Without memory a thread keeps its live timeouts, drops dead ones, and refuses new ones. When there is memory again,
/// no timeout has overtaken another.
TEST(OrderWithoutMemory, HoldsForTimeoutsBeforeAndAfterTheShortage) {
  constexpr int kFew = internal::Tuning::kFewest;
  for (const int alive : {1, kFew / 2, kFew, 5 * kFew}) {
    constexpr int kTimeouts = 20 * kFew;
    Order order(kTimeouts);
    HashedWheelTimer timer(1ms);
    int next = 0;
    int refused = 0;
    {
      const Gate gate(timer);
      const auto dead = [&] { EXPECT_TRUE(timer.new_timeout(must_not_run, kFar).cancel()); };
      for (; next < alive; ++next) timer.new_timeout(order.task(next), 0ns);
      for (int i = 0; i < 3 * kFew; ++i) dead();
      {
        const Shortage shortage(0, Shortage::kAll);
        for (int i = 0; i < 8 * kFew; ++i) {
          if (timer.try_new_timeout(order.task(next), 0ns)) {
            ++next;
          } else {
            ++refused;
          }
        }
      }
      while (next < kTimeouts) {
        dead();
        timer.new_timeout(order.task(next++), 0ns);
      }
    }
    order.expect_ascending();
    EXPECT_GT(refused, 0) << alive;
  }
}

}  // namespace
}  // namespace hwt
