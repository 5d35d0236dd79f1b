// The hashed wheel alone, besides what every_wheel_test checks: each of its mechanisms by itself.

#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <unistd.h>
#endif

#include "gtest/gtest.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/checked_wheel.h"
#include "tests/support/wheel_model.h"
#include "tests/wheel/turn.h"

namespace hwt::internal {
namespace {

constexpr int kTags = 64;  // revolutions that a wheel tells apart

using Model = WheelModel<Checked<HashedWheel>, broken>;

/// Items that are 64 revolutions apart have the same tag. Only the visitor tells them apart. If it has seen the far
/// item in the tick of a near one, its true tick is known. Otherwise there is at most one look in 64 revolutions.
TEST(HashedWheel, AFarItemOutlivesTheRevolutionsWithItsTagAtLittleCost) {
  constexpr std::int64_t kBuckets = 8;
  for (const auto& [revolutions, most_looks] : {std::pair<Tick, Tick>{3 * kTags, 2}, {10 * kTags + 17, 13}}) {
    Model model(kBuckets);
    model.insert(5);
    const Item& far = model.insert(5 + revolutions * kBuckets);
    for (Tick looks = 0; model.size() != 0 && !::testing::Test::HasFailure(); ++looks) {
      ASSERT_LT(looks, most_looks) << "in " << revolutions << " revolutions";
      model.expire(model.next_due());
    }
    EXPECT_EQ(far.came_at, far.due);
  }
}

/// Items of all tags are due in 256,000 revolutions or more, so a walk can only guess the next tick. To correct a
/// guess, the wheel looks at no more than 8,192 items, which takes half a millisecond.
TEST(HashedWheel, AWrongGuessIsCorrectedOnceUnlessTheBucketIsLarge) {
  constexpr std::int64_t kBuckets = 8;
  constexpr std::int64_t kFar = 4000 * kTags;
  for (const auto& [items_of_a_tag, expected_looks] : {std::pair{100, 2}, std::pair{129, 100}}) {
    HashedWheel wheel(kBuckets);
    std::vector<Item> items(static_cast<std::size_t>(items_of_a_tag * kTags));
    std::int64_t revolution = kFar;
    for (Item& item : items) ASSERT_TRUE(insert(wheel, item, 5 + revolution++ * kBuckets));
    Item near;
    ASSERT_TRUE(insert(wheel, near, 5));
    int looks = 0;
    for (; wheel.next_due() < 100 * kBuckets; ++looks) expire(wheel, wheel.next_due());
    EXPECT_EQ(looks, expected_looks) << items_of_a_tag << " items of a tag";
    if (looks < 100) {
      EXPECT_EQ(wheel.next_due(), 5 + kFar * kBuckets);
    }
  }
}

#if defined(__linux__)
std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total_pages = 0;
  std::int64_t resident_pages = -1;
  statm >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

/// The memory of a large wheel is committed as it is used.
TEST(HashedWheel, FourMillionBucketsCostLittle) {
  constexpr std::int64_t kBuckets = std::int64_t{1} << 22;
  const std::int64_t before = resident_bytes();
  ASSERT_GT(before, 0);
  Checked<HashedWheel> wheel(kBuckets);
  std::vector<Item> items(100);
  const auto due = [](std::size_t i) { return static_cast<Tick>(i) * 40'009; };
  for (std::size_t i = 0; i < items.size(); ++i) ASSERT_TRUE(insert(wheel, items[i], due(i)));
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(wheel.next_due(), due(i));
    EXPECT_EQ(expire(wheel, due(i)), std::vector<Item*>{&items[i]});
  }
  EXPECT_EQ(wheel.next_due(), kNever);
  constexpr std::int64_t kIfAllWereUsed = kBuckets * 40;  // the bytes of a bucket and of its next tick
  constexpr std::int64_t kBound = kIfAllWereUsed / 4;
  EXPECT_LT(resident_bytes() - before, kBound);
  EXPECT_TRUE(wheel.consistent());
}
#endif

/// The visitor puts an item off to another bucket, which has no room and gets no memory.
class WithoutMemory : public ::testing::TestWithParam<std::int64_t> {
 protected:
  /// Leaves no free chunk until the last tick of the second revolution, whose items have taken them.
  void use_up_chunks() {
    const Shortage shortage(0, Shortage::kAll);
    for (Item& item : fillers_) {
      if (!insert(wheel_, item, 2 * buckets_ - 1)) break;
    }
  }
  /// Returns the items that were due at `tick`; the rest is visited again at its own tick.
  std::vector<Item*> expire(Tick tick) {
    const std::vector<Item*> taken = internal::expire(wheel_, tick);
    EXPECT_TRUE(wheel_.consistent());
    return taken;
  }
  bool expire_without_memory(Tick tick) {
    const Shortage shortage(0, Shortage::kAll);
    expire_quietly(wheel_, tick);
    EXPECT_TRUE(wheel_.consistent());
    return shortage.failed() != 0;
  }

  const Tick buckets_ = GetParam();
  std::vector<Item> fillers_{64 * Chunk::kEntries};
  Checked<HashedWheel> wheel_{buckets_};
};
INSTANTIATE_TEST_SUITE_P(WheelSizes, WithoutMemory, ::testing::Values(8, 64, 512), ::testing::PrintToStringParamName());

TEST_P(WithoutMemory, APostponedItemIsVisitedAgainAtTheNextTick) {
  Item postponed, other, behind;
  ASSERT_TRUE(insert(wheel_, postponed, 3));
  ASSERT_TRUE(insert(wheel_, other, 3));
  ASSERT_TRUE(insert(wheel_, behind, 3 + buckets_));
  use_up_chunks();
  postponed.due = 6;
  EXPECT_TRUE(expire_without_memory(3));
  EXPECT_EQ(other.came_at, 3);
  EXPECT_TRUE(postponed.in_wheel());
  EXPECT_EQ(wheel_.next_due(), 4);
  EXPECT_TRUE(expire_without_memory(4));
  EXPECT_EQ(wheel_.next_due(), 5) << "visited again in each tick while there is no memory";
  EXPECT_TRUE(expire(5).empty());
  EXPECT_EQ(wheel_.next_due(), 6) << "moved to its own bucket";
  EXPECT_EQ(expire(6), std::vector<Item*>{&postponed});
  EXPECT_EQ(wheel_.next_due(), std::min(3 + buckets_, 2 * buckets_ - 1));
  EXPECT_EQ(expire(3 + buckets_), std::vector<Item*>{&behind});
}

/// The wait passes a tick of the item's own bucket. The wheel must not take it for an item of a later revolution.
TEST_P(WithoutMemory, APostponedItemWaitsForMoreThanARevolution) {
  Item postponed, behind;
  ASSERT_TRUE(insert(wheel_, postponed, 3));
  ASSERT_TRUE(insert(wheel_, behind, 3 + 2 * buckets_));
  use_up_chunks();
  postponed.due = 4 + 2 * buckets_;
  for (Tick tick = 3; tick < 2 * buckets_ - 1; ++tick) {
    ASSERT_EQ(wheel_.next_due(), tick);
    // A revolution before its tick the item is in its own bucket, so it needs no memory to stay there.
    EXPECT_TRUE(expire_without_memory(tick) || tick == postponed.due - buckets_) << tick;
    ASSERT_TRUE(postponed.in_wheel() && behind.in_wheel());
  }
  while (wheel_.next_due() < 3 + 2 * buckets_) expire(wheel_.next_due());
  EXPECT_EQ(expire(3 + 2 * buckets_), std::vector<Item*>{&behind});
  EXPECT_EQ(expire(wheel_.next_due()), std::vector<Item*>{&postponed});
}

TEST_P(WithoutMemory, AStoppedWalkOfAnotherTicksBucketGoesOn) {
  Item first, second;
  ASSERT_TRUE(insert(wheel_, first, 3));
  ASSERT_TRUE(insert(wheel_, second, 3));
  use_up_chunks();
  first.due = second.due = 6;
  EXPECT_TRUE(expire_without_memory(3));
  for (int i = 0; i < 3; ++i) {
    wheel_.expire(4, [](WheelItem&) { return Verdict::stop(); });
    EXPECT_TRUE(wheel_.consistent());
    EXPECT_EQ(wheel_.next_due(), 4);
  }
  wheel_.remove(first);
  EXPECT_TRUE(expire_without_memory(4));
  EXPECT_TRUE(expire(5).empty());
  EXPECT_EQ(expire(6), std::vector<Item*>{&second});
}

TEST_P(WithoutMemory, ClearReturnsItemsThatWaitForAPlace) {
  Item postponed;
  ASSERT_TRUE(insert(wheel_, postponed, 3));
  use_up_chunks();
  postponed.due = 5;
  EXPECT_TRUE(expire_without_memory(3));
  bool returned = false;
  wheel_.clear([&](WheelItem& item) { returned = returned || &item == &postponed; });
  EXPECT_TRUE(returned);
  EXPECT_EQ(wheel_.next_due(), kNever);
  EXPECT_TRUE(wheel_.consistent());
}

}  // namespace
}  // namespace hwt::internal
