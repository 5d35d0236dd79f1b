// The hashed wheel alone, besides what every_wheel_test checks: each of its mechanisms by itself.

#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#if defined(__linux__)
#include <unistd.h>
#endif

#include "gtest/gtest.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/build_kind.h"
#include "tests/support/checked_wheel.h"
#include "tests/support/wheel_model.h"

namespace hwt::internal {
namespace {

using test::bytes_in_use;
using test::Shortage;

constexpr int kTags = 64;  // revolutions that a wheel tells apart

using Item = ModelItem;

void broken(const char* promise, Tick floor) { ADD_FAILURE() << promise << "; from tick " << floor; }
using Model = WheelModel<Checked<HashedWheel>, broken>;

std::vector<Item*> expire_all(HashedWheel& wheel, Tick tick) {
  std::vector<Item*> visited;
  wheel.expire(tick, [&](WheelItem& item) {
    visited.push_back(static_cast<Item*>(&item));
    return Verdict::taken();
  });
  return visited;
}

/// Items that are 64 revolutions apart have the same tag. Only the visitor tells them apart.
TEST(HashedWheel, AFarItemOutlivesTheRevolutionsWithItsTag) {
  constexpr std::int64_t kBuckets = 8;
  constexpr Tick kFirst = 5;
  Model model(kBuckets);
  model.insert(kFirst);
  Item& far = model.insert(kFirst + 3 * kTags * kBuckets);
  std::vector<Tick> looked_at;
  while (model.size() != 0 && !::testing::Test::HasFailure()) {
    const Tick tick = model.next_due();
    looked_at.push_back(tick);
    const std::vector<Item*> taken = model.expire(tick);
    EXPECT_EQ(taken.size(), 1u);
    ASSERT_LE(tick, far.due);
  }
  // It was seen in the tick of the first one, so its true tick is known from then on.
  EXPECT_EQ(looked_at, (std::vector<Tick>{kFirst, kFirst + 3 * kTags * kBuckets}));
}

TEST(HashedWheel, AFarItemCostsAtMostOneLookInSixtyFourRevolutions) {
  constexpr std::int64_t kBuckets = 4;
  constexpr std::int64_t kRevolutions = 10 * kTags + 17;
  Model model(kBuckets);
  model.insert(1);
  Item& far = model.insert(1 + kRevolutions * kBuckets);
  int looks = 0;
  while (model.size() != 0 && !::testing::Test::HasFailure()) {
    model.expire(model.next_due());
    ASSERT_LE(++looks, kRevolutions / kTags + 3);
  }
  EXPECT_FALSE(far.in_wheel());
}

/// Items of all tags are due in 256,000 revolutions or more, so a walk can only guess the next tick.
void expect_looks_at_a_far_bucket(int items_of_a_tag, int expected) {
  constexpr std::int64_t kBuckets = 8;
  constexpr std::int64_t kFar = 4000 * kTags;
  HashedWheel wheel(kBuckets);
  std::vector<Item> items(static_cast<std::size_t>(items_of_a_tag * kTags));
  std::int64_t revolution = kFar;
  for (Item& item : items) {
    item.due = 5 + revolution++ * kBuckets;
    ASSERT_TRUE(wheel.insert(item, item.due));
  }
  Item near;
  near.due = 5;
  ASSERT_TRUE(wheel.insert(near, near.due));
  int looks = 0;
  const auto visit = [](WheelItem& visited) {
    const Item& item = static_cast<const Item&>(visited);
    return item.due == 5 ? Verdict::taken() : Verdict::later(item.due);
  };
  for (; wheel.next_due() < 100 * kBuckets; ++looks) wheel.expire(wheel.next_due(), visit);
  EXPECT_EQ(looks, expected);
  if (looks < 100) {
    EXPECT_EQ(wheel.next_due(), 5 + kFar * kBuckets);
  }
}

TEST(HashedWheel, AWrongGuessIsCorrectedOnce) { expect_looks_at_a_far_bucket(100, 2); }

/// To correct a guess, the wheel looks at no more than 8,192 items, which takes half a millisecond.
TEST(HashedWheel, AWrongGuessOfALargeBucketIsNotCorrected) { expect_looks_at_a_far_bucket(129, 100); }

/// The chunks of a bucket that has been emptied serve the next one.
TEST(HashedWheel, ChunksAreUsedAgain) {
  constexpr std::size_t kItems = 10'000;
  Checked<HashedWheel> wheel(64);
  std::vector<Item> items(kItems);
  const auto fill = [&](Tick tick) {
    for (Item& item : items) ASSERT_TRUE(wheel.insert(item, tick));
  };
  fill(0);
  EXPECT_EQ(expire_all(wheel, 0).size(), kItems);
  const std::int64_t after_one_bucket = bytes_in_use;
  for (Tick tick = 1; tick < 200; ++tick) {
    fill(tick);
    switch (tick % 3) {
      case 0:
        EXPECT_EQ(expire_all(wheel, tick).size(), kItems);
        break;
      case 1:
        for (Item& item : items) wheel.remove(item);
        break;
      default:
        wheel.clear([](WheelItem&) {});
    }
    ASSERT_EQ(wheel.size(), 0);
  }
  EXPECT_TRUE(wheel.consistent());
  EXPECT_EQ(bytes_in_use, after_one_bucket);
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
  for (std::size_t i = 0; i < items.size(); ++i) ASSERT_TRUE(wheel.insert(items[i], due(i)));
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(wheel.next_due(), due(i));
    EXPECT_EQ(expire_all(wheel, wheel.next_due()), std::vector<Item*>{&items[i]});
  }
  EXPECT_EQ(wheel.next_due(), kNever);
  constexpr std::int64_t kIfAllWereUsed = kBuckets * 40;  // the bytes of a bucket and of its next tick
  constexpr std::int64_t kBound = kIfAllWereUsed / 4;
  EXPECT_LT(resident_bytes() - before, kBound);
  EXPECT_TRUE(wheel.consistent());
}
#endif

TEST(HashedWheel, InsertWithoutMemoryChangesNothing) {
  constexpr std::size_t kItems = 5000;
  std::vector<Item> items(kItems);
  Checked<HashedWheel> wheel(8);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < kItems; ++i) {
    const auto tick = static_cast<Tick>(i % 5);
    const Tick next = wheel.next_due();
    bool inserted = false;
    {
      const Shortage shortage(0, Shortage::kAll);
      inserted = wheel.insert(items[i], tick);
    }
    if (!inserted) {
      ++refused;
      EXPECT_EQ(items[i].position, nullptr);
      EXPECT_EQ(wheel.size(), static_cast<std::int64_t>(i));
      EXPECT_EQ(wheel.next_due(), next);
      ASSERT_TRUE(wheel.consistent());
      {
        const Shortage shortage(1, 1);  // the second of the two allocations that a new region takes
        inserted = wheel.insert(items[i], tick);
      }
      ASSERT_FALSE(inserted);
      ASSERT_TRUE(wheel.insert(items[i], tick));
    }
    EXPECT_EQ(wheel.size(), static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_GE(refused, kItems / (64 * Chunk::kEntries));
  EXPECT_TRUE(wheel.consistent());
  for (Tick tick = 0; tick < 5; ++tick) EXPECT_EQ(expire_all(wheel, tick).size(), kItems / 5);
}

/// The visitor puts an item off to another bucket, which has no room and gets no memory.
class WithoutMemory : public ::testing::TestWithParam<std::int64_t> {
 protected:
  WithoutMemory() { taken_.reserve(fillers_.size() + 10); }  // so that it needs no memory during a Shortage

  /// Leaves no free chunk until the last tick of the second revolution, whose items have taken them.
  void use_up_chunks() {
    const Shortage shortage(0, Shortage::kAll);
    for (Item& item : fillers_) {
      if (!insert(item, 2 * buckets_ - 1)) break;
    }
  }
  bool insert(Item& item, Tick due) {
    item.due = due;
    return wheel_.insert(item, due);
  }
  /// Returns the items that were due at `tick`; the rest is visited again at its own tick.
  const std::vector<Item*>& expire(Tick tick) {
    taken_.clear();
    wheel_.expire(tick, [&](WheelItem& visited) {
      Item& item = static_cast<Item&>(visited);
      EXPECT_GE(item.due, tick) << "late";
      if (item.due > tick) return Verdict::later(item.due);
      item.position = nullptr;
      taken_.push_back(&item);
      return Verdict::taken();
    });
    EXPECT_TRUE(wheel_.consistent());
    return taken_;
  }
  bool expire_without_memory(Tick tick) {
    const Shortage shortage(0, Shortage::kAll);
    expire(tick);
    return shortage.failed() != 0;
  }

  const Tick buckets_ = GetParam();
  std::vector<Item> fillers_{64 * Chunk::kEntries};
  std::vector<Item*> taken_;
  Checked<HashedWheel> wheel_{buckets_};
};
INSTANTIATE_TEST_SUITE_P(WheelSizes, WithoutMemory, ::testing::Values(8, 64, 512), ::testing::PrintToStringParamName());

TEST_P(WithoutMemory, APostponedItemIsVisitedAgainAtTheNextTick) {
  Item postponed, other, behind;
  ASSERT_TRUE(insert(postponed, 3));
  ASSERT_TRUE(insert(other, 3));
  ASSERT_TRUE(insert(behind, 3 + buckets_));
  use_up_chunks();
  postponed.due = 6;
  EXPECT_TRUE(expire_without_memory(3));
  EXPECT_EQ(taken_, std::vector<Item*>{&other});
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
  ASSERT_TRUE(insert(postponed, 3));
  ASSERT_TRUE(insert(behind, 3 + 2 * buckets_));
  use_up_chunks();
  postponed.due = 4 + 2 * buckets_;
  for (Tick tick = 3; tick < 2 * buckets_ - 1; ++tick) {
    ASSERT_EQ(wheel_.next_due(), tick);
    // A revolution before its tick the item is in its own bucket, so it needs no memory to stay there.
    EXPECT_TRUE(expire_without_memory(tick) || tick == postponed.due - buckets_) << tick;
    ASSERT_TRUE(taken_.empty());
  }
  while (wheel_.next_due() < 3 + 2 * buckets_) expire(wheel_.next_due());
  EXPECT_EQ(expire(3 + 2 * buckets_), std::vector<Item*>{&behind});
  EXPECT_EQ(expire(wheel_.next_due()), std::vector<Item*>{&postponed});
}

TEST_P(WithoutMemory, AStoppedWalkOfAnotherTicksBucketGoesOn) {
  Item first, second;
  ASSERT_TRUE(insert(first, 3));
  ASSERT_TRUE(insert(second, 3));
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
  ASSERT_TRUE(insert(postponed, 3));
  use_up_chunks();
  postponed.due = 5;
  EXPECT_TRUE(expire_without_memory(3));
  bool returned = false;
  wheel_.clear([&](WheelItem& item) { returned = returned || &item == &postponed; });
  EXPECT_TRUE(returned);
  EXPECT_EQ(wheel_.next_due(), kNever);
  EXPECT_TRUE(wheel_.consistent());
}

/// Memory comes and goes; items are inserted, removed and postponed: each is taken in its tick.
TEST(HashedWheel, WithoutMemoryNothingIsLostOrLate) {
  for (const std::int64_t buckets : {1, 2, 8, 64}) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::to_string(buckets) + " buckets, seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const auto up_to = [&](std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n)(random); };
      Checked<HashedWheel> wheel(buckets);
      std::vector<Item> items(1500);
      std::vector<Item> hogs(64 * Chunk::kEntries);
      Tick floor = 0;
      std::int64_t failed = 0;
      bool is_short = false;
      for (int step = 0; step < 6'000; ++step) {
        if (step % 50 == 0) {
          is_short = !is_short;
          const Shortage shortage(0, Shortage::kAll);
          for (Item& hog : hogs) {
            if (hog.in_wheel() == is_short) continue;
            if (!is_short) {
              wheel.remove(hog);
            } else if (hog.due = floor + 80 * buckets; !wheel.insert(hog, hog.due)) {
              break;
            }
          }
        }
        Item& item = items[static_cast<std::size_t>(up_to(static_cast<std::int64_t>(items.size()) - 1))];
        if (!item.in_wheel()) {
          item.due = floor + (up_to(1) == 0 ? up_to(5) : up_to(buckets * 70));
          const Shortage shortage(0, is_short ? Shortage::kAll : 0);
          if (!wheel.insert(item, item.due)) continue;
        } else if (up_to(5) == 0) {
          wheel.remove(item);
        } else if (up_to(1) == 0) {
          item.due += up_to(300);  // the wheel learns of it when it meets the item
        }
        const Tick tick = wheel.next_due();
        if (tick == kNever || up_to(3) != 0) continue;
        for (const Item& other : items) ASSERT_TRUE(!other.in_wheel() || other.due >= tick) << "late: " << other.due;
        bool stopped = false;
        Shortage shortage(0, is_short ? Shortage::kAll : 0);
        wheel.expire(tick, [&](WheelItem& visited) {
          Item& seen = static_cast<Item&>(visited);
          if (up_to(40) == 0) {
            stopped = true;
            return Verdict::stop();
          }
          if (seen.due > tick) return Verdict::later(seen.due);
          seen.position = nullptr;
          return Verdict::taken();
        });
        shortage.end();
        failed += shortage.failed();
        floor = stopped ? tick : tick + 1;
        ASSERT_TRUE((test::kCounting && step % 32 != 0) || wheel.consistent());
        ASSERT_GE(wheel.next_due(), floor);
      }
      EXPECT_TRUE(failed > 10 || buckets <= 8) << "there was always room";
      while (wheel.next_due() != kNever) {
        const Tick tick = wheel.next_due();
        wheel.expire(tick, [&](WheelItem& visited) {
          Item& seen = static_cast<Item&>(visited);
          EXPECT_GE(seen.due, tick);
          if (seen.due > tick) return Verdict::later(seen.due);
          seen.position = nullptr;
          return Verdict::taken();
        });
      }
      for (const Item& item : items) ASSERT_FALSE(item.in_wheel());
    }
  }
}

TEST(HashedWheel, AfterReserveInsertAndMoveNeedNoMemory) {
  std::vector<Item> items(64 * 3);
  std::size_t used = 0;
  Checked<HashedWheel> wheel(1024);
  for (int regions = 0; regions < 2; ++regions) {
    // Each in a bucket of its own, until there is no chunk left.
    for (;;) {
      ASSERT_LT(used, items.size() - 2);
      const Shortage shortage(0, Shortage::kAll);
      if (!wheel.insert(items[used], static_cast<Tick>(2 * used))) break;
      ++used;
    }
    {
      const Shortage shortage(0, Shortage::kAll);
      EXPECT_FALSE(wheel.reserve());
    }
    ASSERT_TRUE(wheel.consistent());
    ASSERT_TRUE(wheel.reserve());
    const Shortage shortage(0, Shortage::kAll);
    EXPECT_TRUE(wheel.reserve());
    if (regions == 0) {
      EXPECT_TRUE(wheel.insert(items[used], static_cast<Tick>(2 * used)));
      ++used;
    } else {
      wheel.move(items[0], 1001);
    }
    EXPECT_EQ(shortage.failed(), 0);
  }
  EXPECT_TRUE(wheel.consistent());
  EXPECT_EQ(wheel.size(), static_cast<std::int64_t>(used));
  std::size_t seen = 0;
  while (wheel.next_due() != kNever) seen += expire_all(wheel, wheel.next_due()).size();
  EXPECT_EQ(seen, used);
}

}  // namespace
}  // namespace hwt::internal
