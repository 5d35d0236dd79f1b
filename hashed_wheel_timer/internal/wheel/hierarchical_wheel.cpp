// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"

#include <new>
#include <utility>

namespace hwt::internal {

SlotRow* SlotRows::take() noexcept {
  if (!reserve()) return nullptr;
  SlotRow* const row = free_;
  free_ = row->above;
  row->above = nullptr;
  return row;
}

bool SlotRows::grow() noexcept {
  // The highest numbers stay free: HierarchicalWheel has buckets that are no slots.
  if (rows_.size() >= std::numeric_limits<std::uint32_t>::max() >> bits_) return false;
  // calloc() gets zeroed pages from the system on first use, because few slots of a long row may be used. It comes
  // first, because it fails without an exception: without memory, a walk may come here for each of many items.
  std::unique_ptr<SlotRow, Free> owner(
      static_cast<SlotRow*>(std::calloc(1, sizeof(SlotRow) + (sizeof(Slot) << bits_))));
  SlotRow* const row = owner.get();
  if (row == nullptr) return false;
  row->first_number = static_cast<std::uint32_t>(rows_.size() << bits_);
  try {
    rows_.push_back(std::move(owner));
  } catch (const std::bad_alloc&) {
    return false;
  }
  give_back(row);
  return true;
}

void SlotRows::give_back(SlotRow* row) noexcept {
  row->above = free_;
  free_ = row;
}

HierarchicalWheel::HierarchicalWheel(std::int64_t slots, std::uint32_t crowd)
    : levels_(slots), slot_rows_(std::countr_zero(static_cast<std::uint64_t>(slots))), crowd_(crowd) {}

SlotRow* HierarchicalWheel::begin_level(std::size_t level) noexcept {
  SlotRow* const row = slot_rows_.take();
  if (row != nullptr) row->level = static_cast<std::uint32_t>(level);
  return current_rows_[level] = row;
}

bool HierarchicalWheel::insert(WheelItem& item, Tick tick) noexcept {
  assert((reinterpret_cast<std::uintptr_t>(&item) & Chunk::kTagMask) == 0);
  tick = clamp(tick);
  if (tick == kNever - 1 ? !add_to_never(item) : !add(item, tick, levels_.place_of(tick, cursor_))) return false;
  ++size_;
  return true;
}

void HierarchicalWheel::remove(WheelItem& item) noexcept {
  const std::uint32_t number = Chunk::of(item.position).bucket;
  --size_;
  if (number == kNeverNumber) return never_.remove(item, chunks_);
  if (number == kHomelessNumber) return homeless_.remove(item, chunks_);
  SlotRow& row = slot_rows_.row_of(number);
  const std::size_t digit = slot_rows_.digit_of(number);
  Slot& slot = row.slot(digit);
  slot.remove(item, chunks_);
  if (!slot.occupied()) vacate(row, digit);
}

void HierarchicalWheel::move(WheelItem& item, Tick tick) noexcept {
  if (is_where_it_belongs(item, clamp(tick))) return;
  remove(item);
  [[maybe_unused]] const bool inserted = insert(item, tick);
  assert(inserted);
}

bool HierarchicalWheel::is_where_it_belongs(const WheelItem& item, Tick tick) const noexcept {
  const std::uint32_t number = Chunk::of(item.position).bucket;
  if (number == kNeverNumber || tick == kNever - 1) return number == kNeverNumber && tick == kNever - 1;
  const SlotIndex place = levels_.place_of(tick, cursor_);
  for (const SlotRow* row = current_rows_[place.level]; row != nullptr;) {
    const std::size_t digit = levels_.digit_of(tick, row->level);
    if (row->number(digit) == number) return true;
    row = row->slot(digit).below;
  }
  return false;
}

void HierarchicalWheel::skip_to(Tick tick) noexcept {
  assert(next_due() >= tick);
  tick = std::min(tick, kNever - 1);
  // Every occupied slot begins at `tick` or later, so its items belong there for the new cursor too.
  floor_ = std::max(floor_, tick);
  cursor_ = std::max(cursor_, tick - 1);
  if (stopped_at_ < tick) stopped_at_ = kNever;  // the items that were left have been removed
}

bool HierarchicalWheel::add_to_crowd(WheelItem& item, Tick tick, SlotIndex place) noexcept {
  if (!chunks_.reserve()) return false;  // before a slot is divided, because no row may be empty
  SlotRow* row = current_rows_[place.level];
  std::size_t digit = place.digit;
  for (;;) {
    SlotRow* const below = row->slot(digit).below != nullptr ? row->slot(digit).below : divide(*row, digit);
    if (below == nullptr) break;
    row = below;
    digit = levels_.digit_of(tick, row->level);
  }
  Slot& there = row->slot(digit);
  // Only rows below a slot are counted, because they go when they are empty.
  if (row->above != nullptr && !there.occupied()) ++row->occupied;
  there.add(item, 0, row->number(digit), chunks_);
  return true;
}

/// Makes a row below a crowded slot. Returns null if the slot is not crowded, spans only one tick, or without memory.
SlotRow* HierarchicalWheel::divide(SlotRow& row, std::size_t digit) noexcept {
  Slot& slot = row.slot(digit);
  if (slot.items < crowd_ || row.level == 0) return nullptr;
  SlotRow* const below = slot_rows_.take();
  if (below == nullptr) return nullptr;
  below->level = row.level - 1;
  below->above = &row;
  below->digit = digit;
  below->occupied = 0;
  return slot.below = below;
}

/// Counts a slot of a row as empty. Gives the row back if all its slots are. Then the slot above may be empty too.
void HierarchicalWheel::vacate_below(SlotRow& row) noexcept {
  if (--row.occupied != 0) return;
  SlotRow& above = *row.above;
  const std::size_t digit = row.digit;
  slot_rows_.give_back(&row);
  above.slot(digit).below = nullptr;
  if (!above.slot(digit).occupied()) vacate(above, digit);
}

/// Prepares a move of the cursor to the beginning of the slot at `place`. Each row below that slot becomes the current
/// row of its level. Items that the walk has left in the slot, or in the first slot of such a row, become homeless.
void HierarchicalWheel::enter(SlotIndex place) noexcept {
  for (;; --place.level, place.digit = 0) {
    Slot& slot = current_rows_[place.level]->slot(place.digit);
    homeless_.prepend(slot, kHomelessNumber);
    levels_.vacate(place);
    SlotRow* const row = std::exchange(slot.below, nullptr);
    if (row == nullptr) return;
    replace_row(*row);
  }
}

/// Puts `row`, which was below a slot, in place of the current row of its level. The items of the current row have come
/// down from that slot, so they go in front of those of `row`. Leaves out slot 0, because enter() empties that next.
void HierarchicalWheel::replace_row(SlotRow& row) noexcept {
  SlotRow* const before = std::exchange(current_rows_[row.level], &row);
  for (std::size_t digit = 1; digit < static_cast<std::size_t>(levels_.slots_per_level()); ++digit) {
    if (before != nullptr) row.slot(digit).prepend(before->slot(digit), row.number(digit));
    if (row.slot(digit).occupied()) levels_.occupy({row.level, digit});
  }
  if (before != nullptr) slot_rows_.give_back(before);
  row.above = nullptr;
}

}  // namespace hwt::internal
