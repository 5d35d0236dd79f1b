// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/internal/wheel/bucket.h"
#include "hashed_wheel_timer/internal/wheel/slot_levels.h"
#include "hashed_wheel_timer/internal/wheel/wheel.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

struct SlotRow;

/// A slot of HierarchicalWheel. All bits are zero when it is empty.
struct Slot : Bucket {
  bool occupied() const noexcept { return items != 0 || below != nullptr; }

  /// The row of a crowded slot, or null. It divides the slot's span into slots of the level below. They hold the newer
  /// items, and the bucket holds the older ones. The row is never empty.
  SlotRow* below;
};

/// The slots of one level in whose span the cursor lies, or the slots below a crowded slot. The slots follow this
/// object in memory, so that no call must follow a pointer to them.
struct alignas(Slot) SlotRow {
  Slot& slot(std::size_t at) noexcept { return reinterpret_cast<Slot*>(this + 1)[at]; }
  const Slot& slot(std::size_t at) const noexcept { return reinterpret_cast<const Slot*>(this + 1)[at]; }

  /// Returns the number of a slot's bucket, for Chunk::bucket.
  std::uint32_t number(std::size_t at) const noexcept { return first_number + static_cast<std::uint32_t>(at); }

  std::uint32_t first_number;
  std::uint32_t level;
  std::size_t occupied;  // the number of occupied slots, counted only while `above` is not null
  SlotRow* above;        // the row of the crowded slot; null: the cursor lies in the span of this row
  std::size_t digit;     // the digit of the crowded slot
};

/// The rows of slots, found by the numbers of their slots. Rows are kept for reuse until the wheel is destroyed. Their
/// memory is small compared with that of the items that made the slots crowded.
class SlotRows {
 public:
  /// `bits`: log2 of the slots of a row.
  explicit SlotRows(int bits) noexcept : bits_(bits), mask_((std::uint32_t{1} << bits) - 1) {}

  SlotRow& row_of(std::uint32_t number) const noexcept { return *rows_[number >> bits_]; }
  std::size_t digit_of(std::uint32_t number) const noexcept { return number & mask_; }

  /// Makes sure that the next take() succeeds. Returns false without memory.
  bool reserve() noexcept { return free_ != nullptr || grow(); }
  /// Returns an empty row, or null without memory.
  SlotRow* take() noexcept;
  /// Gives a row back. Precondition: it is empty.
  void give_back(SlotRow* row) noexcept;

 private:
  bool grow() noexcept;

  struct Free {
    void operator()(SlotRow* row) const noexcept { std::free(row); }
  };

  const int bits_;
  const std::uint32_t mask_;
  std::vector<std::unique_ptr<SlotRow, Free>> rows_;
  SlotRow* free_ = nullptr;  // linked by `above`
};

/// A Wheel of several levels. Items that are due soon lie in a slot of their own tick. Later ones lie in a slot that
/// spans more ticks, and come down (cascade) when that span begins. However far away, an item costs nothing until then,
/// and it comes down at most once for each level above the lowest. Varghese & Lauck, scheme 7; Kafka: TimingWheel.
///
/// The cursor is the last tick that was processed or skipped. An item lies in the slot levels_.place_of(its tick,
/// cursor_) or in a row below that slot, so all items of one tick lie there at any time. Only while a walk is stopped,
/// the items that it has moved lie on a lower level already. Slots and the cascade keep the order of items. So items
/// that were inserted for the same tick are visited in the order of insertion. An item that got its tick later, by
/// move() or by the visitor, may come anywhere among them.
///
/// expire(tick) walks the slot in which `tick` lies, whatever its level, and the first slots of the rows below it. All
/// slots that begin between the cursor and `tick` are empty, because `tick` is not later than next_due().
///
/// Millions of items in one slot must not come down at once, because items that are due meanwhile would wait for them.
/// To stop halfway would not help, because the items that are due next are in the same slot. Therefore a slot with some
/// thousands of items is crowded. Later items go into a row of slots below it, each into the slot where it will belong
/// when the span begins. When it begins, only the slot's own bucket comes down item by item, and the whole row becomes
/// the row of the level below. Slots of that row can be crowded in turn. The items of a bucket are older than those in
/// the row below, and go in front of them, so the order stays.
///
/// The latest tick never comes. Its items lie in a bucket of their own, so that next_due() does not tell of them.
///
/// A level has no row before its first item, because few levels of a timer are ever used.
///
/// Homeless items are the exceptions. A walk could not move them to their new places for lack of
/// memory, or the visitor wants them again at the next tick. They wait in one bucket outside the levels. Each expire()
/// walks it first, and tries again. But next_due() tells of a homeless item's own tick only, because ticks may be
/// nanoseconds, and memory may lack for hours.
class HierarchicalWheel {
 public:
  /// `slots`: the number of slots of each level; see SlotLevels. Throws std::bad_alloc.
  explicit HierarchicalWheel(std::int64_t slots)
      : HierarchicalWheel(slots, static_cast<std::uint32_t>(std::max(kCrowd, slots * kCrowdPerSlot))) {}
  /// `crowd`: the number of items, one or more, with which a slot is crowded. Throws std::bad_alloc.
  HierarchicalWheel(std::int64_t slots, std::uint32_t crowd);

  /// Returns the ticks that the lowest level spans.
  Tick revolution() const noexcept { return levels_.slots_per_level(); }
  std::int64_t size() const noexcept { return size_; }

  bool reserve() noexcept { return chunks_.reserve() && slot_rows_.reserve(); }
  bool insert(WheelItem& item, Tick tick) noexcept;
  void remove(WheelItem& item) noexcept;

  /// Gives an item another tick. An item that stays in the same slot keeps its place.
  void move(WheelItem& item, Tick tick) noexcept;

  Tick put_off(Tick) const noexcept { return kNever - 1; }

  /// Returns kNever if there are only items of the latest tick. Otherwise, after a stopped walk, returns the tick of
  /// that walk, even if the items that were left there have been removed. Otherwise returns the first tick at which an
  /// item is due or comes down, or an earlier one if the first homeless item has been removed.
  Tick next_due() const noexcept {
    if (size_ == std::int64_t{never_.items}) return kNever;
    if (stopped_at_ != kNever) return stopped_at_;
    const Tick first = levels_.any() ? levels_.begin_of(levels_.first(), cursor_) : kNever;
    return homeless_.items != 0 ? std::min(homeless_due_, first) : first;
  }

  /// Visits the items that are due or come down at `tick`, and the homeless ones. A homeless item is not late, but may
  /// lose its place among the items of its tick.
  template <class Visitor>
  void expire(Tick tick, Visitor&& visit) noexcept;

  void skip_to(Tick tick) noexcept;

  template <class Visitor>
  void clear(Visitor&& visit) noexcept;

 private:
  using SlotIndex = SlotLevels::SlotIndex;

  // This number of items comes down in a fraction of a millisecond. A row below them takes 40 bytes and a chunk for
  // each slot. With 64 slots that is little compared with the items. With 2,048 slots or more it is about as much.
  static constexpr std::int64_t kCrowd = 8192;
  static constexpr std::int64_t kCrowdPerSlot = 4;

  Tick clamp(Tick tick) const noexcept { return std::clamp(tick, floor_, kNever - 1); }

  /// Returns the row of this level that spans the cursor. Makes it at the first use of the level. Returns null without
  /// memory.
  SlotRow* current_row(std::size_t level) noexcept {
    SlotRow* const row = current_rows_[level];
    return row != nullptr ? row : begin_level(level);
  }
  SlotRow* begin_level(std::size_t level) noexcept;

  bool add_to_never(WheelItem& item) noexcept { return never_.add(item, 0, kNeverNumber, chunks_); }

  /// Adds an item to the slot of its tick, `place`. Returns false without memory.
  bool add(WheelItem& item, Tick tick, SlotIndex place) noexcept {
    SlotRow* const row = current_row(place.level);
    if (row == nullptr) [[unlikely]]
      return false;
    const Slot& slot = row->slot(place.digit);
    if (slot.below != nullptr || slot.items >= crowd_) [[unlikely]]
      return add_to_crowd(item, tick, place);
    return add_to_bucket(item, place, *row);
  }
  bool add_to_bucket(WheelItem& item, SlotIndex place, SlotRow& row) noexcept {
    Bucket& bucket = row.slot(place.digit);
    if (!bucket.add(item, 0, row.number(place.digit), chunks_)) return false;
    if (bucket.items == 1) levels_.occupy(place);
    return true;
  }
  bool add_to_crowd(WheelItem& item, Tick tick, SlotIndex place) noexcept;
  SlotRow* divide(SlotRow& row, std::size_t digit) noexcept;
  /// Marks a slot that has become empty.
  void vacate(SlotRow& row, std::size_t digit) noexcept {
    if (row.above == nullptr) {
      levels_.vacate({row.level, digit});
    } else {
      vacate_below(row);
    }
  }
  void vacate_below(SlotRow& row) noexcept;
  bool is_where_it_belongs(const WheelItem& item, Tick tick) const noexcept;

  /// Moves an item to its new place. A walk at `now` has visited it, in a slot of `level` or in a row below, or as a
  /// homeless item. Returns false if the item stays: without memory, or if it must be visited again at the next tick.
  bool settle(WheelItem& item, Tick tick, Tick now, std::size_t level) noexcept {
    if (tick <= now) return false;
    if (tick == kNever - 1) [[unlikely]]
      return add_to_never(item);
    const SlotIndex place = levels_.place_of(tick, now);
    // An item that comes down goes to a lower level. Only an item that was homeless or got a new tick from the visitor
    // may belong beyond the span of the slot. Then add() treats it as a new item.
    if (place.level >= level) return add(item, tick, place);
    SlotRow* const row = current_row(place.level);
    return row != nullptr && add_to_bucket(item, place, *row);
  }

  template <class Visitor>
  bool walk_beginning_at(Tick tick, SlotIndex place, SlotRow* row, Visitor& visit) noexcept;
  template <class Visitor>
  bool walk(Tick tick, std::size_t level, Bucket& bucket, Visitor& visit) noexcept;
  template <class Visitor>
  void clear(Slot& slot, Visitor& visit) noexcept;

  void enter(SlotIndex place) noexcept;
  void replace_row(SlotRow& row) noexcept;

 protected:
  // No slot has these numbers; see SlotRows::grow().
  static constexpr std::uint32_t kNeverNumber = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kHomelessNumber = kNeverNumber - 1;

  SlotLevels levels_;
  SlotRows slot_rows_;
  std::array<SlotRow*, SlotLevels::kMaxLevels> current_rows_{};  // see current_row(); null: the level is not used yet
  ChunkPool chunks_;
  const std::uint32_t crowd_;
  Bucket never_{};     // the items of the latest tick
  Bucket homeless_{};  // the homeless items, with kHomelessNumber
  std::int64_t size_ = 0;
  Tick homeless_due_ = kNever;  // no homeless item is due earlier; not valid after a stopped walk
  Tick cursor_ = 0;
  Tick floor_ = 0;            // the earliest tick that items may enter: the cursor or later
  Tick stopped_at_ = kNever;  // the walk of this tick was stopped
};

template <class Visitor>
void HierarchicalWheel::expire(Tick tick, Visitor&& visit) noexcept {
  assert(tick >= floor_);
  // As skip_to(tick) does. Seen from this cursor, the slot of `tick` begins at `tick`. Seen from an earlier one, `tick`
  // may lie amid the span of a slot, if only homeless items are due.
  cursor_ = std::max(cursor_, tick - 1);
  const SlotIndex place = levels_.place_of(tick, cursor_);
  floor_ = tick;
  stopped_at_ = tick;
  SlotRow* const row = current_rows_[place.level];
  homeless_due_ = kNever;
  // After a stop the cursor stays where it is, so that new items queue up behind the remaining ones.
  if (homeless_.items != 0 && !walk(tick, place.level, homeless_, visit)) return;
  if (row != nullptr && !walk_beginning_at(tick, place, row, visit)) return;
  stopped_at_ = kNever;
  // Still occupied by a row below it, or by items that become homeless.
  if (row != nullptr && row->slot(place.digit).occupied()) enter(place);
  cursor_ = tick;
}

/// Walks the buckets whose spans begin at `tick`: that of the slot in `row`, and the first of each row below. Returns
/// false if the visitor has stopped the walk.
template <class Visitor>
bool HierarchicalWheel::walk_beginning_at(Tick tick, SlotIndex place, SlotRow* row, Visitor& visit) noexcept {
  for (std::size_t digit = place.digit;; digit = 0) {
    Slot& slot = row->slot(digit);
    const bool any = slot.items != 0;
    if (any && !walk(tick, place.level, slot, visit)) return false;
    if (slot.below == nullptr) {
      // A slot that was empty before the walk is not marked as occupied.
      if (any && slot.items == 0) vacate(*row, digit);
      return true;
    }
    row = slot.below;
  }
}

/// Walks a bucket of a slot of `level`, or of a row below it, or the homeless items. Items that come down go into
/// buckets of lower levels even if these become crowded, because they are older than the items below the slot, and only
/// some thousands. An item that cannot be moved stays in the bucket. Returns false if the visitor has stopped the walk.
template <class Visitor>
bool HierarchicalWheel::walk(Tick tick, std::size_t level, Bucket& bucket, Visitor& visit) noexcept {
  Chunk* before = nullptr;
  for (Chunk* chunk = bucket.first; chunk != nullptr;) {
    if (chunk->next != nullptr) chunk->next->prefetch();
    bool stay = false;
    for (std::size_t i = 0; i < chunk->used; ++i) {
      chunk->prefetch_item(i + Tuning::kAhead, 0);
      const std::uint64_t entry = chunk->entry(i);
      if (entry == Chunk::kHole) continue;
      WheelItem* const item = chunk->item_of(entry);
      const Verdict verdict = visit(*item);
      if (verdict.is_stop()) return false;
      if (verdict.is_taken()) {  // only its entry is touched
        --size_;
      } else if (const Tick due = std::min(verdict.tick(), kNever - 1); !settle(*item, due, tick, level)) {
        // The next tick may be the latest one, which never comes.
        const Tick again = std::max(due, next_tick(tick));
        if (again != kNever - 1) homeless_due_ = std::min(homeless_due_, again);
        stay = true;
        continue;
      }
      bucket.punch(*chunk, i);
    }
    // Drops the chunk now, because later items may need its memory at their new places.
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
    clear(current_rows_[place.level]->slot(place.digit), visit);
    levels_.vacate(place);
  }
  never_.clear(chunks_, visit);
  homeless_.clear(chunks_, visit);
  size_ = 0;
  stopped_at_ = kNever;
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
  slot_rows_.give_back(row);
}

static_assert(Wheel<HierarchicalWheel>);

}  // namespace hwt::internal
