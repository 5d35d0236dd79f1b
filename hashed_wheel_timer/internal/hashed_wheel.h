#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/bucket.h"
#include "hashed_wheel_timer/internal/chunk.h"
#include "hashed_wheel_timer/internal/due_index.h"
#include "hashed_wheel_timer/internal/wheel_item.h"
#include "hashed_wheel_timer/internal/zeroed_array.h"

namespace hwt::internal {

/// A timing wheel: bucket `tick & mask` holds everything that is due in that tick of any revolution. Thread-free: no
/// clock, no atomics, no threads. Varghese & Lauck, scheme 6; Netty: HashedWheelBucket.
///
/// A bucket is an array of entries, not a linked list: a walk then reads memory in order and can prefetch the items.
/// An entry's tag is the revolution modulo 64, so that a walk skips items of other revolutions without touching them;
/// which of the items 64 revolutions apart is meant, the visitor decides.
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

  /// Makes sure that the next insert() or move() succeeds. False: no memory.
  bool reserve() noexcept { return chunks_.reserve(); }

  /// Adds an item that is due at `tick`; one from the past is due at the next tick to expire. False: no memory, nothing
  /// has changed.
  bool insert(WheelItem& item, Tick tick) noexcept;

  /// Removes an item that is in the wheel.
  void remove(WheelItem& item) noexcept;

  /// Gives an item that is in the wheel another tick, after reserve(); where it already has that, it keeps its place.
  void move(WheelItem& item, Tick tick) noexcept;

  /// No item is due before it, and something may be due at it; kNever when the wheel is empty.
  Tick next_due() const noexcept { return due_.earliest(); }

  /// Forgets the ticks before `tick`: what is added for one of them is due at `tick`. Precondition: next_due() >= tick.
  void skip_to(Tick tick) noexcept {
    assert(next_due() >= tick);
    floor_ = std::max(floor_, tick);
  }

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
  static constexpr std::size_t kPrefetchDistance = 8;

  /// Fetches the item that the walk will come to, if it is of this revolution; it may be in the next chunk.
  [[gnu::always_inline]] static void prefetch([[maybe_unused]] const Chunk& chunk, [[maybe_unused]] std::size_t i,
                                              [[maybe_unused]] std::uint64_t tag) noexcept {
#if defined(__GNUC__)
    const Chunk* holder = &chunk;
    if (i >= chunk.used) {
      i -= chunk.used;
      holder = chunk.next;
      if (holder == nullptr || i >= holder->used) return;
    }
    if ((holder->low[i] & Chunk::kTagMask) == tag) __builtin_prefetch(holder->item(i), 1);
#endif
  }

  std::size_t bucket_of(Tick tick) const noexcept { return static_cast<std::size_t>(tick & mask_); }
  std::uint64_t tag_of(Tick tick) const noexcept {
    return static_cast<std::uint64_t>(tick >> revolution_shift_) & Chunk::kTagMask;
  }
  Tick revolutions(std::uint64_t tags) const noexcept { return static_cast<Tick>(tags) << revolution_shift_; }

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
  const std::uint64_t tag = tag_of(tick);
  Bucket& bucket = wheel_[index];
  Tick next = kNever;
  bool stopped = false;
  for (Chunk* chunk = bucket.first; chunk != nullptr && !stopped; chunk = chunk->next) {
    if (chunk->next != nullptr) chunk->next->prefetch();
    for (std::size_t i = 0; i < chunk->used; ++i) {
      prefetch(*chunk, i + kPrefetchDistance, tag);
      const std::uint64_t entry = chunk->entry(i);
      if (entry == 0) continue;
      if (const std::uint64_t ahead = ((entry & Chunk::kTagMask) - tag) & Chunk::kTagMask; ahead != 0) {
        next = std::min(next, tick + revolutions(ahead));
        continue;
      }
      WheelItem* const item = chunk->item_of(entry);
      Tick answer = visit(*item);
      if (answer == kStop) {
        stopped = true;
        break;
      }
      if (answer == kTaken) {  // the item may be gone by now: only its entry is touched
        chunk->assign(i, 0);
        --size_;
        --bucket.items;
        ++bucket.holes;
        continue;
      }
      if (bucket_of(answer) != index) {
        chunk->assign(i, 0);
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
      }
      chunk->put(i, *item, tag_of(answer));
      next = std::min(next, answer);
    }
  }
  floor_ = stopped ? tick : tick + 1;
  bucket.tidy(chunks_);
  due_.set(index, bucket.items == 0 ? kNever : stopped ? tick : next);
}

template <class Visitor>
void HashedWheel::clear(Visitor&& visit) noexcept {
  while (due_.earliest() != kNever) {
    const std::size_t index = bucket_of(due_.earliest());
    Bucket& bucket = wheel_[index];
    size_ -= bucket.items;
    bucket.clear(chunks_, visit);
    due_.set(index, kNever);
  }
}

}  // namespace hwt::internal
