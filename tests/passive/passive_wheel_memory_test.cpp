// PassiveWheel allocates nothing at all, and a node and a wheel are no larger than promised.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "tests/support/allocation_hook.h"

namespace hwt {
namespace {

using namespace std::chrono_literals;
using test::AllocationObserver;

struct Node : WheelNode {
  explicit Node(PassiveWheel& wheel) : wheel(&wheel) {}
  void on_timeout() override { wheel->schedule(*this, 77ms); }
  PassiveWheel* wheel;
};

TEST(PassiveWheelMemory, NothingIsAllocated) {
  const std::chrono::steady_clock::time_point start;
  std::vector<std::unique_ptr<Node>> nodes(1000);
  std::int64_t allocations = 0;
  {
    std::unique_ptr<AllocationObserver> observer;
    const auto count = [&](std::size_t) { ++allocations; };
    static_assert(sizeof(count) <= 2 * sizeof(void*), "fits into a std::function");
    PassiveWheel wheel(1ms, start);
    for (auto& node : nodes) node = std::make_unique<Node>(wheel);
    observer = std::make_unique<AllocationObserver>(count);
    allocations = 0;
    std::int64_t delay = 1;
    for (const auto& node : nodes) wheel.schedule(*node, (delay = delay * 7 % 100'003) * 1ms);
    for (std::int64_t now = 0; now < 200'000; now += 100) {
      wheel.advance(start + now * 1ms, 500);
      wheel.postpone(*nodes[static_cast<std::size_t>(now / 100) % 1000], 10s);
      nodes[static_cast<std::size_t>(now / 100) % 999]->cancel();
      (void)wheel.next_wakeup();
    }
    wheel.cancel_all();
    for (const auto& node : nodes) wheel.schedule(*node, 1h);
    EXPECT_EQ(allocations, 0);
    observer.reset();
  }
  EXPECT_FALSE(nodes[0]->scheduled());
}

TEST(PassiveWheelMemory, ANodeTakes48BytesAndAWheel33KiB) {
  EXPECT_LE(sizeof(WheelNode), 6 * sizeof(std::uint64_t));
  EXPECT_LE(sizeof(PassiveWheel), 33u * 1024 + 512);
}

}  // namespace
}  // namespace hwt
