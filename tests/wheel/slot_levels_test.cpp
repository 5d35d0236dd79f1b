// SlotLevels: its levels cover all ticks, and first() finds the first occupied slot.

#include "hashed_wheel_timer/internal/wheel/slot_levels.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace hwt::internal {
namespace {

TEST(SlotLevels, CoverTheWholeRangeOfTicks) {
  for (std::int64_t slots = SlotLevels::kMinSlots; slots <= SlotLevels::kMaxSlots; slots *= 2) {
    const SlotLevels levels(slots);
    const SlotLevels::SlotIndex top = levels.place_of(kNever, 0);
    EXPECT_EQ(top.level, levels.levels() - 1);
    EXPECT_LT(top.digit, static_cast<std::size_t>(slots));
    EXPECT_LE(levels.begin_of(top, 0), kNever);
    EXPECT_GT(levels.begin_of(top, 0), kNever / 2 / slots);
  }
}

TEST(SlotLevels, FirstIsTheFirstOccupiedSlotOfTheLowestOccupiedLevel) {
  for (const std::int64_t slots : {2, 64, 256, 4096}) {
    SlotLevels levels(slots);
    std::mt19937_64 random(1);
    std::set<std::pair<std::size_t, std::size_t>> occupied;
    EXPECT_FALSE(levels.any());
    for (int i = 0; i < 3000; ++i) {
      const SlotLevels::SlotIndex slot = {random() % levels.levels(), random() % static_cast<std::size_t>(slots)};
      if (i % 3 == 0) {
        levels.vacate(slot);
        occupied.erase({slot.level, slot.digit});
      } else {
        levels.occupy(slot);
        occupied.insert({slot.level, slot.digit});
        ASSERT_TRUE(levels.occupied(slot));
      }
      if (i % 5 == 0 && !occupied.empty()) {
        const SlotLevels::SlotIndex first = levels.first();
        levels.vacate(first);
        ASSERT_FALSE(levels.occupied(first));
        occupied.erase(occupied.begin());
      }
      ASSERT_EQ(levels.any(), !occupied.empty());
      if (occupied.empty()) continue;
      ASSERT_EQ(levels.first(), (SlotLevels::SlotIndex{occupied.begin()->first, occupied.begin()->second}));
    }
  }
}

}  // namespace
}  // namespace hwt::internal
