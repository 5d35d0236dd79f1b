#pragma once

// Turns a wheel whose items are ModelItems, without a model beside it.

#include <string>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/internal/wheel/wheel.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/wheel_model.h"

namespace hwt::internal {

using test::Shortage;
using Item = ModelItem;

/// For a WheelModel.
inline void broken(const char* promise, Tick floor) { ADD_FAILURE() << promise << "; from tick " << floor; }

/// A number of items from which on a slot of a hierarchical wheel is crowded, and which no test has in a slot.
inline constexpr std::uint32_t kNoCrowd = 1'000'000;

/// Makes a wheel. A hashed one has no crowds.
template <Wheel W>
W wheel_of(std::int64_t size, std::uint32_t crowd = kNoCrowd) {
  if constexpr (std::constructible_from<W, std::int64_t, std::uint32_t>) {
    return W(size, crowd);
  } else {
    return W(size);
  }
}

template <Wheel W>
bool insert(W& wheel, Item& item, Tick due) {
  item.due = due;
  return wheel.insert(item, due);
}

/// The answer of most visitors: takes a due item, and leaves another one until it is due.
inline Verdict usual(WheelItem& visited, Tick tick) {
  Item& item = static_cast<Item&>(visited);
  EXPECT_GE(item.due, tick) << "late";
  if (item.due > tick) {
    ++item.moves;
    return Verdict::later(item.due);
  }
  item.came_at = tick;
  item.position = nullptr;
  return Verdict::taken();
}

/// Expires `tick`. Needs no memory.
template <Wheel W>
void expire_quietly(W& wheel, Tick tick) {
  wheel.expire(tick, [&](WheelItem& item) { return usual(item, tick); });
}
/// Expires `tick` and returns the items that were due, in order.
template <Wheel W>
std::vector<Item*> expire(W& wheel, Tick tick) {
  std::vector<Item*> taken;
  wheel.expire(tick, [&](WheelItem& item) {
    const Verdict verdict = usual(item, tick);
    if (verdict.is_taken()) taken.push_back(static_cast<Item*>(&item));
    return verdict;
  });
  return taken;
}

/// Expires all ticks before `end`. Returns in how many of them there was something to do. Needs no memory.
template <Wheel W>
int run_to(W& wheel, Tick end) {
  int ticks = 0;
  for (; wheel.next_due() < end; ++ticks) expire_quietly(wheel, wheel.next_due());
  wheel.skip_to(end);
  return ticks;
}
template <Wheel W>
int run_all(W& wheel) {
  return run_to(wheel, kNever);
}

}  // namespace hwt::internal
