// Chunks, which keep addresses and tags in six bytes, and the pool that they come from.

#include "hashed_wheel_timer/internal/wheel/chunk.h"

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"
#include "tests/support/allocation_hook.h"

namespace hwt::internal {
namespace {

using test::bytes_in_use;
using test::Shortage;

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
    chunk.region = Chunk::region_of(item_at(address));
    EXPECT_EQ(chunk.region, address >> 48);
    for (const std::uint64_t tag : {0u, 1u, 63u}) {
      for (std::size_t i = 0; i < Chunk::kEntries; ++i) {
        chunk.assign(i, address | tag);
        EXPECT_EQ(chunk.entry(i), (address | tag) & 0xffff'ffff'ffffu);
        EXPECT_EQ(chunk.entry(i) & Chunk::kTagMask, tag);
        EXPECT_EQ(*chunk.position(i) & Chunk::kTagMask, tag);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chunk.item(i)), address);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(chunk.item_of(chunk.entry(i))), address);
        chunk.assign(i, 0);
        EXPECT_EQ(chunk.entry(i), 0u);
      }
    }
  }
}

TEST(Chunk, NeighboursAreIndependent) {
  Chunk chunk{};
  for (std::size_t i = 0; i < Chunk::kEntries; ++i) chunk.assign(i, (i + 1) * 0x0001'0203'0405u);
  for (std::size_t i = 0; i < Chunk::kEntries; ++i) {
    EXPECT_EQ(chunk.entry(i), (i + 1) * 0x0001'0203'0405u);
    EXPECT_EQ(chunk.index_of(chunk.position(i)), i);
    EXPECT_EQ(&Chunk::of(chunk.position(i)), &chunk);
  }
}

TEST(Chunk, TakesOnlyItemsOfItsRegionWhileItHasRoom) {
  if (sizeof(void*) < 8) GTEST_SKIP() << "addresses are short here";
  Chunk chunk{};
  chunk.region = 0x1234;
  EXPECT_TRUE(chunk.takes(item_at(0x1234'0000'0000'0040)));
  EXPECT_TRUE(chunk.takes(item_at(0x1234'ffff'ffff'ffc0)));
  EXPECT_FALSE(chunk.takes(item_at(0x1235'0000'0000'0040)));
  EXPECT_FALSE(chunk.takes(item_at(0x0000'0000'0000'0040)));
  chunk.used = Chunk::kEntries - 1;
  EXPECT_TRUE(chunk.takes(item_at(0x1234'0000'0000'0040)));
  chunk.used = Chunk::kEntries;
  EXPECT_FALSE(chunk.takes(item_at(0x1234'0000'0000'0040)));
}

TEST(Chunk, PutTellsTheItemItsPlace) {
  struct alignas(kCacheLine) Item : WheelItem {
  } item;
  Chunk chunk{};
  chunk.region = Chunk::region_of(item);
  chunk.put(7, item, 42);
  EXPECT_EQ(item.position, chunk.position(7));
  EXPECT_EQ(chunk.item(7), &item);
  EXPECT_EQ(chunk.entry(7) & Chunk::kTagMask, 42u);
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

TEST(ChunkPool, WithoutMemoryGivesNull) {
  ChunkPool pool;
  {
    const Shortage shortage(0, Shortage::kAll);
    EXPECT_EQ(pool.take(), nullptr);
  }
  EXPECT_NE(pool.take(), nullptr);
}

}  // namespace
}  // namespace hwt::internal
