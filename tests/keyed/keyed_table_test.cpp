// KeyedTable: how it grows. KeyedRecord: the order of armings.

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/detail/keyed/entry.h"
#include "hashed_wheel_timer/detail/keyed/table.h"

namespace hwt {
namespace {

/// A cell that counts how often cells are moved.
struct CountedCell {
  std::uint32_t hash = 0;
  std::uint32_t number = 0;  // 0: free

  static inline std::int64_t moves = 0;

  CountedCell() = default;
  CountedCell(std::uint32_t its_hash, std::uint32_t its_number) : hash(its_hash), number(its_number) {}
  CountedCell(CountedCell&& other) noexcept : hash(other.hash), number(std::exchange(other.number, 0)) { ++moves; }
  CountedCell& operator=(CountedCell&& other) noexcept {
    hash = other.hash;
    number = std::exchange(other.number, 0);
    ++moves;
    return *this;
  }
  bool is_free() const noexcept { return number == 0; }
};

constexpr int kUsed = 5;
using Table = detail::KeyedTable<CountedCell, kUsed>;

std::uint32_t spread(std::uint32_t number) { return (number * 0x9e3779b1U) >> kUsed; }

void insert(Table& table, std::uint32_t hash, std::uint32_t number) {
  table.make_room(hash);
  table.insert({hash, number});
}
void fill(Table& table, std::uint32_t cells) {
  for (std::uint32_t number = 1; number <= cells; ++number) insert(table, spread(number), number);
}
CountedCell* find(const Table& table, std::uint32_t hash, std::uint32_t number) {
  return table.find(hash, [number](const CountedCell& cell) { return cell.number == number; });
}
/// Expects the cells of fill(), and no others up to `most`.
void expect_cells(Table& table, std::uint32_t cells, std::uint32_t most) {
  EXPECT_EQ(table.size(), cells);
  std::uint32_t seen = 0;
  table.for_each([&seen](const CountedCell&) { ++seen; });
  EXPECT_EQ(seen, cells);
  for (std::uint32_t number = 1; number <= most; ++number) {
    ASSERT_EQ(find(table, spread(number), number) != nullptr, number <= cells) << number;
  }
}

/// A number after the latest is not outdated: its timeout was armed and has expired before rearm() stored the number.
TEST(KeyedRecord, AnOutdatedArmingIsFoundAlsoWhenTheNumbersBeginAgain) {
  constexpr std::uint32_t kNumbers = std::uint32_t{1} << 31;
  for (const std::uint32_t latest : {0U, 1U, 1000U, kNumbers / 2, kNumbers - 1}) {
    EXPECT_FALSE(detail::KeyedRecord::is_outdated(latest, latest)) << latest;
    EXPECT_FALSE(detail::KeyedRecord::is_outdated(latest + 1, latest)) << latest;
    EXPECT_FALSE(detail::KeyedRecord::is_outdated((latest - kNumbers / 2 - 1) % kNumbers, latest)) << latest;
    for (const std::uint32_t before : {1U, 2U, kNumbers / 2}) {
      EXPECT_TRUE(detail::KeyedRecord::is_outdated((latest - before) % kNumbers, latest)) << latest << ' ' << before;
    }
  }
}

TEST(KeyedTable, NoInsertionMovesMoreThanAPage) {
  constexpr std::uint32_t kCells = 1'000'000;
  Table table;
  std::int64_t most = 0;
  for (std::uint32_t number = 1; number <= kCells; ++number) {
    const std::int64_t before = CountedCell::moves;
    insert(table, spread(number), number);
    most = std::max(most, CountedCell::moves - before);
  }
  EXPECT_LE(most, 3 * 1024);  // a page has up to 1024 cells, and may be split more than once
  expect_cells(table, kCells, kCells);
}

/// Few hashes make long runs of cells, which wrap around the end of the table, and into which removals tear holes.
TEST(KeyedTable, ErasedCellsLeaveTheOthersWhereTheyAreFound) {
  for (const std::uint32_t hashes : {4U, 300U, 1U << 27}) {
    Table table;
    std::set<std::uint32_t> numbers;
    std::minstd_rand random(1);
    const auto hash_of = [hashes](std::uint32_t number) { return spread(number) % hashes; };
    for (int step = 0; step < 50'000; ++step) {
      const auto number = static_cast<std::uint32_t>(1 + random() % (hashes == 4 ? 60 : 1000));
      if (numbers.erase(number) != 0) {
        ASSERT_EQ(table.erase(find(table, hash_of(number), number)).number, number);
      } else {
        numbers.insert(number);
        insert(table, hash_of(number), number);
      }
      ASSERT_EQ(table.size(), numbers.size());
      const auto other = static_cast<std::uint32_t>(1 + random() % 60);
      ASSERT_EQ(find(table, hash_of(other), other) != nullptr, numbers.count(other) != 0) << hashes << ' ' << other;
    }
    for (const std::uint32_t number : numbers) ASSERT_NE(find(table, hash_of(number), number), nullptr) << number;
  }
}

// drain() and stop() take all cells with a swap.
TEST(KeyedTable, ASwapLeavesAllCellsOfBothTablesWhereTheyAreFound) {
  constexpr std::uint32_t kMany = 300'000;  // in many pages
  constexpr std::uint32_t kFew = 3;         // in one
  Table many;
  Table few;
  fill(many, kMany);
  fill(few, kFew);
  few.swap(many);
  ASSERT_NO_FATAL_FAILURE(expect_cells(few, kMany, kMany));
  expect_cells(many, kFew, kMany);
}

// A bad hash costs time, not memory: nothing can be split.
TEST(KeyedTable, EqualHashesOnlyEnlargeOnePage) {
  constexpr std::uint32_t kCells = 3000;
  Table table;
  for (std::uint32_t number = 1; number <= kCells; ++number) insert(table, number % 2, number);
  std::set<std::uint32_t> seen;
  table.for_each([&seen](const CountedCell& cell) { seen.insert(cell.number); });
  EXPECT_EQ(seen.size(), kCells);
  for (std::uint32_t number = 1; number <= kCells; ++number) {
    EXPECT_EQ(table.erase(find(table, number % 2, number)).number, number);
  }
  EXPECT_EQ(table.size(), 0U);
}

}  // namespace
}  // namespace hwt
