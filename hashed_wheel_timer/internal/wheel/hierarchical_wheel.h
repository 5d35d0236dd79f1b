#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "hashed_wheel_timer/internal/wheel/bucket.h"
#include "hashed_wheel_timer/internal/wheel/chunk.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"
#include "hashed_wheel_timer/internal/wheel/slot_levels.h"
#include "hashed_wheel_timer/internal/wheel/slot_rows.h"
#include "hashed_wheel_timer/internal/wheel/wheel.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// A Wheel of several levels. Items that are due soon lie in a slot of their own tick. Later ones lie in a slot that
/// spans more ticks, and come down (cascade) when that span begins. However far away, an item costs nothing until then,
/// and it comes down at most once for each level above the lowest. Varghese & Lauck, scheme 7; Kafka: TimingWheel.
///
/// The cursor is the last tick whose slot has been worked off. An item lies in levels_.place_of(its tick, cursor_) or
/// below, and all items of one tick lie there at any time. Slots and the cascade keep the order of items. So items that
/// were inserted for the same tick are visited in the order of insertion. An item that got its tick later, by move() or
/// by the visitor, may come anywhere among them.
///
/// The slot in which `tick` lies is the only one that a walk visits, whatever its level. Each slot of a lower level
/// between the cursor and `tick` is empty by then, and `tick` itself has no other slot.
///
/// Millions of items in one slot must not come down at once, because items that are due meanwhile would wait for them.
/// They are in the same slot, so stopping halfway would not help. So a slot is crowded at some thousands of items.
/// Later items go into a row of slots below it, each to the slot where it will belong when the span begins. Then only
/// the slot's own bucket comes down item by item. The row below becomes the row of the next level as it is. Slots of
/// that row can be crowded in turn. The items of a bucket are older than those below it and go in front of them, so the
/// order stays.
class HierarchicalWheel {
 public:
  /// `slots` of each level: see SlotLevels. Throws std::bad_alloc.
  explicit HierarchicalWheel(std::int64_t slots)
      : HierarchicalWheel(slots, static_cast<std::uint32_t>(std::max(kCrowd, slots * kCrowdPerSlot))) {}
  /// A slot with `crowd` items is crowded; one or more.
  HierarchicalWheel(std::int64_t slots, std::uint32_t crowd);

  /// Ticks that the lowest level spans.
  Tick revolution() const noexcept { return levels_.slots_per_level(); }
  std::int64_t size() const noexcept { return size_; }

  bool reserve() noexcept { return chunks_.reserve(); }
  bool insert(WheelItem& item, Tick tick) noexcept;
  void remove(WheelItem& item) noexcept;

  /// An item that stays in the same slot keeps its place.
  void move(WheelItem& item, Tick tick) noexcept;

  /// Something is due at that tick, or comes down at it, unless that was removed.
  Tick next_due() const noexcept {
    if (size_ == 0) return kNever;
    return stopped_ ? floor_ : levels_.begin_of(levels_.first(), cursor_);
  }

  /// Visits the items that come down at `tick`, too. Without memory at its new place an item is visited at the next
  /// tick, and again until there is some. It is not late, but may lose its place among the items of its tick.
  template <class Visitor>
  void expire(Tick tick, Visitor&& visit) noexcept;

  void skip_to(Tick tick) noexcept;

  template <class Visitor>
  void clear(Visitor&& visit) noexcept;

 private:
  using SlotIndex = SlotLevels::SlotIndex;

  static constexpr std::size_t kPrefetchDistance = 8;

  /// Fetches the item that the walk will come to; it may be in the next chunk.
  [[gnu::always_inline]] static void prefetch(const Chunk& chunk, std::size_t i) noexcept {
    if (i < chunk.used) {
      prefetch_to_write(chunk.item(i));
    } else if (chunk.next != nullptr && i - chunk.used < chunk.next->used) {
      prefetch_to_write(chunk.next->item(i - chunk.used));
    }
  }

  // So many items come down in a fraction of a millisecond, and a row of slots, with a chunk for each, takes little
  // memory beside them.
  static constexpr std::int64_t kCrowd = 8192;
  static constexpr std::int64_t kCrowdPerSlot = 4;

  Tick clamp(Tick tick) const noexcept { return std::clamp(tick, floor_, kNever - 1); }

  Slot& slot_at(SlotIndex place) noexcept { return rows_[place.level]->slot(place.digit); }

  /// `place` is that of the tick. False: no memory.
  bool add(WheelItem& item, Tick tick, SlotIndex place) noexcept {
    SlotRow& row = *rows_[place.level];
    const Slot& slot = row.slot(place.digit);
    if (slot.below != nullptr || slot.items >= crowd_) [[unlikely]]
      return add_to_crowd(item, tick, place);
    return add_to_bucket(item, place, row);
  }
  bool add_to_bucket(WheelItem& item, SlotIndex place, SlotRow& row) noexcept {
    Bucket& bucket = row.slot(place.digit);
    if (!bucket.add(item, 0, row.number(place.digit), chunks_)) return false;
    if (bucket.items == 1) levels_.occupy(place);
    return true;
  }
  bool add_to_crowd(WheelItem& item, Tick tick, SlotIndex place) noexcept;
  SlotRow* divide(SlotRow& row, std::size_t digit) noexcept;
  /// A slot has become empty.
  void vacate(SlotRow& row, std::size_t digit) noexcept {
    if (row.above == nullptr) {
      levels_.vacate({row.level, digit});
    } else {
      vacate_below(row);
    }
  }
  void vacate_below(SlotRow& row) noexcept;
  bool is_where_it_belongs(const WheelItem& item, Tick tick) const noexcept;

  /// Gives an item of a slot of `level` that begins at `now` its place. False: it is to be visited again.
  bool settle(WheelItem& item, Tick tick, Tick now, std::size_t level) noexcept {
    if (tick <= now) return false;
    const SlotIndex place = levels_.place_of(tick, now);
    return place.level < level ? add_to_bucket(item, place, *rows_[place.level]) : add(item, tick, place);
  }

  template <class Visitor>
  bool walk_beginning_at(Tick tick, SlotIndex place, Visitor& visit) noexcept;
  template <class Visitor>
  bool walk(Tick tick, std::size_t level, Bucket& bucket, Visitor& visit) noexcept;
  template <class Visitor>
  void clear(Slot& slot, Visitor& visit) noexcept;

  void enter(Tick tick, SlotIndex place) noexcept;
  void replace_row(SlotRow& row) noexcept;
  void hand_on(Bucket& from, SlotIndex to) noexcept;

 protected:
  SlotLevels levels_;
  SlotRows pool_;
  std::array<SlotRow*, SlotLevels::kMaxLevels> rows_{};  // of each level, the one in whose span the cursor lies
  ChunkPool chunks_;
  const std::uint32_t crowd_;
  std::int64_t size_ = 0;
  Tick cursor_ = 0;
  Tick floor_ = 0;        // the earliest tick that has not expired: the cursor or later
  bool stopped_ = false;  // the walk of floor_ was stopped midway, and cursor_ is still that of before it
};

template <class Visitor>
void HierarchicalWheel::expire(Tick tick, Visitor&& visit) noexcept {
  const SlotIndex place = levels_.place_of(tick, cursor_);
  floor_ = tick;
  stopped_ = !walk_beginning_at(tick, place, visit);
  // The cursor stays, so that new items queue up behind the remaining ones.
  if (stopped_) return;
  if (slot_at(place).occupied()) enter(tick, place);
  cursor_ = tick;
  floor_ = next_tick(tick);
}

/// Walks the buckets whose spans begin at `tick`: that of the slot, and the first of each row below. False: the visitor
/// has stopped it.
template <class Visitor>
bool HierarchicalWheel::walk_beginning_at(Tick tick, SlotIndex place, Visitor& visit) noexcept {
  SlotRow* row = rows_[place.level];
  for (std::size_t digit = place.digit;; digit = 0) {
    Slot& slot = row->slot(digit);
    const bool any = slot.items != 0;
    if (any && !walk(tick, place.level, slot, visit)) return false;
    if (slot.below == nullptr) {
      if (any && slot.items == 0) vacate(*row, digit);
      return true;
    }
    row = slot.below;
  }
}

/// Items that come down from a slot of `level` go into buckets of lower levels even if these become crowded. They are
/// older than the items below the slot, and only some thousands. Returns false if the visitor has stopped the walk. An
/// item stays if there is no memory for its new place.
template <class Visitor>
bool HierarchicalWheel::walk(Tick tick, std::size_t level, Bucket& bucket, Visitor& visit) noexcept {
  Chunk* before = nullptr;
  for (Chunk* chunk = bucket.first; chunk != nullptr;) {
    if (chunk->next != nullptr) chunk->next->prefetch();
    bool stay = false;
    for (std::size_t i = 0; i < chunk->used; ++i) {
      prefetch(*chunk, i + kPrefetchDistance);
      const std::uint64_t entry = chunk->entry(i);
      if (entry == Chunk::kHole) continue;
      WheelItem* const item = chunk->item_of(entry);
      const Verdict verdict = visit(*item);
      if (verdict.is_stop()) return false;
      if (verdict.is_taken()) {  // only its entry is touched
        --size_;
      } else if (!settle(*item, std::min(verdict.tick(), kNever - 1), tick, level)) {
        stay = true;
        continue;
      }
      bucket.punch(*chunk, i);
    }
    // At once: items that come after it may need its memory for their new places.
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
    const SlotIndex place = levels_.first();
    clear(slot_at(place), visit);
    levels_.vacate(place);
  }
  size_ = 0;
  stopped_ = false;
}

template <class Visitor>
void HierarchicalWheel::clear(Slot& slot, Visitor& visit) noexcept {
  slot.clear(chunks_, visit);
  SlotRow* const row = std::exchange(slot.below, nullptr);
  if (row == nullptr) return;
  for (std::size_t digit = 0; row->occupied != 0; ++digit) {
    if (!row->slot(digit).occupied()) continue;
    clear(row->slot(digit), visit);
    --row->occupied;
  }
  pool_.give_back(row);
}

static_assert(Wheel<HierarchicalWheel>);

}  // namespace hwt::internal
