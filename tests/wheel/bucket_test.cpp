// Chunks and their pool. A bucket gives back the memory of holes a little at a time. The check of its invariants, which
// the models of the wheels rely on, notices broken ones.

#include "hashed_wheel_timer/internal/wheel/bucket.h"

#include <random>
#include <set>

#include "gtest/gtest.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/checked_wheel.h"

namespace hwt::internal {
namespace {

using test::bytes_in_use;
using test::Shortage;

struct alignas(kCacheLine) Item : WheelItem {};

// --- Chunks, which keep addresses and tags in six bytes, and the pool that they come from ---

/// An address, of which nothing is ever read.
WheelItem& item_at(std::uint64_t address) {
  return *reinterpret_cast<WheelItem*>(static_cast<std::uintptr_t>(address));
}

TEST(Chunk, KeepsAddressAndTagOfEachEntry) {
  if (sizeof(void*) < 8) GTEST_SKIP() << "addresses are short here";
  Chunk chunk{};
  for (const std::uint64_t address : {std::uint64_t{0x0000'7fff'ffff'ffc0}, std::uint64_t{0x0000'0001'0000'0000},
                                      std::uint64_t{0x0000'0000'ffff'ff00}, std::uint64_t{0xffff'8000'0000'0040},
                                      std::uint64_t{0x00ab'cdef'0123'4540}, std::uint64_t{0x1234'0000'0000'0080}}) {
    chunk.top = Chunk::top_of(item_at(address));
    EXPECT_EQ(chunk.top, address >> 48);
    for (const std::uint64_t tag : {0u, 1u, 63u})
      for (std::size_t i = 0; i < Chunk::kEntries; ++i) {
        chunk.assign(i, address | tag);
        EXPECT_EQ(chunk.entry(i), (address | tag) & 0xffff'ffff'ffffu);
        EXPECT_EQ(chunk.entry(i) & Chunk::kTagMask, tag);
        EXPECT_EQ(*chunk.position(i) & Chunk::kTagMask, tag);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chunk.item(i)), address);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chunk.item_of(chunk.entry(i))), address);
        EXPECT_EQ(chunk.index_of(chunk.position(i)), i);
        EXPECT_EQ(&Chunk::of(chunk.position(i)), &chunk);
        chunk.assign(i, 0);
        EXPECT_EQ(chunk.entry(i), 0u);
      }
  }
}

TEST(Chunk, TakesOnlyItemsOfItsTopWhileItHasRoom) {
  if (sizeof(void*) < 8) GTEST_SKIP() << "addresses are short here";
  Chunk chunk{};
  chunk.top = 0x1234;
  EXPECT_TRUE(chunk.takes(item_at(0x1234'0000'0000'0040)));
  EXPECT_TRUE(chunk.takes(item_at(0x1234'ffff'ffff'ffc0)));
  EXPECT_FALSE(chunk.takes(item_at(0x1235'0000'0000'0040)));
  EXPECT_FALSE(chunk.takes(item_at(0x0000'0000'0000'0040)));
  chunk.used = Chunk::kEntries - 1;
  EXPECT_TRUE(chunk.takes(item_at(0x1234'0000'0000'0040)));
  chunk.used = Chunk::kEntries;
  EXPECT_FALSE(chunk.takes(item_at(0x1234'0000'0000'0040)));
}

TEST(ChunkPool, GivesOutEachChunkOnceAndTakesItBack) {
  ChunkPool pool;
  std::set<Chunk*> chunks;
  for (int i = 0; i < 1000; ++i) {
    Chunk* const chunk = pool.take();
    ASSERT_NE(chunk, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chunk) % alignof(Chunk), 0u);
    EXPECT_EQ(&Chunk::of(chunk->position(0)), chunk);
    EXPECT_EQ(&Chunk::of(chunk->position(Chunk::kEntries - 1)), chunk);
    EXPECT_TRUE(chunks.insert(chunk).second) << "given out twice";
  }
  const std::int64_t bytes = bytes_in_use;
  for (Chunk* chunk : chunks) pool.give_back(chunk);
  std::vector<Chunk*> again;
  again.reserve(chunks.size());
  const std::int64_t mine = bytes_in_use - bytes;
  for (std::size_t i = 0; i < chunks.size(); ++i) again.push_back(pool.take());
  EXPECT_EQ(bytes_in_use - mine, bytes);
  EXPECT_EQ(std::set<Chunk*>(again.begin(), again.end()), chunks);
}

// --- Buckets ---

constexpr std::size_t kNumber = 7;

/// A full bucket, of which one item after the other is removed.
class BucketOfHoles : public ::testing::Test {
 protected:
  static constexpr std::size_t kItems = 2'000;

  BucketOfHoles() {
    for (Item& item : items_) {
      EXPECT_TRUE(bucket_.add(item, tag_of(item), kNumber, pool_));
      left_.push_back(&item);
    }
  }

  std::uint64_t tag_of(const Item& item) const {
    return static_cast<std::uint64_t>(&item - items_.data()) & Chunk::kTagMask;
  }

  std::size_t chunks() const {
    std::size_t count = 0;
    for (const Chunk* chunk = bucket_.first; chunk != nullptr; chunk = chunk->next) ++count;
    return count;
  }

  /// Removes the items in this order. Checks how many others each removal moves, and how many chunks it gives back.
  void remove(const std::vector<Item*>& order) {
    std::vector<WheelItem::Position> places(kItems);
    std::size_t most_moved = 0, most_given_back = 0;
    for (std::size_t removed = 0; removed < order.size(); ++removed) {
      for (std::size_t i = 0; i < kItems; ++i) places[i] = items_[i].position;
      const std::size_t before = chunks();
      bucket_.remove(*order[removed], pool_);
      std::size_t moved = 0;
      for (std::size_t i = 0; i < kItems; ++i) {
        moved += items_[i].position != places[i] && items_[i].position != nullptr ? 1 : 0;
      }
      most_moved = std::max(most_moved, moved);
      most_given_back = std::max(most_given_back, before - chunks());
      ASSERT_LE(chunks(), 3 * (bucket_.items / Chunk::kEntries) + 6) << "after " << removed;
      ASSERT_TRUE(removed % 500 != 0 || is_consistent(bucket_, kNumber));
    }
    EXPECT_LE(most_moved, 2 * Chunk::kEntries);  // a removal makes one step of a sweep; see Bucket::tidy()
    EXPECT_LE(most_given_back, 6u);
    EXPECT_EQ(bucket_.first, nullptr);
    EXPECT_TRUE(is_consistent(bucket_, kNumber));
  }

  ChunkPool pool_;
  std::vector<Item> items_{kItems};
  std::vector<Item*> left_;
  Bucket bucket_{};
};

TEST_F(BucketOfHoles, GoesAPieceAtATimeFromTheFront) { remove(left_); }

TEST_F(BucketOfHoles, GoesAPieceAtATimeFromTheBack) {
  std::reverse(left_.begin(), left_.end());
  remove(left_);
}

TEST_F(BucketOfHoles, GoesAPieceAtATimeAtRandom) {
  std::shuffle(left_.begin(), left_.end(), std::mt19937_64(1));
  remove(left_);
}

/// One of each chunk is left at last.
TEST_F(BucketOfHoles, GoesAPieceAtATimeWithOneLeftInEachChunk) {
  std::stable_partition(left_.begin(), left_.end(), [&](const Item* item) { return (item - items_.data()) % 40 != 0; });
  remove(left_);
}

/// All items of a chunk have the same highest 16 bits of their addresses, the chunk's top.
TEST_F(BucketOfHoles, AChunkThatIsFilledUpAgainTakesOverTheTopOfItsNewItems) {
  std::size_t removed = 0;
  while (removed < Chunk::kEntries) bucket_.remove(items_[removed++], pool_);
  ++bucket_.first->top;  // as if its items had been elsewhere: all of them are holes
  while (bucket_.first->entry(0) == Chunk::kHole) {
    ASSERT_LT(removed + 1, kItems);
    bucket_.remove(items_[removed++], pool_);
  }
  ASSERT_EQ(bucket_.first->item(0), &items_[removed]);
  EXPECT_TRUE(is_consistent(bucket_, kNumber));
}

class BucketCheck : public ::testing::Test {
 protected:
  BucketCheck() {
    for (Item& item : items_) EXPECT_TRUE(bucket_.add(item, 0, kNumber, pool_));
    bucket_.remove(items_[1], pool_);
    EXPECT_TRUE(is_consistent(bucket_, kNumber));
  }

  /// Expects that the check fails while `field` has this value, and passes when `field` has its own value again.
  template <class T, class U>
  void expect_noticed(const char* fault, T& field, U value) {
    const T right = field;
    field = static_cast<T>(value);
    EXPECT_FALSE(is_consistent(bucket_, kNumber)) << fault;
    field = right;
    EXPECT_TRUE(is_consistent(bucket_, kNumber)) << fault;
  }

  ChunkPool pool_;
  std::array<Item, 3> items_;
  Bucket bucket_{};
};

TEST_F(BucketCheck, NoticesAWrongField) {
  Chunk other;
  expect_noticed("an item is not counted", bucket_.items, 1);
  expect_noticed("counts one item too many", bucket_.items, 3);
  expect_noticed("the hole is not counted", bucket_.holes, 0);
  expect_noticed("another last chunk", bucket_.last, &other);
  expect_noticed("the sweep has left the bucket", bucket_.sweep, &other);
  expect_noticed("a chunk of another bucket", bucket_.first->bucket, kNumber + 1);
  expect_noticed("more entries than a chunk has", bucket_.first->used, Chunk::kEntries + 1);
  expect_noticed("an entry is missing", bucket_.first->used, bucket_.first->used - 1);
  expect_noticed("an item knows another place", items_[0].position, items_[2].position);
}

TEST_F(BucketCheck, NoticesAChunkThatWasNotGivenBack) {
  bucket_.remove(items_[0], pool_);
  bucket_.remove(items_[2], pool_);
  EXPECT_EQ(bucket_.first, nullptr);
  Chunk forgotten{};
  forgotten.bucket = kNumber;
  bucket_.first = bucket_.last = &forgotten;
  EXPECT_FALSE(is_consistent(bucket_, kNumber));
}

}  // namespace
}  // namespace hwt::internal
