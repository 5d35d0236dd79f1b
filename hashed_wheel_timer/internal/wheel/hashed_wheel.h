#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel/bucket.h"
#include "hashed_wheel_timer/internal/wheel/chunk.h"
#include "hashed_wheel_timer/internal/wheel/due_tree.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"
#include "hashed_wheel_timer/internal/wheel/wheel.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"
#include "hashed_wheel_timer/internal/wheel/zeroed_array.h"

namespace hwt::internal {

/// A Wheel (see there): bucket `tick & mask` holds everything that is due in that tick of any revolution. Varghese &
/// Lauck, scheme 6; Netty: HashedWheelBucket.
///
/// A bucket is an array of entries, not a linked list: a walk then reads memory in order and can prefetch the items. An
/// entry's tag is the revolution modulo 64, so a walk skips items of other revolutions without touching them. Items
/// whose ticks are 64 revolutions apart have the same tag, so the visitor checks the tick.
class HashedWheel {
 public:
  /// `buckets` is a power of two. Throws std::bad_alloc.
  explicit HashedWheel(std::int64_t buckets);

  /// Ticks until the same bucket comes up again.
  Tick revolution() const noexcept { return mask_ + 1; }
  std::int64_t size() const noexcept { return size_; }

  bool reserve() noexcept { return chunks_.reserve(); }
  bool insert(WheelItem& item, Tick tick) noexcept;
  void remove(WheelItem& item) noexcept;

  /// An item that has that tick already keeps its place.
  void move(WheelItem& item, Tick tick) noexcept;

  /// Something may be due at that tick.
  Tick next_due() const noexcept { return due_.earliest(); }

  void skip_to(Tick tick) noexcept {
    assert(next_due() >= tick);
    floor_ = std::max(floor_, tick);
  }

  /// An item whose later tick falls into the same bucket keeps its place, and any other moves. Without memory in the
  /// other bucket an item also keeps its place. It is visited again at the next tick: its bucket counts as due then.
  template <class Visitor>
  void expire(Tick tick, Visitor&& visit) noexcept;

  template <class Visitor>
  void clear(Visitor&& visit) noexcept;

 private:
  static constexpr std::size_t kPrefetchDistance = 8;
  // So that holes go in buckets of which nothing is removed, and a walk takes some ten microseconds longer at most.
  static constexpr int kTidiedByWalk = 16;

  /// Fetches the item that the walk will come to, if its tag is that of this revolution. It may be in the next chunk.
  [[gnu::always_inline]] static void prefetch(const Chunk& chunk, std::size_t i, std::uint64_t tag) noexcept {
    const Chunk* holder = &chunk;
    if (i >= chunk.used) {
      i -= chunk.used;
      holder = chunk.next;
      if (holder == nullptr || i >= holder->used) return;
    }
    if ((holder->low[i] & Chunk::kTagMask) == tag) prefetch_to_write(holder->item(i));
  }

  std::size_t bucket_of(Tick tick) const noexcept { return static_cast<std::size_t>(tick & mask_); }
  std::uint64_t tag_of(Tick tick) const noexcept {
    return static_cast<std::uint64_t>(tick >> revolution_shift_) & Chunk::kTagMask;
  }
  /// The latest tick up to `tick` that is one of the bucket's own.
  Tick own_tick(std::size_t index, Tick tick) const noexcept {
    return tick - ((tick - static_cast<Tick>(index)) & mask_);
  }
  Tick revolutions(std::uint64_t tags) const noexcept { return static_cast<Tick>(tags) << revolution_shift_; }

  template <class Visitor>
  bool walk(std::size_t index, Tick tick, Visitor& visit) noexcept;

 protected:
  const Tick mask_;
  const int revolution_shift_;  // log2 of the number of buckets
  Tick floor_ = 0;              // the earliest tick that has not expired
  std::int64_t size_ = 0;
  ZeroedArray<Bucket> wheel_;
  DueTree due_;
  ChunkPool chunks_;
};

template <class Visitor>
void HashedWheel::expire(Tick tick, Visitor&& visit) noexcept {
  // Besides the tick's own bucket, those of other ticks with items for which there was no memory.
  for (std::size_t index = bucket_of(tick);; index = due_.first()) {
    floor_ = tick;
    if (!walk(index, tick, visit)) return;
    if (due_.earliest() > tick) break;
    // The latest tick has no next one. Items that stay in it are visited again by the next call.
    if (due_.of(index) <= tick) break;
  }
  floor_ = next_tick(tick);
}

/// False: the visitor has stopped it.
template <class Visitor>
bool HashedWheel::walk(std::size_t index, Tick tick, Visitor& visit) noexcept {
  const Tick own = own_tick(index, tick);
  const std::uint64_t tag = tag_of(own);
  Bucket& bucket = wheel_[index];
  Tick next = kNever;
  bool stopped = false;
  Chunk* before = nullptr;
  for (Chunk* chunk = bucket.first; chunk != nullptr && !stopped;) {
    if (chunk->next != nullptr) chunk->next->prefetch();
    bool any_left = false;
    for (std::size_t i = 0; i < chunk->used; ++i) {
      prefetch(*chunk, i + kPrefetchDistance, tag);
      const std::uint64_t entry = chunk->entry(i);
      if (entry == Chunk::kHole) continue;
      if (const std::uint64_t ahead = ((entry & Chunk::kTagMask) - tag) & Chunk::kTagMask; ahead != 0) {
        next = std::min(next, own + revolutions(ahead));
        any_left = true;
        continue;
      }
      WheelItem* const item = chunk->item_of(entry);
      const Verdict verdict = visit(*item);
      if (verdict.is_stop()) {
        any_left = true;
        stopped = true;
        break;
      }
      if (!verdict.is_taken()) {  // otherwise only its entry is touched
        const Tick soonest = next_tick(tick);
        const Tick later = std::clamp(verdict.tick(), soonest, kNever - 1);
        const bool same = bucket_of(later) == index;
        if (same || !insert(*item, later)) {
          const Tick again = same ? later : soonest;
          chunk->put(i, *item, tag_of(own_tick(index, again)));
          next = std::min(next, again);
          any_left = true;
          continue;
        }
      }
      bucket.punch(*chunk, i);
      --size_;
    }
    // At once: what comes after it may need its memory in another bucket, and it is in the cache.
    Chunk* const following = chunk->next;
    if (any_left) {
      before = chunk;
    } else {
      bucket.drop(before, chunk, chunks_);
    }
    chunk = following;
  }
  bucket.tidy(chunks_, kTidiedByWalk);
  due_.set(index, bucket.items == 0 ? kNever : stopped ? tick : next);
  return !stopped;
}

template <class Visitor>
void HashedWheel::clear(Visitor&& visit) noexcept {
  while (due_.earliest() != kNever) {
    const std::size_t index = due_.first();
    Bucket& bucket = wheel_[index];
    size_ -= bucket.items;
    bucket.clear(chunks_, visit);
    due_.set(index, kNever);
  }
}

static_assert(Wheel<HashedWheel>);

}  // namespace hwt::internal
