// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/internal/wheel/bucket.h"
#include "hashed_wheel_timer/internal/wheel/due_tree.h"
#include "hashed_wheel_timer/internal/wheel/revolutions.h"
#include "hashed_wheel_timer/internal/wheel/wheel.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"
#include "hashed_wheel_timer/internal/wheel/zeroed_array.h"

namespace hwt::internal {

/// A Wheel in which bucket `tick & mask` holds the items of that tick of every revolution. Varghese & Lauck, scheme 6;
/// Netty: HashedWheelBucket.
///
/// A bucket is a list of chunks of 40 entries, so that a walk reads most memory in order and can prefetch the items.
/// The tag of an entry is the revolution modulo 64. A walk visits the items with the tag of the present revolution, and
/// skips all others without touching them. Items whose ticks are 64 revolutions apart have the same tag, so the visitor
/// checks the tick.
///
/// At its end, a walk notes when its bucket is due again. For the items that it has skipped, it guesses: the next
/// revolution that has one of their tags. The guess is never too late, but may be a multiple of 64 revolutions too
/// early. If far items of many revolutions are in a bucket, some tag always looks like the next revolution. If all
/// buckets had such items, guesses alone would wake the worker in each tick.
///
/// So if a walk at a guessed tick takes nothing, and would guess again, a second walk visits all items of the bucket.
/// The visitor tells their ticks, so that no guess is needed. There is no second walk of more than
/// Tuning::kMostLookedAt items.
class HashedWheel {
 public:
  /// `buckets` is a power of two. Throws std::bad_alloc.
  explicit HashedWheel(std::int64_t buckets);

  /// Returns the ticks until the same bucket is due again.
  Tick revolution() const noexcept { return revolutions_.length(); }
  /// Returns a tick of the same bucket, so that the item stays where it is.
  Tick put_off(Tick tick) const noexcept { return last_revolution(tick, revolution()); }
  std::int64_t size() const noexcept { return size_; }

  bool reserve() noexcept { return chunks_.reserve(); }
  bool insert(WheelItem& item, Tick tick) noexcept;
  void remove(WheelItem& item) noexcept;

  /// Gives an item another tick. An item that already has that tick keeps its place.
  void move(WheelItem& item, Tick tick) noexcept;

  /// Returns the first tick at which an item may be due.
  Tick next_due() const noexcept { return due_.earliest(); }

  void skip_to(Tick tick) noexcept {
    assert(next_due() >= tick);
    floor_ = std::max(floor_, tick);
  }

  /// Visits the items that may be due at `tick`. An item with a later tick moves to the bucket of that tick, or keeps
  /// its place if that is the same bucket. Without memory in the other bucket the item also keeps its place, and is
  /// visited again at the next tick, at which this bucket then counts as due.
  template <class Visitor>
  void expire(Tick tick, Visitor&& visit) noexcept;

  template <class Visitor>
  void clear(Visitor&& visit) noexcept;

 private:
  /// Notes the first tick at which an item of the bucket is due.
  void set_due(std::size_t index, Tick tick, bool guessed) noexcept {
    due_.set(index, tick);
    guessed_[index] = guessed;
  }

  template <class Visitor>
  bool walk(std::size_t index, Tick tick, Visitor& visit, bool all = false) noexcept;

 protected:
  const Revolutions revolutions_;
  Tick floor_ = 0;  // the earliest tick that items may enter
  std::int64_t size_ = 0;
  ZeroedArray<Bucket> wheel_;
  DueTree due_;
  ZeroedArray<bool> guessed_;  // for each bucket: whether due_.of(its index) is a guess
  ChunkPool chunks_;
};

template <class Visitor>
void HashedWheel::expire(Tick tick, Visitor&& visit) noexcept {
  assert(tick >= floor_);
  floor_ = tick;
  // Walks the bucket of the tick, and other buckets with items that could not move without memory.
  for (std::size_t index = revolutions_.bucket_of(tick);; index = due_.first()) {
    if (!walk(index, tick, visit) || due_.earliest() > tick) return;
    // Only at tick kNever - 1, which has no next one, the bucket may still be due now. The next call visits its items
    // again.
    if (due_.of(index) <= tick) return;
  }
}

/// Walks a bucket: its items with the tag of the tick, or all. Returns false if the visitor has stopped the walk.
template <class Visitor>
bool HashedWheel::walk(std::size_t index, Tick tick, Visitor& visit, bool all) noexcept {
  const Tick own = revolutions_.own_tick(index, tick);
  const std::uint64_t tag = revolutions_.tag_of(own);
  Bucket& bucket = wheel_[index];
  const std::int64_t size_before = size_;
  Tick next = kNever;
  Tick guess = kNever;
  bool stopped = false;
  Chunk* before = nullptr;
  for (Chunk* chunk = bucket.first; chunk != nullptr && !stopped;) {
    if (chunk->next != nullptr) chunk->next->prefetch();
    bool any_left = false;
    for (std::size_t i = 0; i < chunk->used; ++i) {
      chunk->prefetch_item(i + Tuning::kAhead, tag);
      const std::uint64_t entry = chunk->entry(i);
      if (entry == Chunk::kHole) continue;
      if (const std::uint64_t ahead = Revolutions::ahead(entry, tag); ahead != 0 && !all) {
        guess = std::min(guess, revolutions_.later(own, ahead));
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
        const bool same = revolutions_.bucket_of(later) == index;
        if (same || !insert(*item, later)) {
          const Tick again = same ? later : soonest;
          // The tag that a walk of this bucket at `again` looks for, also if `again` belongs to another bucket.
          const std::uint64_t its_tag = revolutions_.tag_of(revolutions_.own_tick(index, again));
          if (its_tag != (entry & Chunk::kTagMask)) chunk->put(i, *item, its_tag);
          next = std::min(next, again);
          any_left = true;
          continue;
        }
      }
      bucket.punch(*chunk, i);
      --size_;
    }
    // Drops the chunk now, because later items may need its memory in another bucket, and it is in the cache.
    Chunk* const following = chunk->next;
    if (any_left) {
      before = chunk;
    } else {
      bucket.drop(before, chunk, chunks_);
    }
    chunk = following;
  }
  bucket.tidy(chunks_, Tuning::kTidiedByWalk);
  const bool was_guessed = guessed_[index];
  set_due(index, bucket.items == 0 ? kNever : stopped ? tick : std::min(next, guess), guess < next);
  // The guess for this tick was wrong if nothing was taken. The second walk is useful only if the bucket's due tick is
  // a guess again. A stopped walk has not seen all items.
  const bool was_wrong = was_guessed && guess < next && size_ == size_before && !stopped;
  return was_wrong && bucket.items <= Tuning::kMostLookedAt ? walk(index, tick, visit, true) : !stopped;
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
