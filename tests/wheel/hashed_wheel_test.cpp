// The hashed wheel alone, besides what every_wheel_test checks: each of its mechanisms by itself.

#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"

#include <fstream>

#if defined(__linux__)
#include <unistd.h>
#endif

#include "gtest/gtest.h"
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
  std::int64_t total_pages = 0, resident_pages = -1;
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

}  // namespace
}  // namespace hwt::internal
