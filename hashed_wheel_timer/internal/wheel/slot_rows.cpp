// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/wheel/slot_rows.h"

#include <limits>
#include <new>

namespace hwt::internal {

SlotRow* SlotRows::take() noexcept {
  if (free_ != nullptr) {
    SlotRow* const row = free_;
    free_ = row->above;
    row->above = nullptr;
    return row;
  }
  if (rows_.size() > std::numeric_limits<std::uint32_t>::max() >> bits_) return nullptr;
  try {
    rows_.emplace_back();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  // calloc() gets zeroed pages from the system on first use, because few slots of a long row may be used.
  auto* const row = static_cast<SlotRow*>(std::calloc(1, sizeof(SlotRow) + (sizeof(Slot) << bits_)));
  if (row == nullptr) {
    rows_.pop_back();
    return nullptr;
  }
  row->first_number = static_cast<std::uint32_t>((rows_.size() - 1) << bits_);
  rows_.back().reset(row);
  return row;
}

void SlotRows::give_back(SlotRow* row) noexcept {
  row->above = free_;
  free_ = row;
}

}  // namespace hwt::internal
