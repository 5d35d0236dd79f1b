#pragma once

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel/bucket.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"

namespace hwt::internal {

/// Checks the invariants of the bucket with this number. Slow.
inline bool is_consistent(const Bucket& bucket, std::size_t number) {
  std::uint32_t items = 0, holes = 0;
  const Chunk* last = nullptr;
  bool sweep_is_valid = bucket.sweep == nullptr;
  for (Chunk* chunk = bucket.first; chunk != nullptr; chunk = chunk->next) {
    if (chunk->bucket != number || chunk->used > Chunk::kEntries) return false;
    for (std::size_t i = 0; i < chunk->used; ++i) {
      if (chunk->entry(i) == Chunk::kHole) {
        ++holes;
      } else {
        ++items;
        if (chunk->item(i)->position != chunk->position(i)) return false;
      }
    }
    sweep_is_valid = sweep_is_valid || chunk == bucket.sweep;
    last = chunk;
  }
  return sweep_is_valid && last == bucket.last && items == bucket.items && holes == bucket.holes &&
         (items != 0 || bucket.first == nullptr);
}

/// A wheel whose consistent() checks its invariants, which is slow. Without a specialization it checks nothing.
template <class W>
class Checked : public W {
 public:
  using W::W;

  bool consistent() const { return true; }
};

template <>
class Checked<HashedWheel> : public HashedWheel {
 public:
  using HashedWheel::HashedWheel;

  bool consistent() const {
    std::int64_t items = 0;
    for (Tick i = 0; i < revolution(); ++i) {
      const auto index = static_cast<std::size_t>(i);
      const Bucket& bucket = wheel_[index];
      if (!is_consistent(bucket, index)) return false;
      const Tick due = due_.of(index);
      if ((bucket.items == 0) != (due == kNever)) return false;
      // An item that finds no memory in its new bucket stays here. Then `due` is the tick after the walk, which belongs
      // to another bucket. That is floor_, or floor_ + 1 if the visitor has stopped the walk.
      if (bucket.items != 0 && revolutions_.bucket_of(due) != index && due > floor_ + 1) return false;
      if (due < due_.earliest()) return false;
      items += bucket.items;
    }
    return items == size_;
  }
};

template <>
class Checked<HierarchicalWheel> : public HierarchicalWheel {
 public:
  using HierarchicalWheel::HierarchicalWheel;

  bool consistent() const {
    std::int64_t items = 0;
    for (std::size_t level = 0; level < levels_.levels(); ++level) {
      const SlotRow* const row = current_rows_[level];
      if (row != nullptr && (row->level != level || row->above != nullptr)) return false;
      for (std::size_t digit = 0; digit < digits(); ++digit) {
        const bool occupied = row != nullptr && row->slot(digit).occupied();
        if (occupied != levels_.occupied({level, digit})) return false;
        if (occupied && stopped_at_ == kNever && levels_.begin_of({level, digit}, cursor_) < floor_) return false;
      }
      const std::int64_t in_row = row == nullptr ? 0 : items_of(*row);
      if (in_row < 0) return false;
      items += in_row;
    }
    return items + never_.items + homeless_.items == size_ && is_consistent(never_, kNeverNumber) &&
           is_consistent(homeless_, kHomelessNumber);
  }

  /// Returns the number of items without memory at their new places.
  std::size_t homeless() const { return homeless_.items; }

 private:
  std::size_t digits() const { return static_cast<std::size_t>(levels_.slots_per_level()); }

  /// Returns the number of items in the row and below, or a negative number if the row is not consistent.
  std::int64_t items_of(const SlotRow& row) const {
    std::int64_t items = 0;
    std::size_t occupied = 0;
    for (std::size_t digit = 0; digit < digits(); ++digit) {
      const Slot& slot = row.slot(digit);
      if (!is_consistent(slot, row.number(digit))) return -1;
      items += slot.items;
      occupied += slot.occupied() ? 1 : 0;
      if (slot.below == nullptr) continue;
      const SlotRow& below = *slot.below;
      if (below.level + 1 != row.level || below.above != &row || below.digit != digit) return -1;
      const std::int64_t items_below = items_of(below);
      if (items_below <= 0) return -1;
      items += items_below;
    }
    return row.above == nullptr || row.occupied == occupied ? items : -1;
  }
};

}  // namespace hwt::internal
