// The hierarchical wheel alone, besides what every_wheel_test checks: all of a small wheel, and each of its mechanisms
// by itself.

#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"

#include <tuple>

#include "gtest/gtest.h"
#include "tests/support/build_kind.h"
#include "tests/wheel/turn.h"

namespace hwt::internal {
namespace {

using test::bytes_in_use;

/// Inserts an item and turns the wheel to its end. The item must come exactly when it is due, and down each level once
/// at most, however far away it is.
void expect_exact(HierarchicalWheel& wheel, Tick due) {
  Item item;
  ASSERT_TRUE(insert(wheel, item, due));
  ASSERT_LE(wheel.next_due(), due);
  const int ticks = run_all(wheel);
  ASSERT_EQ(item.came_at, due);
  ASSERT_LT(item.moves, SlotLevels(wheel.revolution()).levels());
  ASSERT_EQ(ticks, static_cast<int>(item.moves) + 1);
}

/// Numbers of slots, and how many items make a crowd.
class AllOfASmallWheel : public ::testing::TestWithParam<std::tuple<std::int64_t, std::uint32_t>> {
 protected:
  HierarchicalWheel wheel() const { return std::make_from_tuple<HierarchicalWheel>(GetParam()); }
};

/// From every cursor to every tick, over several levels, however the cursor came to where it is.
TEST_P(AllOfASmallWheel, ExactFromEveryCursorToEveryTick) {
  constexpr Tick kTicks = test::kCounting ? 80 : test::kSanitized ? 150 : 300;  // nine levels of 2 slots, five of 4
  for (Tick cursor = 0; cursor < kTicks; ++cursor)
    for (Tick due = cursor; due <= kTicks; ++due)
      for (const bool by_skipping : {false, true}) {
        HierarchicalWheel wheel = this->wheel();
        if (by_skipping) {
          wheel.skip_to(cursor);
        } else if (cursor > 0) {
          expire(wheel, cursor - 1);
        }
        ASSERT_NO_FATAL_FAILURE(expect_exact(wheel, due)) << "from " << cursor;
      }
}

/// A second item comes at any time until the first one is due.
TEST_P(AllOfASmallWheel, ExactForEveryTwo) {
  constexpr Tick kTicks = test::kCounting ? 30 : test::kSanitized ? 40 : 70;
  for (Tick first = 0; first <= kTicks; ++first)
    for (Tick now = 0; now <= first; ++now)
      for (Tick second = now; second <= kTicks; ++second) {
        HierarchicalWheel wheel = this->wheel();
        Item a;
        Item b;
        ASSERT_TRUE(insert(wheel, a, first));
        run_to(wheel, now);
        ASSERT_TRUE(insert(wheel, b, second));
        ASSERT_LE(wheel.next_due(), std::min(first, second)) << first << ", at " << now << " " << second;
        run_all(wheel);
        ASSERT_EQ(a.came_at, first) << "with " << second << " at " << now;
        ASSERT_EQ(b.came_at, second) << "with " << first << " from " << now;
      }
}

INSTANTIATE_TEST_SUITE_P(Slots, AllOfASmallWheel,
                         ::testing::Combine(::testing::Values(2, 4), ::testing::Values(1, kNoCrowd)));

/// Around each border between two levels, from the beginning and from elsewhere.
TEST(HierarchicalWheel, ExactAtTheBordersOfLevels) {
  for (const std::int64_t slots : {2, 4, 16, 64, 256, 4096})
    for (const Tick start : {Tick{0}, Tick{1}, Tick{62}, Tick{63}, Tick{1'000'003}, (Tick{1} << 40) - 1}) {
      for (const Tick border : {Tick{64}, Tick{256}, Tick{4 * 256}, Tick{64 * 64}, Tick{64 * 64 * 64}, Tick{65'536},
                                Tick{1} << 24, Tick{1} << 30, Tick{1} << 36, Tick{1} << 60, Tick{3} << 61}) {
        for (const Tick off : {-2, -1, 0, 1, 2}) {
          for (const bool from_zero : {false, true}) {  // a tick near the border, or a span near it
            const Tick due = (from_zero ? 0 : start) + border + off;
            if (due < start) continue;
            HierarchicalWheel wheel(slots);
            wheel.skip_to(start);
            ASSERT_NO_FATAL_FAILURE(expect_exact(wheel, due)) << slots << " slots, from " << start;
          }
        }
      }
    }
}

/// The walk of a tick in a higher level was stopped, and nothing that it left is there any more.
TEST(HierarchicalWheel, NothingIsDueBeforeATickThatWasSkippedAfterAStop) {
  constexpr Tick kTick = 64;
  Checked<HierarchicalWheel> wheel(64);
  std::array<Item, 3> items;
  ASSERT_TRUE(insert(wheel, items[0], kTick));
  ASSERT_TRUE(insert(wheel, items[1], kTick));
  int visits = 0;
  wheel.expire(kTick, [&](WheelItem&) { return visits++ == 0 ? Verdict::taken() : Verdict::stop(); });
  EXPECT_EQ(wheel.next_due(), kTick);
  wheel.remove(items[1]);
  wheel.skip_to(kTick + 1);
  ASSERT_TRUE(insert(wheel, items[2], kTick + 5));
  EXPECT_GT(wheel.next_due(), kTick);
  EXPECT_TRUE(wheel.consistent());
  wheel.remove(items[2]);
}

/// If the cursor has kept up, a near item need not come down.
TEST(HierarchicalWheel, AfterASkipNearIsNear) {
  Checked<HierarchicalWheel> wheel(64);
  wheel.skip_to((Tick{1} << 50) + 1);
  Item item;
  ASSERT_TRUE(insert(wheel, item, (Tick{1} << 50) + 4));
  EXPECT_EQ(wheel.next_due(), item.due);
}

// --- Crowded slots ---

/// One expire() moves at most some thousands of items of a slot, so that due items need not wait for all of them.
TEST(HierarchicalWheel, OfACrowdedSlotOnlySomeThousandsComeDownAtATime) {
  constexpr std::size_t kItems = 300'000, kCrowd = 8192;
  struct Row {
    std::int64_t slots;
    Tick first;
    Tick span;
    std::size_t levels;  // that the items come down through
  };
  for (const auto& [slots, first, span, levels] :
       {Row{64, 64, 64, 1}, Row{64, 4096, 4096, 2}, Row{64, 4096, 50, 2}, Row{64, 262'144, 200'000, 3},
        Row{64, 262'144 + 3 * 4096 + 7, 1000, 3}, Row{64, 262'144 + 5, 1, 3}, Row{512, 512 * 512, 10'000, 2},
        Row{8, 4096, 4096, 4}}) {
    SCOPED_TRACE(std::to_string(slots) + " slots, from " + std::to_string(first) + " to " +
                 std::to_string(first + span));
    Checked<HierarchicalWheel> wheel(slots);
    std::vector<Item> items(kItems);
    std::map<Tick, std::vector<Item*>> by_due;
    for (std::size_t i = 0; i < kItems; ++i) {
      ASSERT_TRUE(insert(wheel, items[i], first + static_cast<Tick>(i * 7919) % span));
      by_due[items[i].due].push_back(&items[i]);
    }
    EXPECT_TRUE(wheel.consistent());
    std::size_t most = 0;
    while (wheel.next_due() != kNever) {
      const Tick tick = wheel.next_due();
      std::vector<Item*> taken;
      std::size_t visited = 0;
      wheel.expire(tick, [&](WheelItem& item) {
        ++visited;
        const Verdict verdict = usual(item, tick);
        if (verdict.is_taken()) taken.push_back(static_cast<Item*>(&item));
        return verdict;
      });
      most = std::max(most, visited - taken.size());
      if (taken.empty()) continue;
      ASSERT_EQ(by_due.begin()->first, tick);
      ASSERT_EQ(taken, by_due.begin()->second) << "not in order of insertion, at " << tick;
      by_due.erase(by_due.begin());
    }
    EXPECT_TRUE(by_due.empty());
    EXPECT_LE(most, levels * kCrowd);
    EXPECT_GE(most, kCrowd / 2) << "a crowd where there is none";
  }
}

/// Besides itself, an item occupies 6.4 bytes of a full chunk; the bound is 8. This holds on its way down too, because
/// a slot that comes down gives its chunks to the slots below.
TEST(HierarchicalWheel, SmallWhenFullAndWhileItComesDown) {
  constexpr std::size_t kItems = 200'000;
  std::vector<Item> items(kItems);
  const std::int64_t before = bytes_in_use;
  Checked<HierarchicalWheel> wheel(64);
  for (std::size_t i = 0; i < kItems; ++i) {
    ASSERT_TRUE(insert(wheel, items[i], static_cast<Tick>(64 * 64 * 64 + i * 7919 % 250'000)));
  }
  EXPECT_LE(bytes_in_use - before, static_cast<std::int64_t>(kItems * 8));
  for (int ticks = 0; wheel.next_due() != kNever; ++ticks) {
    expire(wheel, wheel.next_due());
    // One chunk more, at most, for each slot that has been begun.
    ASSERT_LE(bytes_in_use - before, static_cast<std::int64_t>(kItems * 8));
  }
  for (const Item& item : items) ASSERT_EQ(item.came_at, item.due);
}

/// A wheel whose pool has no free chunk. Items of one tick then get later ticks.
class HomelessItems : public ::testing::Test {
 protected:
  static constexpr Tick kNow = 63;

  /// Inserts items of kNow, and then gives them these ticks without memory.
  void make_homeless(const std::vector<Tick>& dues) {
    wheel_.skip_to(kNow);
    for (std::size_t i = 0; i < dues.size(); ++i) ASSERT_TRUE(insert(wheel_, items_.emplace_back(), kNow));
    const Shortage shortage(0, Shortage::kAll);
    while (insert(wheel_, fillers_[filled_], kNever - 1)) ++filled_;
    std::size_t next = 0;
    wheel_.expire(kNow, [&](WheelItem& item) {
      static_cast<Item&>(item).due = dues[next];
      return Verdict::later(dues[next++]);
    });
    ASSERT_EQ(next, dues.size());
    ASSERT_EQ(wheel_.homeless(), dues.size());
    ASSERT_TRUE(wheel_.consistent());
  }
  void run_all_in_time() {
    for (Tick due = wheel_.next_due(); due != kNever; due = wheel_.next_due()) {
      expire(wheel_, due);
      ASSERT_TRUE(wheel_.consistent());
    }
    for (const Item& item : items_) EXPECT_EQ(item.came_at, item.due);
  }

  Checked<HierarchicalWheel> wheel_{4, 1};
  std::deque<Item> items_;
  std::deque<Item> fillers_ = std::deque<Item>(65 * Chunk::kEntries);
  std::size_t filled_ = 0;
};

TEST_F(HomelessItems, OfTheLatestTickAreNeverDue) {
  make_homeless({kNever - 1});
  EXPECT_EQ(wheel_.next_due(), kNever);
  wheel_.remove(items_.front());
  EXPECT_TRUE(wheel_.consistent());
}

TEST_F(HomelessItems, MakeNoTickDueBeforeTheirs) {
  make_homeless({90, 80, Tick{1} << 40});
  EXPECT_EQ(wheel_.next_due(), 80);
  const Shortage shortage(0, Shortage::kAll);
  EXPECT_EQ(run_all(wheel_), 3);
  for (const Item& item : items_) EXPECT_EQ(item.came_at, item.due);
}

TEST_F(HomelessItems, ThatAreWantedAgainInTheTickBeforeTheLatestOneAreNeverDue) {
  constexpr Tick kLast = kNever - 2;
  wheel_.skip_to(kLast);
  ASSERT_TRUE(insert(wheel_, items_.emplace_back(), kLast));
  wheel_.expire(kLast, [](WheelItem&) { return Verdict::later(kLast); });
  EXPECT_EQ(wheel_.homeless(), 1u);
  EXPECT_EQ(wheel_.next_due(), kNever);
}

/// A tick is open until skip_to() closes it.
TEST_F(HomelessItems, DoNotHideANewItemOfTheTickThatWasWalked) {
  make_homeless({80, 90});
  ASSERT_TRUE(insert(wheel_, items_.emplace_back(), kNow));
  EXPECT_EQ(wheel_.next_due(), kNow);
  run_all_in_time();
}

/// They find memory in the tick in which a crowd comes down. They are a crowd too, and belong into its span.
TEST_F(HomelessItems, ComeDownTogetherWithACrowd) {
  for (const Tick due : {70, 65, 66, 67}) ASSERT_TRUE(insert(wheel_, items_.emplace_back(), due));
  make_homeless({69, 69, 69});
  EXPECT_EQ(wheel_.next_due(), 64);
  run_all_in_time();
}

/// They alone are due, in the middle of a slot's span. New items of that tick come while the walk is stopped.
TEST_F(HomelessItems, AreDueInASpanThatHasBegun) {
  make_homeless({74, 75});
  ASSERT_EQ(wheel_.next_due(), 74);
  wheel_.expire(74, [](WheelItem&) { return Verdict::stop(); });
  for (const Tick due : {74, 74, 74, 74, 76}) ASSERT_TRUE(insert(wheel_, items_.emplace_back(), due));
  run_all_in_time();
}

TEST_F(HomelessItems, AreRemovedMovedAndClearedAlsoAfterAStop) {
  make_homeless({80, 81, 82, 83, 84});
  wheel_.remove(items_[0]);
  EXPECT_TRUE(wheel_.consistent());
  int visited = 0;
  wheel_.expire(64, [&](WheelItem& item) {
    return ++visited == 2 ? Verdict::stop() : Verdict::later(static_cast<Item&>(item).due);
  });
  EXPECT_EQ(wheel_.next_due(), 64);
  EXPECT_EQ(wheel_.homeless(), 3u);
  wheel_.remove(items_[2]);
  ASSERT_TRUE(wheel_.reserve());
  wheel_.move(items_[3], items_[3].due = 70);
  EXPECT_EQ(wheel_.homeless(), 1u);
  EXPECT_EQ(wheel_.size(), static_cast<std::int64_t>(filled_ + 3));
  EXPECT_TRUE(wheel_.consistent());
  run_to(wheel_, 71);
  EXPECT_EQ(items_[3].came_at, 70);
  std::int64_t cleared = 0;
  wheel_.clear([&](WheelItem&) { ++cleared; });
  EXPECT_EQ(cleared, static_cast<std::int64_t>(filled_ + 2));
  EXPECT_TRUE(wheel_.consistent());
  EXPECT_EQ(wheel_.next_due(), kNever);
}

}  // namespace
}  // namespace hwt::internal
