#pragma once

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/chunk.h"
#include "hashed_wheel_timer/internal/wheel_item.h"

namespace hwt::internal {

/// The items of one bucket or slot of a wheel, in the order in which they were added: a list of chunks. All bits zero
/// when empty, so that a wheel's buckets may be fresh memory.
/// Removal leaves a hole, which keeps the others in order; a bucket with more holes than items is compacted.
struct Bucket {
  /// False: no memory, nothing has changed. `number` is the bucket's own; Chunk::bucket keeps it.
  bool add(WheelItem& item, std::uint64_t tag, std::size_t number, ChunkPool& pool) noexcept;

  /// Precondition: the item is in this bucket.
  void remove(WheelItem& item, ChunkPool& pool) noexcept;

  /// Gives memory back that holes have left unused. May move entries.
  void tidy(ChunkPool& pool) noexcept {
    if (items == 0) {
      release_chunks(pool);
    } else if (holes > items + Chunk::kEntries) {
      // Only when the holes outnumber the items: each compaction is then paid for by as many removals.
      compact(pool);
    }
  }

  /// Gives back a chunk that holds nothing but holes; `before` is the one in front of it, if any.
  void drop(Chunk* before, Chunk* chunk, ChunkPool& pool) noexcept;

  /// Adds all that is in `other`, which is empty afterwards.
  void append(Bucket& other, std::size_t number) noexcept;

  /// Takes all items out.
  template <class Visitor>
  void clear(ChunkPool& pool, Visitor&& visit) noexcept;

  /// Checks the invariants; for tests. Slow.
  bool consistent(std::size_t number) const noexcept;

  Chunk* first;
  Chunk* last;
  std::uint32_t items;
  std::uint32_t holes;

 private:
  bool add_chunk(const WheelItem& item, std::size_t number, ChunkPool& pool) noexcept;
  void release_chunks(ChunkPool& pool) noexcept;
  void compact(ChunkPool& pool) noexcept;
};

inline bool Bucket::add(WheelItem& item, std::uint64_t tag, std::size_t number, ChunkPool& pool) noexcept {
  if ((last == nullptr || !last->takes(item)) && !add_chunk(item, number, pool)) return false;
  last->put(last->used++, item, tag);
  ++items;
  return true;
}

inline void Bucket::remove(WheelItem& item, ChunkPool& pool) noexcept {
  Chunk& chunk = Chunk::of(item.position);
  chunk.assign(chunk.index_of(item.position), 0);
  item.position = nullptr;
  --items;
  ++holes;
  tidy(pool);
}

template <class Visitor>
void Bucket::clear(ChunkPool& pool, Visitor&& visit) noexcept {
  for (Chunk* chunk = first; chunk != nullptr; chunk = chunk->next) {
    for (std::size_t i = 0; i < chunk->used; ++i) {
      if (chunk->entry(i) == 0) continue;
      WheelItem* const item = chunk->item(i);
      item->position = nullptr;
      visit(*item);
    }
  }
  items = 0;
  release_chunks(pool);
}

}  // namespace hwt::internal
