#pragma once

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel/chunk.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// The items of one bucket or slot of a wheel, in the order in which they were added: a list of chunks. All bits are
/// zero when it is empty, so a wheel's buckets may be fresh memory.
///
/// Removal leaves a hole, which keeps the others in order. Once there are more holes than items, each removal also
/// closes up the holes of one chunk, until few are left. So no thread waits while millions of entries move, and the
/// list of chunks is valid after each step.
struct Bucket {
  /// False: no memory, nothing has changed. `number` is the bucket's own; Chunk::bucket keeps it.
  bool add(WheelItem& item, std::uint64_t tag, std::size_t number, ChunkPool& pool) noexcept;

  /// Precondition: the item is in this bucket.
  void remove(WheelItem& item, ChunkPool& pool) noexcept;

  /// Leaves a hole where an item was; for a walk, which tidies when it has ended.
  void punch(Chunk& chunk, std::size_t i) noexcept {
    chunk.assign(i, Chunk::kHole);
    --items;
    ++holes;
  }

  /// Gives back the memory of holes, `pieces` of it at most. Each may move the entries of two chunks.
  void tidy(ChunkPool& pool, int pieces = 1) noexcept {
    if (items == 0) {
      if (first != nullptr) release_chunks(pool);  // few: the holes of most have been closed up before
    } else if (sweep != nullptr || holes > items + Chunk::kEntries) {
      // Only when the holes outnumber the items: a sweep is then paid for by as many removals.
      do {
        compact_next(pool);
      } while (--pieces > 0 && sweep != nullptr);
    }
  }

  /// Gives back a chunk that holds nothing but holes; `before` is the one in front of it, if any.
  void drop(Chunk* before, Chunk* chunk, ChunkPool& pool) noexcept;

  /// Moves all items of `other` to the front; `other` is empty afterwards. `number` is the bucket's own.
  void prepend(Bucket& other, std::size_t number) noexcept;

  /// Takes all items out.
  template <class Visitor>
  void clear(ChunkPool& pool, Visitor&& visit) noexcept;

  Chunk* first;
  Chunk* last;
  Chunk* sweep;  // those before it have been closed up; null: none are being closed up
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
