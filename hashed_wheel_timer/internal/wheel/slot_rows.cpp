// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/wheel/slot_rows.h"

#include <limits>
#include <memory>
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

}  // namespace hwt::internal
