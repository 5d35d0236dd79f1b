// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel/chunk.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// The items of one bucket or slot of a wheel, in the order in which they were added: a list of chunks. All bits are
/// zero when it is empty, so a wheel's buckets may be fresh memory.
///
/// Removing an item leaves a hole, so that the others keep their order. Once there are a chunk more holes than items,
/// each removal also closes up the holes of one chunk, until few are left. So no thread waits while millions of entries
/// move. The list of chunks is valid after each step.
struct Bucket {
  /// Adds an item at the end. `number`: the number of this bucket, for Chunk::bucket. Returns false without memory;
  /// then nothing has changed.
  bool add(WheelItem& item, std::uint64_t tag, std::size_t number, ChunkPool& pool) noexcept;

  /// Removes an item. Precondition: it is in this bucket.
  void remove(WheelItem& item, ChunkPool& pool) noexcept;

  /// Replaces an entry with a hole. Gives no memory back: remove() calls tidy() for that, and a walk drops each chunk
  /// in which no item is left.
  void punch(Chunk& chunk, std::size_t i) noexcept {
    chunk.assign(i, Chunk::kHole);
    --items;
    ++holes;
  }

  /// Closes up holes and gives back their memory, in at most `steps` steps. A step may move the entries of two chunks.
  void tidy(ChunkPool& pool, int steps = 1) noexcept {
    if (items == 0) {
      if (first != nullptr) release_chunks(pool);  // only a few chunks, because earlier steps closed up most
    } else if (sweep != nullptr || holes > items + Chunk::kEntries) {
      // A sweep begins only when holes outnumber items, so as many removals have paid for it.
      do {
        compact_next(pool);
      } while (--steps > 0 && sweep != nullptr);
    }
  }

  /// Gives back a chunk that has only holes. `before`: the chunk in front of it, or null.
  void drop(Chunk* before, Chunk* chunk, ChunkPool& pool) noexcept;

  /// Moves all items of `other` to the front of this bucket. `number`: the number of this bucket.
  void prepend(Bucket& other, std::size_t number) noexcept;

  /// Removes all items, and calls visit(item) for each.
  template <class Visitor>
  void clear(ChunkPool& pool, Visitor&& visit) noexcept;

  Chunk* first;
  Chunk* last;
  Chunk* sweep;  // the next chunk to close up; null: no sweep is in progress
  std::uint32_t items;
  std::uint32_t holes;

 private:
  bool add_chunk(const WheelItem& item, std::size_t number, ChunkPool& pool) noexcept;
  void release_chunks(ChunkPool& pool) noexcept;
  void compact_next(ChunkPool& pool) noexcept;
  void close_up(Chunk& chunk) noexcept;
};

inline bool Bucket::add(WheelItem& item, std::uint64_t tag, std::size_t number, ChunkPool& pool) noexcept {
  if ((last == nullptr || !last->takes(item)) && !add_chunk(item, number, pool)) return false;
  last->put(last->used++, item, tag);
  ++items;
  return true;
}

inline void Bucket::remove(WheelItem& item, ChunkPool& pool) noexcept {
  Chunk& chunk = Chunk::of(item.position);
  punch(chunk, chunk.index_of(item.position));
  item.position = nullptr;
  tidy(pool);
}

template <class Visitor>
void Bucket::clear(ChunkPool& pool, Visitor&& visit) noexcept {
  for (Chunk* chunk = first; chunk != nullptr; chunk = chunk->next) {
    for (std::size_t i = 0; i < chunk->used; ++i) {
      if (chunk->entry(i) == Chunk::kHole) continue;
      WheelItem* const item = chunk->item(i);
      item->position = nullptr;
      visit(*item);
    }
  }
  items = 0;
  release_chunks(pool);
}

}  // namespace hwt::internal
