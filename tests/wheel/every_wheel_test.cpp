// What each wheel does, whatever it is made of. A new wheel is one more of AllWheels.

#include "gtest/gtest.h"
#include "tests/fuzz/wheel_walk.h"
#include "tests/support/build_kind.h"
#include "tests/wheel/turn.h"

namespace hwt::internal {
namespace {

using test::bytes_in_use;

using AllWheels = ::testing::Types<Checked<HashedWheel>, Checked<HierarchicalWheel>>;

template <Wheel W>
class EveryWheel : public ::testing::Test {
 protected:
  /// Walks all ticks up to `last` and returns the items that were due in the last one, in order. Nothing may be due
  /// before.
  std::vector<Item*> expire(Tick last) {
    while (model_.next_due() < last && !this->HasFailure()) {
      EXPECT_TRUE(model_.expire(model_.next_due()).empty()) << "due before " << last;
    }
    return model_.expire(last);
  }

  WheelModel<W, broken> model_{8};
};

struct WheelNames {
  template <Wheel W>
  static std::string GetName(int number) {
    if (std::is_same_v<W, Checked<HashedWheel>>) return "Hashed";
    if (std::is_same_v<W, Checked<HierarchicalWheel>>) return "Hierarchical";
    return "Wheel" + std::to_string(number);
  }
};
TYPED_TEST_SUITE(EveryWheel, AllWheels, WheelNames);

/// Random calls: ticks in the past, equal, far away and never. A visit may be stopped, and put items off. If this ends
/// the program, `replay wheels --random 1 400` tells the seed.
TEST(Walk, AgreesWithAModelWhereverTheTicksLie) {
  std::array<fuzz::Walked, 2> all{};  // the hashed wheel, the hierarchical one
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::vector<std::uint8_t> bytes = fuzz::random_bytes(seed);
    fuzz::Input input(bytes.data(), bytes.size(), true);
    const auto [wheel, walked] = fuzz::walk_on_any_wheel(input);
    all[wheel].expired += walked.expired;
    all[wheel].stops += walked.stops;
    all[wheel].latest += walked.latest;
  }
  // Counts of each wheel, which depend on the seeds alone.
  for (const fuzz::Walked& walked : all) {
    EXPECT_GT(walked.expired, 50'000u);
    EXPECT_GT(walked.stops, 1'000u);
    EXPECT_GT(walked.latest, 50u);
  }
}

TYPED_TEST(EveryWheel, PutOffForEverIsDueInTheLatestTickOrNever) {
  Item& first = this->model_.insert(6);  // in the bucket of the latest tick
  this->model_.insert(6);
  const Tick put_off = this->model_.wheel().put_off(6);
  this->model_.expire(6, [&](const Item& item) { return Verdict::later(&item == &first ? kNever : put_off); });
  EXPECT_EQ(this->model_.next_due(), this->model_.kHashed ? kNever - 1 : kNever);
  this->model_.clear();
}

/// Cancelled items do not occupy their bucket until its tick.
TYPED_TEST(EveryWheel, ABucketOfHolesIsCompacted) {
  constexpr std::size_t kItems = 100'000;
  constexpr Tick kDue = 1000;
  std::vector<Item> ring(64);
  const std::int64_t before = bytes_in_use;
  Item& stays = this->model_.insert(kDue);
  for (std::size_t i = 0; i < kItems; ++i) {
    Item& item = ring[i % ring.size()];
    if (item.in_wheel()) this->model_.remove(item);
    this->model_.insert(item, kDue);
  }
  EXPECT_LT(bytes_in_use - before, 32 * 1024) << "uncompacted, the addresses alone take 600,000";
  const std::vector<Item*> taken = this->expire(kDue);
  ASSERT_EQ(taken.size(), ring.size() + 1);
  EXPECT_EQ(taken.front(), &stays);
  for (std::size_t i = 0; i < ring.size(); ++i) EXPECT_EQ(taken[i + 1], &ring[(kItems + i) % ring.size()]);
}

// --- Memory ---

/// If a call finds no memory, it changes nothing. After reserve() the next insert() or move() needs none.
TYPED_TEST(EveryWheel, InsertWithoutMemoryChangesNothingAndAfterReserveItNeedsNone) {
  for (const std::uint32_t crowd : {2U, kNoCrowd}) {
    auto wheel = wheel_of<TypeParam>(64, crowd);
    std::vector<Item> items(5000);
    int refused = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto due = static_cast<Tick>(i % 2 == 0 ? i * i * 31 : 4096 + i % 100);
      const Tick next = wheel.next_due();
      {
        const Shortage shortage(0, Shortage::kAll);
        if (insert(wheel, items[i], due)) continue;
        EXPECT_FALSE(wheel.reserve());
      }
      ++refused;
      EXPECT_FALSE(items[i].in_wheel());
      EXPECT_EQ(wheel.size(), static_cast<std::int64_t>(i));
      EXPECT_EQ(wheel.next_due(), next);
      ASSERT_TRUE(wheel.consistent());
      if (this->model_.kHashed) {
        const Shortage shortage(1, 1);  // the second of the two allocations that a new region takes
        ASSERT_FALSE(insert(wheel, items[i], due));
      }
      ASSERT_TRUE(wheel.reserve());
      const Shortage shortage(0, Shortage::kAll);
      ASSERT_TRUE(insert(wheel, items[i], due));
      ASSERT_EQ(shortage.failed(), 0);
    }
    EXPECT_GT(refused, 1);
    for (std::size_t i = 0; i < items.size(); ++i) {
      ASSERT_TRUE(wheel.reserve());
      const Shortage shortage(0, Shortage::kAll);
      items[i].due = static_cast<Tick>((items.size() - i) * 1000);
      wheel.move(items[i], items[i].due);
      ASSERT_EQ(shortage.failed(), 0);
    }
    EXPECT_TRUE(wheel.consistent());
    run_all(wheel);
    for (const Item& item : items) ASSERT_EQ(item.came_at, item.due);
  }
}

/// Memory comes and goes. Items are inserted, removed and postponed. Each is taken in its tick. An item whose new place
/// needs memory is looked at by each walk until there is some.
TYPED_TEST(EveryWheel, WithoutMemoryNothingIsLostOrLate) {
  for (const std::int64_t size : {1, 2, 8, 64})
    for (unsigned seed = 1; seed <= 6; ++seed) {
      if (!this->model_.kHashed && size == 1) continue;
      SCOPED_TRACE("size " + std::to_string(size) + ", seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      const auto up_to = [&](std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n)(random); };
      auto wheel = wheel_of<TypeParam>(size, seed % 2 == 0 ? 5 : kNoCrowd);
      std::vector<Item> items(1500);
      std::vector<Item> hogs(64 * Chunk::kEntries);
      Tick floor = 0;
      std::int64_t failed = 0;
      bool is_short = false;
      for (int step = 0; step < 6'050; ++step) {
        if (step % 50 == 0) {
          is_short = !is_short;
          const Shortage shortage(0, Shortage::kAll);
          for (Item& hog : hogs) {
            if (hog.in_wheel() == is_short) continue;
            if (!is_short) {
              wheel.remove(hog);
            } else if (!insert(wheel, hog, floor + 80 * size)) {
              break;
            }
          }
        }
        Shortage shortage(0, is_short ? Shortage::kAll : 0);
        Item& item = items[static_cast<std::size_t>(up_to(static_cast<std::int64_t>(items.size()) - 1))];
        if (!item.in_wheel()) {
          if (!insert(wheel, item, floor + (up_to(1) == 0 ? up_to(5) : up_to(size * 70)))) continue;
        } else if (up_to(5) == 0) {
          wheel.remove(item);
        } else if (up_to(1) == 0) {
          item.due += up_to(300);  // the wheel learns of it when it meets the item
        }
        const Tick tick = wheel.next_due();
        if (tick == kNever || up_to(3) != 0) continue;
        for (const Item& other : items) ASSERT_TRUE(!other.in_wheel() || other.due >= tick) << "late: " << other.due;
        bool stopped = false;
        wheel.expire(tick, [&](WheelItem& visited) {
          stopped = up_to(40) == 0;
          return stopped ? Verdict::stop() : usual(visited, tick);
        });
        shortage.end();
        failed += shortage.failed();
        floor = stopped ? tick : tick + 1;
        ASSERT_TRUE((test::kCounting && step % 32 != 0) || wheel.consistent());
        ASSERT_GE(wheel.next_due(), floor);
      }
      EXPECT_TRUE(failed > 5 || size == 1) << "there was always room";
      if (seed <= 2) {  // in the midst of a shortage
        std::int64_t left = wheel.size();
        wheel.clear([&](WheelItem&) { --left; });
        EXPECT_EQ(left, 0);
        EXPECT_EQ(wheel.next_due(), kNever);
        EXPECT_TRUE(wheel.consistent());
      }
      run_all(wheel);
      for (const Item& item : items) ASSERT_FALSE(item.in_wheel());
    }
}

/// The memory of items that have come, were removed or cleared serves the next ones.
TYPED_TEST(EveryWheel, MemoryIsUsedAgain) {
  constexpr Tick kSpan = 64;
  constexpr Tick kApart = 4096;  // so that each time the items come through as many levels
  auto wheel = wheel_of<TypeParam>(4, 1);
  std::vector<Item> items(5000);
  std::int64_t after_the_first = 0;
  for (Tick round = 0; round < 12; ++round) {
    const Tick begin = round * kApart;
    wheel.skip_to(begin + 1);
    for (Item& item : items) ASSERT_TRUE(insert(wheel, item, begin + kSpan + (&item - items.data()) % kSpan));
    if (round % 3 == 0) {
      run_to(wheel, begin + kApart);
    } else if (round % 3 == 1) {
      for (Item& item : items) wheel.remove(item);
    } else {
      wheel.clear([](WheelItem&) {});
    }
    EXPECT_EQ(wheel.size(), 0);
    EXPECT_TRUE(wheel.consistent());
    if (round == 0) after_the_first = bytes_in_use;
    EXPECT_EQ(bytes_in_use, after_the_first) << "round " << round;
  }
}

/// The random walks rely on consistent(). It relies on the check of a bucket, which bucket_test.cpp tests.
TYPED_TEST(EveryWheel, ItsCheckFindsAFaultOfABucket) {
  Chunk& chunk = Chunk::of(this->model_.insert(3).position);
  ++chunk.bucket;
  EXPECT_FALSE(this->model_.wheel().consistent());
  --chunk.bucket;
  this->model_.clear();
}

}  // namespace
}  // namespace hwt::internal
