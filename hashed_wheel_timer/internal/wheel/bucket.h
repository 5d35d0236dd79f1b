// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// A piece of a bucket: entries in the order of insertion. It is aligned to its own size, so that the address of an
/// entry leads to its chunk.
///
/// An entry is an item's address with the wheel's tag in its six low bits, or a hole where one was removed. It takes
/// six bytes instead of eight. The highest 16 bits of addresses are nearly always equal, so the chunk stores them once.
/// That saves two of 72 bytes for each pending timeout, and a quarter of the memory that a walk
/// over far timeouts reads.
struct alignas(256) Chunk {
  static constexpr std::size_t kEntries = 40;
  static constexpr std::uintptr_t kTagMask = kCacheLine - 1;
  static constexpr std::uint64_t kHole = 0;  // no item has this address

  static Chunk& of(WheelItem::Position position) noexcept {
    return *reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(position) & ~(alignof(Chunk) - 1));
  }
  std::size_t index_of(WheelItem::Position position) const noexcept { return static_cast<std::size_t>(position - low); }
  WheelItem::Position position(std::size_t i) noexcept { return &low[i]; }

  static std::uint16_t top_of(const WheelItem& item) noexcept {
    return static_cast<std::uint16_t>(reinterpret_cast<std::uint64_t>(&item) >> 48);
  }
  bool takes(const WheelItem& item) const noexcept { return used != kEntries && top == top_of(item); }

  std::uint64_t entry(std::size_t i) const noexcept { return low[i] | std::uint64_t{high[i]} << 32; }
  WheelItem* item_of(std::uint64_t entry) const noexcept {
    return reinterpret_cast<WheelItem*>(static_cast<std::uintptr_t>((entry & ~kTagMask) | std::uint64_t{top} << 48));
  }
  WheelItem* item(std::size_t i) const noexcept { return item_of(entry(i)); }

  /// Writes the entry of an item, and tells the item this place.
  void put(std::size_t i, WheelItem& item, std::uint64_t tag) noexcept {
    assign(i, reinterpret_cast<std::uint64_t>(&item) | tag);
    item.position = position(i);
  }
  void assign(std::size_t i, std::uint64_t entry) noexcept {
    low[i] = static_cast<std::uint32_t>(entry);
    high[i] = static_cast<std::uint16_t>(entry >> 32);
  }

  [[gnu::always_inline]] void prefetch() const noexcept {
    for (std::size_t offset = 0; offset < sizeof(Chunk); offset += kCacheLine) {
      prefetch_to_write(reinterpret_cast<const char*>(this) + offset);
    }
  }

  /// Prefetches the item of entry i if the entry has this tag. Beyond the end of this chunk, the number goes on in the
  /// next one.
  [[gnu::always_inline]] void prefetch_item(std::size_t i, std::uint64_t tag) const noexcept {
    const Chunk* holder = this;
    if (i >= used) {
      i -= used;
      holder = next;
      if (holder == nullptr || i >= holder->used) return;
    }
    if ((holder->low[i] & kTagMask) == tag) prefetch_to_write(holder->item(i));
  }

  Chunk* next;
  std::uint32_t bucket;  // the number of the bucket that owns the chunk
  std::uint16_t used;    // entries [0 .. used) are items or holes
  std::uint16_t top;     // the highest 16 bits of the address of each item
  std::uint32_t low[kEntries];
  std::uint16_t high[kEntries];
};
static_assert(sizeof(Chunk) == alignof(Chunk));

/// Memory for chunks. It is carved from regions, and kept for reuse until the wheel is destroyed.
class ChunkPool {
 public:
  /// Makes sure that the next take() succeeds. Returns false without memory.
  bool reserve() noexcept { return free_ != nullptr || carved_ != Tuning::kChunksPerRegion || grow(); }
  Chunk* take() noexcept;  // null: no memory
  void give_back(Chunk* chunk) noexcept;

 private:
  bool grow() noexcept;

  std::vector<std::unique_ptr<Chunk[]>> regions_;
  std::size_t carved_ = Tuning::kChunksPerRegion;  // of the last region
  Chunk* free_ = nullptr;
};

/// The items of one bucket or slot of a wheel, in the order in which they were added: a list of chunks. All bits are
/// zero when it is empty, so a wheel's buckets may be fresh memory.
///
/// Removing an item leaves a hole, so that the others keep their order. When a bucket has a chunk more holes than
/// items, each removal also closes the holes of one chunk, until few are left. So no removal takes long. The list of
/// chunks is valid after each step.
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
