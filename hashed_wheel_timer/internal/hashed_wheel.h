#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/internal/due_index.h"
#include "hashed_wheel_timer/internal/wheel_item.h"
#include "hashed_wheel_timer/internal/zeroed_array.h"

namespace hwt::internal {

/// Piece of a bucket: entries in order of insertion. Aligned to its own size, so that the chunk of an entry is found
/// from the entry's address.
struct alignas(256) Chunk {
  static constexpr std::size_t kEntries = 30;

  static Chunk& of(std::uintptr_t* entry) noexcept {
    return *reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(entry) & ~(alignof(Chunk) - 1));
  }

  Chunk* next;
  std::uint32_t used;    // entries[0 .. used) have been taken
  std::uint32_t bucket;  // the bucket that the chunk belongs to
  std::uintptr_t entries[kEntries];
};
static_assert(sizeof(Chunk) == alignof(Chunk));

/// Memory for chunks: carved from regions, reused, given back with the wheel.
class ChunkPool {
 public:
  Chunk* take() noexcept;  // null: no memory
  void give_back(Chunk* chunk) noexcept;

 private:
  static constexpr std::size_t kChunksPerRegion = 64;  // 16 KiB

  std::vector<std::unique_ptr<Chunk[]>> regions_;
  std::size_t carved_ = kChunksPerRegion;  // of the last region
  Chunk* free_ = nullptr;
};

/// A timing wheel: bucket `tick & mask` holds everything that is due in that tick of any revolution. Thread-free: no
/// clock, no atomics, no threads. Varghese & Lauck, scheme 6; Netty: HashedWheelBucket.
///
/// A bucket is an array of entries, not a linked list: a walk then reads memory in order and can prefetch the items.
/// An entry is the item's address with the revolution modulo 64 in its six low bits, so that a walk skips items of
/// other revolutions without touching them; which of the items 64 revolutions apart is meant, the visitor decides.
/// Removal leaves a hole, which keeps the others in order; a bucket with more holes than items is compacted.
class HashedWheel {
 public:
  /// What a visitor answers to stop the walk; the item and those after it stay as they are.
  static constexpr Tick kStop = -1;
  /// What a visitor answers when it has taken the item out of the wheel's hands.
  static constexpr Tick kTaken = -2;

  /// `buckets` is a power of two. Throws std::bad_alloc.
  explicit HashedWheel(std::int64_t buckets);

  /// Ticks until the same bucket comes up again.
  Tick revolution() const noexcept { return mask_ + 1; }
  std::int64_t size() const noexcept { return size_; }

  /// Adds an item that is due at `tick`; one from the past is due at the next tick to expire. False: no memory, nothing
  /// has changed.
  bool insert(WheelItem& item, Tick tick) noexcept;

  /// Removes an item that is in the wheel.
  void remove(WheelItem& item) noexcept;

  /// No item is due before it, and something may be due at it; kNever when the wheel is empty.
  Tick next_due() const noexcept { return due_.earliest(); }

  /// Walks the items that may be due at `tick`, in order of insertion, and forgets the ticks up to it. Ticks must rise
  /// from call to call, and none from next_due() on may be left out.
  /// The visitor answers with kTaken, kStop, or the later tick at which it wants to see the item again, which must fall
  /// into the same bucket or the item moves. It must not touch the wheel.
  template <class Visitor>
  void expire(Tick tick, Visitor&& visit) noexcept;

  /// Takes all items out, in no particular order.
  template <class Visitor>
  void clear(Visitor&& visit) noexcept;

  /// Checks the invariants; for tests. Slow.
  bool consistent() const noexcept;

 private:
  struct Bucket {
    Chunk* first;
    Chunk* last;
    std::uint32_t items;
    std::uint32_t holes;
  };

  static constexpr std::uintptr_t kTagMask = kCacheLine - 1;
  static constexpr std::size_t kPrefetchDistance = 8;

  static WheelItem* item_of(std::uintptr_t entry) noexcept { return reinterpret_cast<WheelItem*>(entry & ~kTagMask); }
  static void prefetch([[maybe_unused]] std::uintptr_t entry) noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(item_of(entry), 1);
#endif
  }

  std::size_t bucket_of(Tick tick) const noexcept { return static_cast<std::size_t>(tick & mask_); }
  std::uintptr_t tag_of(Tick tick) const noexcept {
    return static_cast<std::uintptr_t>(tick >> revolution_shift_) & kTagMask;
  }
  Tick revolutions(std::uintptr_t tags) const noexcept { return static_cast<Tick>(tags) << revolution_shift_; }

  void drop_hole(Bucket& bucket, std::size_t index) noexcept;
  void release_chunks(Bucket& bucket) noexcept;
  void compact(Bucket& bucket) noexcept;

  const Tick mask_;
  const int revolution_shift_;  // log2 of the number of buckets
  Tick floor_ = 0;              // the earliest tick that has not expired
  std::int64_t size_ = 0;
  ZeroedArray<Bucket> wheel_;
  DueIndex due_;
  ChunkPool chunks_;
};

template <class Visitor>
void HashedWheel::expire(Tick tick, Visitor&& visit) noexcept {
  const std::size_t index = bucket_of(tick);
  const std::uintptr_t tag = tag_of(tick);
  Bucket& bucket = wheel_[index];
  Tick next = kNever;
  bool stopped = false;
  for (Chunk* chunk = bucket.first; chunk != nullptr && !stopped; chunk = chunk->next) {
    for (std::size_t i = 0; i < chunk->used; ++i) {
      std::uintptr_t& entry = chunk->entries[i];
      if (i + kPrefetchDistance < chunk->used && (chunk->entries[i + kPrefetchDistance] & kTagMask) == tag) {
        prefetch(chunk->entries[i + kPrefetchDistance]);
      }
      if (entry == 0) continue;
      if (const std::uintptr_t ahead = ((entry & kTagMask) - tag) & kTagMask; ahead != 0) {
        next = std::min(next, tick + revolutions(ahead));
        continue;
      }
      WheelItem* const item = item_of(entry);
      Tick answer = visit(*item);
      if (answer == kStop) {
        stopped = true;
        break;
      }
      if (answer == kTaken) {  // the item may be gone by now: only its entry is touched
        entry = 0;
        --size_;
        --bucket.items;
        ++bucket.holes;
        continue;
      }
      if (bucket_of(answer) != index) {
        entry = 0;
        --size_;
        --bucket.items;
        ++bucket.holes;
        item->position = nullptr;
        if (insert(*item, answer)) continue;
        // No memory in the other bucket: stay here, to be looked at again after a revolution.
        answer = tick + revolution();
        ++size_;
        ++bucket.items;
        --bucket.holes;
        item->position = &entry;
      }
      entry = reinterpret_cast<std::uintptr_t>(item) | tag_of(answer);
      next = std::min(next, answer);
    }
  }
  floor_ = stopped ? tick : tick + 1;
  due_.set(index, stopped ? tick : next);
  drop_hole(bucket, index);
}

template <class Visitor>
void HashedWheel::clear(Visitor&& visit) noexcept {
  while (due_.earliest() != kNever) {
    const std::size_t index = bucket_of(due_.earliest());
    Bucket& bucket = wheel_[index];
    for (Chunk* chunk = bucket.first; chunk != nullptr; chunk = chunk->next) {
      for (std::size_t i = 0; i < chunk->used; ++i) {
        if (chunk->entries[i] == 0) continue;
        WheelItem* const item = item_of(chunk->entries[i]);
        item->position = nullptr;
        visit(*item);
      }
    }
    size_ -= bucket.items;
    bucket.items = 0;
    due_.set(index, kNever);
    release_chunks(bucket);
  }
}

}  // namespace hwt::internal
