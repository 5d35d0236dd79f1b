// How a wheel finds its next due tick: DueTree against a multiset, and the levels and the first occupied slot of
// SlotLevels against a set.

#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/internal/wheel/due_tree.h"
#include "hashed_wheel_timer/internal/wheel/slot_levels.h"

namespace hwt::internal {
namespace {

class DueTreeOfSize : public ::testing::TestWithParam<std::size_t> {};

TEST_P(DueTreeOfSize, KnowsTheEarliest) {
  const std::size_t buckets = GetParam();
  DueTree tree(buckets);
  EXPECT_EQ(tree.earliest(), kNever);
  std::vector<Tick> model(buckets, kNever);
  std::multiset<Tick> ticks(model.begin(), model.end());
  std::mt19937_64 random(buckets);
  for (int step = 0; step < 20'000; ++step) {
    const std::size_t bucket = random() % buckets;
    const Tick due = random() % 4 == 0 ? kNever : static_cast<Tick>(random() % 1000);
    ticks.erase(ticks.find(model[bucket]));
    ticks.insert(due);
    model[bucket] = due;
    tree.set(bucket, due);
    ASSERT_EQ(tree.earliest(), *ticks.begin()) << "step " << step;
    ASSERT_EQ(tree.of(tree.first()), tree.earliest());
    ASSERT_EQ(tree.of(bucket), due);
  }
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) ASSERT_EQ(tree.of(bucket), model[bucket]);
}

INSTANTIATE_TEST_SUITE_P(Sizes, DueTreeOfSize, ::testing::Values(1, 2, 7, 8, 9, 64, 65, 512, 4096, 5000),
                         ::testing::PrintToStringParamName());

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
