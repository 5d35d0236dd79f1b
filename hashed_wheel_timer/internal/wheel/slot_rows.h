// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/internal/wheel/bucket.h"

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
  Slot& slot(std::size_t digit) noexcept { return reinterpret_cast<Slot*>(this + 1)[digit]; }
  const Slot& slot(std::size_t digit) const noexcept { return reinterpret_cast<const Slot*>(this + 1)[digit]; }

  /// Returns the number of a slot's bucket, for Chunk::bucket.
  std::uint32_t number(std::size_t digit) const noexcept { return first_number + static_cast<std::uint32_t>(digit); }

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

}  // namespace hwt::internal
