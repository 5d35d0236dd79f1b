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

  /// If the slot is crowded: its own span of ticks, divided into slots of the level below. Those hold newer items; the
  /// bucket holds the older ones. Not empty.
  SlotRow* below;
};

/// The slots of one level: those of the level in which the cursor lies, or those below a crowded slot. The slots stand
/// right behind it: a pointer to them would be one more to follow in each call.
struct alignas(Slot) SlotRow {
  Slot& slot(std::size_t digit) noexcept { return reinterpret_cast<Slot*>(this + 1)[digit]; }
  const Slot& slot(std::size_t digit) const noexcept { return reinterpret_cast<const Slot*>(this + 1)[digit]; }

  /// The number of a slot's bucket in its chunks.
  std::uint32_t number(std::size_t digit) const noexcept { return first_number + static_cast<std::uint32_t>(digit); }

  std::uint32_t first_number;
  std::uint32_t level;
  std::size_t occupied;  // how many of its slots are; counted only while it is below one
  SlotRow* above;        // the row of the slot that it is below; null: the cursor lies in its span
  std::size_t digit;     // of that slot
};

/// Rows of slots, found by the numbers of their slots. Kept for reuse until the wheel goes: a row in use is paid for by
/// the many items that had to be there for it.
class SlotRows {
 public:
  /// `bits`: log2 of the slots of a row.
  explicit SlotRows(int bits) noexcept : bits_(bits), mask_((std::uint32_t{1} << bits) - 1) {}

  SlotRow& row_of(std::uint32_t number) const noexcept { return *rows_[number >> bits_]; }
  std::size_t digit_of(std::uint32_t number) const noexcept { return number & mask_; }

  /// An empty row. Null: no memory.
  SlotRow* take() noexcept;
  /// Precondition: it is empty.
  void give_back(SlotRow* row) noexcept;

 private:
  struct Free {
    void operator()(SlotRow* row) const noexcept { std::free(row); }
  };

  const int bits_;
  const std::uint32_t mask_;
  std::vector<std::unique_ptr<SlotRow, Free>> rows_;
  SlotRow* free_ = nullptr;  // linked by `above`
};

}  // namespace hwt::internal
