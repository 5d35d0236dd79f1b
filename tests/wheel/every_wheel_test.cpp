// What each wheel does, whatever it is made of. A new wheel is one more of AllWheels.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/internal/wheel/chunk.h"
#include "hashed_wheel_timer/internal/wheel/wheel.h"
#include "tests/support/ages.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"

namespace hwt::internal {
namespace {

using namespace std::chrono_literals;
using test::bytes_in_use;

struct alignas(kCacheLine) Item : WheelItem {
  Tick due = 0;
  bool in_wheel() const { return position != nullptr; }
};

template <Wheel W>
class EveryWheel : public ::testing::Test {
 protected:
  [[nodiscard]] bool insert(Item& item, Tick due) {
    item.due = due;
    return wheel_.insert(item, due);
  }
  void move(Item& item, Tick due) {
    item.due = due;
    ASSERT_TRUE(wheel_.reserve());
    wheel_.move(item, due);
    EXPECT_TRUE(wheel_.consistent());
  }

  /// A wheel may name an earlier tick, at which items only move; the hashed one does not.
  void expect_next_due(Tick due) {
    EXPECT_LE(wheel_.next_due(), due);
    if (std::is_same_v<W, Checked<HashedWheel>>) {
      EXPECT_EQ(wheel_.next_due(), due);
    }
  }

  /// Walks all ticks up to `last` and returns the items that were due in the last one, in order. Nothing may be due
  /// before.
  std::vector<Item*> expire(Tick last) {
    std::vector<Item*> taken;
    for (Tick tick = 0; tick != last;) {
      tick = std::min(wheel_.next_due(), last);
      wheel_.expire(tick, [&](WheelItem& visited) {
        Item& item = static_cast<Item&>(visited);
        EXPECT_TRUE(item.due >= tick || tick == last) << "due at " << item.due << ", visited at " << tick;
        if (item.due > tick) return Verdict::later(item.due);
        item.position = nullptr;
        taken.push_back(&item);
        return Verdict::taken();
      });
      EXPECT_TRUE(tick == last || taken.empty()) << "due before " << last;
    }
    return taken;
  }

  W wheel_{8};
};

struct WheelNames {
  template <Wheel W>
  static std::string GetName(int number) {
    if (std::is_same_v<W, Checked<HashedWheel>>) return "Hashed";
    if (std::is_same_v<W, Checked<HierarchicalWheel>>) return "Hierarchical";
    return "Wheel" + std::to_string(number);
  }
};
TYPED_TEST_SUITE(EveryWheel, test::AllWheels, WheelNames);

TYPED_TEST(EveryWheel, IsEmptyAtFirst) {
  TypeParam& wheel = this->wheel_;
  EXPECT_EQ(wheel.size(), 0);
  EXPECT_EQ(wheel.next_due(), kNever);
  EXPECT_EQ(wheel.revolution(), 8);
  EXPECT_TRUE(wheel.consistent());
  EXPECT_TRUE(this->expire(1000).empty());
  wheel.clear([](WheelItem&) { ADD_FAILURE() << "an empty wheel returned an item"; });
  EXPECT_TRUE(wheel.consistent());
}

TYPED_TEST(EveryWheel, AnItemFromThePastIsDueInTheNextTick) {
  Item late, negative, next;
  EXPECT_TRUE(this->expire(41).empty());
  ASSERT_TRUE(this->insert(late, 3));
  ASSERT_TRUE(this->insert(negative, -7));
  ASSERT_TRUE(this->insert(next, 42));
  EXPECT_EQ(this->wheel_.next_due(), 42);
  EXPECT_EQ(this->expire(42), (std::vector<Item*>{&late, &negative, &next}));
  EXPECT_EQ(this->wheel_.size(), 0);
  EXPECT_TRUE(this->wheel_.consistent());
}

/// Random calls against a multimap: ticks in the past, equal, far away and never.
template <Wheel W>
class Walk : public ::testing::Test {
 protected:
  static constexpr std::size_t kItems = 200;

  void begin(std::uint64_t seed) {
    random_.seed(seed);
    wheel_.emplace(8);
    items_ = std::vector<Item>(kItems);
    model_.clear();
    floor_ = 0;
    expired_ = 0;
  }
  /// Turns the wheel until `tick` is the next to expire. Items around `carry` are in it from the first tick on.
  void grow_old(Tick carry, Tick tick) {
    for (std::size_t i = 0; const Tick after : {2, 1, 0, -1, 8, 300}) insert(items_[i++], saturating_add(carry, after));
    while (wheel_->next_due() < tick && !this->HasFailure()) expire(wheel_->next_due());
    wheel_->skip_to(tick);
    floor_ = tick;
  }
  void walk(int steps) {
    for (int step = 0; step < steps && !this->HasFailure(); ++step) {
      Item& item = items_[random_() % kItems];
      const Tick tick = random_tick();
      switch (random_() % 4) {
        case 0:
          if (!item.in_wheel()) break;
          forget(item);
          ASSERT_TRUE(wheel_->reserve());
          wheel_->move(item, tick);
          expect(item, tick);
          break;
        case 1:
          // Not far, so that there is always a past and a future.
          if (!model_.empty() && wheel_->next_due() - floor_ <= 1'000'000) expire(wheel_->next_due());
          break;
        default:
          if (!item.in_wheel()) {
            insert(item, tick);
            break;
          }
          wheel_->remove(item);
          forget(item);
          item.position = nullptr;
      }
      ASSERT_EQ(wheel_->size(), static_cast<std::int64_t>(model_.size()));
      ASSERT_LE(wheel_->next_due(), model_.empty() ? kNever : model_.begin()->first);
    }
    EXPECT_TRUE(wheel_->consistent());
    wheel_->clear([](WheelItem&) {});
  }
  std::size_t expired() const { return expired_; }

 private:
  static Tick saturating_add(Tick tick, Tick ticks) {
    return ticks > 0 && tick > kNever - ticks ? kNever : tick + ticks;
  }

  Tick random_tick() {
    switch (random_() % 5) {
      case 0:
        return random_() % 2 == 0 ? std::numeric_limits<Tick>::min() : floor_ - static_cast<Tick>(random_() % 100);
      case 1:
        return items_[random_() % kItems].due;
      case 2:
        return random_() % 2 == 0 ? kNever : kNever - static_cast<Tick>(random_() % 100);
      case 3:
        return static_cast<Tick>(random_());
      default:
        return saturating_add(floor_, static_cast<Tick>(random_() % 300));
    }
  }
  void insert(Item& item, Tick tick) {
    ASSERT_TRUE(wheel_->insert(item, tick));
    expect(item, tick);
  }
  void expire(Tick due) {
    wheel_->expire(due, [&](WheelItem& visited) {
      Item& item = static_cast<Item&>(visited);
      if (item.due > due) return Verdict::later(item.due);
      forget(item);
      item.position = nullptr;
      ++expired_;
      return Verdict::taken();
    });
    floor_ = next_tick(due);
    ASSERT_TRUE(model_.empty() || model_.begin()->first > due) << "left over";
    ASSERT_TRUE(wheel_->next_due() > due || due == kNever - 1) << "does not sleep";
    if (random_() % 4 == 0) {
      wheel_->reopen(due);
      floor_ = due;
    }
  }
  void expect(Item& item, Tick tick) {
    item.due = std::clamp(tick, floor_, kNever - 1);
    model_.emplace(item.due, &item);
  }
  void forget(Item& item) {
    const auto [first, end] = model_.equal_range(item.due);
    model_.erase(std::find_if(first, end, [&](const auto& entry) { return entry.second == &item; }));
  }

  std::mt19937_64 random_;
  std::vector<Item> items_;
  std::optional<W> wheel_;
  std::multimap<Tick, Item*> model_;
  Tick floor_ = 0;
  std::size_t expired_ = 0;
};
TYPED_TEST_SUITE(Walk, test::AllWheels, WheelNames);

TYPED_TEST(Walk, AgreesWithAMultimapWhereverTheTicksLie) {
  for (std::uint64_t seed = 1; seed <= 10 && !this->HasFailure(); ++seed) {
    this->begin(seed);
    this->walk(5'000);
    EXPECT_GT(this->expired(), 300u) << "the walk does not reach what it is for";
  }
}

TYPED_TEST(Walk, AgreesWithAMultimapJustBeforeEachCarry) {
  constexpr int kDigitBits = 3;
  for (const Tick carry : test::carries(kDigitBits, kNever - 1, 1ns)) {
    for (const Tick before : {2, 40, 1'000}) {
      SCOPED_TRACE(std::to_string(before) + " ticks before " + std::to_string(carry));
      this->begin(static_cast<std::uint64_t>(carry - before));
      this->grow_old(carry, std::max<Tick>(carry - before, 0));
      this->walk(1'000);
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(EveryWheel, AReopenedTickTakesMoreItemsAndExpiresAgain) {
  for (const Tick tick : {7, 64, 4095}) {
    Item first, late, next;
    ASSERT_TRUE(this->insert(first, tick));
    EXPECT_EQ(this->expire(tick), std::vector<Item*>{&first});
    this->wheel_.reopen(tick);
    ASSERT_TRUE(this->insert(next, tick + 1));
    ASSERT_TRUE(this->insert(late, tick));
    this->expect_next_due(tick);
    std::vector<WheelItem*> taken;
    this->wheel_.expire(tick, [&](WheelItem& item) {
      taken.push_back(&item);
      return Verdict::taken();
    });
    EXPECT_EQ(taken, std::vector<WheelItem*>{&late});
    this->wheel_.clear([](WheelItem&) {});
  }
}

TYPED_TEST(EveryWheel, TheLatestTickIsDueSomeDay) {
  Item item;
  ASSERT_TRUE(this->insert(item, kNever));
  this->expect_next_due(kNever - 1);
  EXPECT_TRUE(this->wheel_.consistent());
  item.due = kNever - 1;
  EXPECT_EQ(this->expire(kNever - 1), std::vector<Item*>{&item});
  EXPECT_EQ(this->wheel_.next_due(), kNever);
}

TYPED_TEST(EveryWheel, PutOffForEverIsDueInTheLatestTick) {
  Item item;
  ASSERT_TRUE(this->insert(item, 7));  // in the bucket of the latest tick
  this->wheel_.expire(7, [](WheelItem&) { return Verdict::later(kNever); });
  EXPECT_TRUE(this->wheel_.consistent());
  this->expect_next_due(kNever - 1);
  item.due = kNever - 1;
  EXPECT_EQ(this->expire(kNever - 1), std::vector<Item*>{&item});
  EXPECT_EQ(this->wheel_.size(), 0);
}

/// In the last revolution a bucket has no later tick of its own. An item whose timeout is cancelled cannot be put off
/// by whole revolutions there.
TYPED_TEST(EveryWheel, AnItemThatCannotBePutOffIsVisitedAtTheNextTick) {
  Item stays, taken;
  const Tick last = kNever - 1;
  const Tick tick = last - 3;
  ASSERT_TRUE(this->insert(stays, tick));
  ASSERT_TRUE(this->insert(taken, tick));
  const auto visit = [&](Tick present) {
    int visits = 0;
    this->wheel_.expire(present, [&](WheelItem& visited) {
      if (++visits > 10) return Verdict::stop();  // instead of a test without end
      if (&visited == &stays) return Verdict::later(present);
      visited.position = nullptr;
      return Verdict::taken();
    });
    EXPECT_TRUE(this->wheel_.consistent());
    return visits;
  };
  ASSERT_TRUE(this->expire(tick - 1).empty());
  ASSERT_EQ(this->wheel_.next_due(), tick);
  EXPECT_EQ(visit(tick), 2);
  EXPECT_FALSE(taken.in_wheel());
  for (Tick present = tick + 1; present <= last; ++present) {
    ASSERT_EQ(this->wheel_.next_due(), present);
    EXPECT_EQ(visit(present), 1);
  }
  // The latest tick has no next one.
  EXPECT_EQ(this->wheel_.next_due(), last);
  EXPECT_EQ(visit(last), 1);
  this->wheel_.remove(stays);
  EXPECT_EQ(this->wheel_.next_due(), kNever);
}

/// The visitor's answer for a timeout that never expires.
TYPED_TEST(EveryWheel, PutOffForEverInTheLatestTickIsVisitedOnceInEachCall) {
  Item item;
  ASSERT_TRUE(this->insert(item, kNever));
  ASSERT_TRUE(this->expire(kNever - 2).empty());
  for (int call = 0; call < 3; ++call) {
    int visits = 0;
    this->wheel_.expire(kNever - 1,
                        [&](WheelItem&) { return ++visits > 10 ? Verdict::stop() : Verdict::later(kNever); });
    EXPECT_EQ(visits, 1);
    EXPECT_EQ(this->wheel_.next_due(), kNever - 1);
  }
}

/// Cancelled items do not occupy their bucket until its tick.
TYPED_TEST(EveryWheel, ABucketOfHolesIsCompacted) {
  constexpr std::size_t kItems = 100'000;
  constexpr Tick kDue = 1000;
  std::vector<Item> ring(64);
  Item stays;
  const std::int64_t before = bytes_in_use;
  ASSERT_TRUE(this->insert(stays, kDue));
  for (std::size_t i = 0; i < kItems; ++i) {
    Item& item = ring[i % ring.size()];
    if (item.in_wheel()) this->wheel_.remove(item);
    ASSERT_TRUE(this->insert(item, kDue));
  }
  ASSERT_TRUE(this->wheel_.consistent());
  EXPECT_LT(bytes_in_use - before, 32 * 1024) << "uncompacted, the addresses alone take 600,000";
  const std::vector<Item*> taken = this->expire(kDue);
  ASSERT_EQ(taken.size(), ring.size() + 1);
  EXPECT_EQ(taken.front(), &stays);
  for (std::size_t i = 0; i < ring.size(); ++i) EXPECT_EQ(taken[i + 1], &ring[(kItems + i) % ring.size()]);
}

TYPED_TEST(EveryWheel, MoveToTheSameTickKeepsThePlace) {
  Item items[4];
  for (Item& item : items) ASSERT_TRUE(this->insert(item, 5));
  const WheelItem::Position place = items[1].position;
  this->move(items[1], 5);
  EXPECT_EQ(items[1].position, place);
  EXPECT_EQ(this->expire(5), (std::vector<Item*>{&items[0], &items[1], &items[2], &items[3]}));
}

TYPED_TEST(EveryWheel, MoveToAnotherTick) {
  Item items[4];
  for (Item& item : items) ASSERT_TRUE(this->insert(item, 20));
  this->move(items[0], 7);       // earlier, another bucket
  this->move(items[1], 12);      // earlier, another revolution of the same bucket
  this->move(items[2], 20 + 3);  // later
  EXPECT_EQ(this->wheel_.size(), 4);
  EXPECT_EQ(this->wheel_.next_due(), 7);
  EXPECT_EQ(this->expire(7), std::vector<Item*>{&items[0]});
  this->expect_next_due(12);
  EXPECT_EQ(this->expire(12), std::vector<Item*>{&items[1]});
  this->expect_next_due(20);
  EXPECT_EQ(this->expire(20), std::vector<Item*>{&items[3]});
  EXPECT_EQ(this->expire(23), std::vector<Item*>{&items[2]});
  EXPECT_EQ(this->wheel_.size(), 0);
}

TYPED_TEST(EveryWheel, MovedItemsComeAfterItemsOfTheSameTick) {
  Item items[3];
  ASSERT_TRUE(this->insert(items[0], 30));
  ASSERT_TRUE(this->insert(items[1], 4));
  ASSERT_TRUE(this->insert(items[2], 4));
  this->move(items[0], 4);
  EXPECT_EQ(this->expire(4), (std::vector<Item*>{&items[1], &items[2], &items[0]}));
}

TYPED_TEST(EveryWheel, MoveIntoThePastIsDueInTheNextTick) {
  Item item;
  EXPECT_TRUE(this->expire(41).empty());
  ASSERT_TRUE(this->insert(item, 1000));
  this->move(item, 3);
  EXPECT_EQ(this->wheel_.next_due(), 42);
  this->move(item, 2000);
  this->move(item, -5);
  EXPECT_EQ(this->wheel_.next_due(), 42);
  EXPECT_EQ(this->expire(42), std::vector<Item*>{&item});
}

/// The random walks rely on it.
TYPED_TEST(EveryWheel, ItsCheckFindsEachFault) {
  TypeParam& wheel = this->wheel_;
  Item a;
  Item b;
  ASSERT_TRUE(this->insert(a, 3));
  ASSERT_TRUE(this->insert(b, 5));
  EXPECT_TRUE(wheel.consistent());
  const auto is_found = [&](auto&& part, auto wrong) {
    const auto right = part;
    part = wrong;
    const bool found = !wheel.consistent();
    part = right;
    return found && wheel.consistent();
  };
  Chunk& chunk = Chunk::of(a.position);
  EXPECT_TRUE(is_found(a.position, b.position));
  EXPECT_TRUE(is_found(chunk.bucket, chunk.bucket + 1));
  EXPECT_TRUE(is_found(chunk.used, Chunk::kEntries + 1));
  EXPECT_TRUE(is_found(chunk.used, chunk.used - 1));
  wheel.clear([](WheelItem&) {});
}

}  // namespace
}  // namespace hwt::internal
