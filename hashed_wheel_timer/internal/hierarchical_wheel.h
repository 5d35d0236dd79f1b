#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/bucket.h"
#include "hashed_wheel_timer/internal/chunk.h"
#include "hashed_wheel_timer/internal/slot_levels.h"
#include "hashed_wheel_timer/internal/wheel_item.h"
#include "hashed_wheel_timer/internal/zeroed_array.h"

namespace hwt::internal {

/// A hierarchy of timing wheels with the members of HashedWheel: what is due soon lies in a slot of its own tick, what
/// is due later in a slot that spans more ticks, and comes down when that span begins (it cascades). However far away,
/// an item costs nothing until then, and it comes down at most once for each level above the lowest. Thread-free: no
/// clock, no atomics, no threads. Varghese & Lauck, scheme 7; Kafka: TimingWheel.
///
/// The cursor is the last tick whose slot has been worked off. An item lies in levels_.slot_of(its tick, cursor_), and
/// all items of one tick lie in the same slot at any time. As a slot keeps their order, and so does the cascade, items
/// that were inserted for the same tick are visited in the order of insertion; one that was given its tick later, by
/// move() or by the visitor, may come anywhere among them.
///
/// The slot in which `tick` lies is all that is walked at it, whatever its level: each slot of a lower level between
/// the cursor and `tick` is empty by then, and `tick` itself has no other slot.
class HierarchicalWheel {
 public:
  /// What a visitor answers to stop the walk; the item and those after it stay as they are.
  static constexpr Tick kStop = -1;
  /// What a visitor answers when it has taken the item out of the wheel's hands.
  static constexpr Tick kTaken = -2;

  /// `slots` of each level: see SlotLevels. Throws std::bad_alloc.
  explicit HierarchicalWheel(std::int64_t slots) : levels_(slots), slots_(levels_.slots()) {}

  /// Ticks that the lowest level spans.
  Tick revolution() const noexcept { return levels_.slots_per_level(); }
  std::int64_t size() const noexcept { return size_; }

  /// Makes sure that the next insert() or move() succeeds. False: no memory.
  bool reserve() noexcept { return chunks_.reserve(); }

  /// Adds an item that is due at `tick`; one from the past is due at the next tick to expire. False: no memory, nothing
  /// has changed.
  bool insert(WheelItem& item, Tick tick) noexcept;

  /// Removes an item that is in the wheel.
  void remove(WheelItem& item) noexcept;

  /// Gives an item that is in the wheel another tick, after reserve(); in the same slot it keeps its place.
  void move(WheelItem& item, Tick tick) noexcept;

  /// No item is due before it, and something is due or comes down at it, or did before it was removed; kNever when the
  /// wheel is empty.
  Tick next_due() const noexcept {
    if (size_ == 0) return kNever;
    return stopped_ ? floor_ : levels_.begin_of(levels_.first(), cursor_);
  }

  /// Walks the items that are due or come down at `tick`, and forgets the ticks up to it. Ticks must rise from call to
  /// call, and none from next_due() on may be left out. After a stop the same tick may be walked again, from where it
  /// stopped.
  /// The visitor answers with kTaken, kStop, or the later tick at which the item is due. It must not touch the wheel.
  /// An item for which there is no memory at its new place is visited at the next tick, and again until there is some:
  /// it is not late, but it may lose its place among those of its tick.
  template <class Visitor>
  void expire(Tick tick, Visitor&& visit) noexcept;

  /// No tick before `tick` is left to expire. Precondition: next_due() >= tick.
  void skip_to(Tick tick) noexcept;

  /// Takes all items out, in no particular order.
  template <class Visitor>
  void clear(Visitor&& visit) noexcept;

  /// Checks the invariants; for tests. Slow.
  bool consistent() const noexcept;

 private:
  static constexpr std::size_t kPrefetchDistance = 8;

  [[gnu::always_inline]] static void prefetch([[maybe_unused]] const Chunk& chunk,
                                              [[maybe_unused]] std::size_t i) noexcept {
#if defined(__GNUC__)
    if (i < chunk.used) {
      __builtin_prefetch(chunk.item(i), 1);
    } else if (chunk.next != nullptr && i - chunk.used < chunk.next->used) {
      __builtin_prefetch(chunk.next->item(i - chunk.used), 1);
    }
#endif
  }

  Tick clamp(Tick tick) const noexcept { return std::clamp(tick, floor_, kNever - 1); }
  bool add(WheelItem& item, std::size_t slot) noexcept {
    Bucket& bucket = slots_[slot];
    if (!bucket.add(item, 0, slot, chunks_)) return false;
    if (bucket.items == 1) levels_.occupy(slot);
    return true;
  }
  template <class Visitor>
  bool walk(Tick tick, Bucket& bucket, Visitor& visit) noexcept;
  void hand_on(std::size_t from, std::size_t to) noexcept;

  SlotLevels levels_;
  ZeroedArray<Bucket> slots_;
  ChunkPool chunks_;
  std::int64_t size_ = 0;
  Tick cursor_ = 0;
  Tick floor_ = 0;        // the earliest tick that has not expired: the cursor or later
  bool stopped_ = false;  // the walk of floor_ has begun and stopped; its slot is still seen from the cursor of before
};

template <class Visitor>
void HierarchicalWheel::expire(Tick tick, Visitor&& visit) noexcept {
  const std::size_t slot = levels_.slot_of(tick, cursor_);
  floor_ = tick;
  stopped_ = !walk(tick, slots_[slot], visit);
  if (slots_[slot].items == 0) levels_.vacate(slot);
  // The cursor stays for what comes in before the walk goes on: that must queue up behind what is left.
  if (stopped_) return;
  cursor_ = tick;
  floor_ = std::min(tick + 1, kNever - 1);
  if (slots_[slot].items != 0) hand_on(slot, levels_.slot_of(floor_, cursor_));
}

/// False: the visitor has stopped it. What finds no memory at its new place stays.
template <class Visitor>
bool HierarchicalWheel::walk(Tick tick, Bucket& bucket, Visitor& visit) noexcept {
  Chunk* before = nullptr;
  for (Chunk* chunk = bucket.first; chunk != nullptr;) {
    if (chunk->next != nullptr) chunk->next->prefetch();
    bool stay = false;
    for (std::size_t i = 0; i < chunk->used; ++i) {
      prefetch(*chunk, i + kPrefetchDistance);
      const std::uint64_t entry = chunk->entry(i);
      if (entry == 0) continue;
      WheelItem* const item = chunk->item_of(entry);
      const Tick answer = visit(*item);
      if (answer == kStop) return false;
      if (answer == kTaken) {  // the item may be gone by now: only its entry is touched
        --size_;
      } else if (const Tick later = std::min(answer, kNever - 1);
                 later <= tick || !add(*item, levels_.slot_of(later, tick))) {
        stay = true;
        continue;
      }
      chunk->assign(i, 0);
      --bucket.items;
      ++bucket.holes;
    }
    // At once: what comes after it needs the memory for its new place.
    Chunk* const next = chunk->next;
    if (stay) {
      before = chunk;
    } else {
      bucket.drop(before, chunk, chunks_);
    }
    chunk = next;
  }
  return true;
}

template <class Visitor>
void HierarchicalWheel::clear(Visitor&& visit) noexcept {
  while (levels_.any()) {
    const std::size_t slot = levels_.first();
    size_ -= slots_[slot].items;
    slots_[slot].clear(chunks_, visit);
    levels_.vacate(slot);
  }
  stopped_ = false;
}

}  // namespace hwt::internal
