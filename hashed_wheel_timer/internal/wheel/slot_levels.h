// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// Computes where a tick lies in a hierarchy of slots. In base `slots` a tick has one digit for each level, the lowest
/// digit for level 0. A slot of level k stands for all ticks with the same digits on level k and above, so it spans
/// slots^k ticks. The levels cover all ticks.
///
/// The level of a tick is that of the highest digit in which the tick and the cursor differ. Its slot is its digit on
/// that level. Higher digits equal those of the cursor. So a slot number means one span of ticks, each level begins
/// where the one below ends, and no slot is reached by wrapping around.
///
/// The integers and the array are parameters so that tests/arithmetic can prove it with symbolic ones.
template <class Signed, class Unsigned, class Size, template <class, std::size_t> class Array>
class BasicTickDigits {
 public:
  static constexpr std::int64_t kMinSlots = 2;
  // One word has a bit for each word of a level.
  static constexpr std::int64_t kMaxSlots = std::int64_t{64} * 64;
  // With two slots a level, there is a level for each bit of a tick.
  static constexpr std::size_t kMaxLevels = 63;

  /// `slots`: the number of slots of each level, a power of two in [kMinSlots, kMaxSlots].
  explicit BasicTickDigits(std::int64_t slots) noexcept
      : bits_(std::countr_zero(static_cast<std::uint64_t>(slots))), mask_(slots - 1) {
    for (std::size_t bit = 0; bit < level_of_bit_.size(); ++bit) {
      level_of_bit_[bit] = static_cast<std::uint8_t>(bit / static_cast<std::size_t>(bits_));
    }
  }

  std::size_t levels() const noexcept { return std::size_t{level_of_bit_.back()} + 1; }
  std::int64_t slots_per_level() const noexcept { return mask_ + 1; }

  /// A slot: the digit-th of its level.
  struct SlotIndex {
    std::size_t level;
    Size digit;
    bool operator==(const SlotIndex&) const = default;
  };

  /// Returns the slot in which `tick` lies. Precondition: tick >= cursor >= 0.
  SlotIndex place_of(Signed tick, Signed cursor) const noexcept {
    using std::bit_width;
    const Unsigned differ = static_cast<Unsigned>(tick ^ cursor) | 1;
    const std::size_t level = level_of_bit_[static_cast<Size>(bit_width(differ)) - 1];
    return {level, digit_of(tick, level)};
  }

  /// Returns the digit of a tick on that level.
  Size digit_of(Signed tick, std::size_t level) const noexcept {
    return static_cast<Size>((tick >> (level * static_cast<std::size_t>(bits_))) & mask_);
  }

  /// Returns the first tick of a slot, as seen from the cursor.
  Signed begin_of(SlotIndex slot, Signed cursor) const noexcept {
    const int shift = static_cast<int>(slot.level) * bits_;
    return (((cursor >> shift) & ~mask_) | static_cast<Signed>(slot.digit)) << shift;
  }

 private:
  const int bits_;  // of a digit
  const std::int64_t mask_;
  Array<std::uint8_t, kMaxLevels> level_of_bit_{};  // a division by bits_ would be slow
};

/// Keeps which slots of a hierarchy are occupied.
class SlotLevels : public BasicTickDigits<Tick, std::uint64_t, std::size_t, std::array> {
 public:
  /// `slots` of each level: see BasicTickDigits. Throws std::bad_alloc.
  explicit SlotLevels(std::int64_t slots)
      : BasicTickDigits(slots),
        words_per_level_((static_cast<std::size_t>(slots) + 63) / 64),
        words_(std::make_unique<std::uint64_t[]>(levels() * words_per_level_)) {}

  void occupy(SlotIndex slot) noexcept {
    words_[slot.level * words_per_level_ + slot.digit / 64] |= bit(slot.digit);
    words_in_use_[slot.level] |= bit(slot.digit / 64);
    levels_in_use_ |= bit(slot.level);
  }
  void vacate(SlotIndex slot) noexcept {
    std::uint64_t& word = words_[slot.level * words_per_level_ + slot.digit / 64];
    if ((word &= ~bit(slot.digit)) != 0) return;
    if ((words_in_use_[slot.level] &= ~bit(slot.digit / 64)) != 0) return;
    levels_in_use_ &= ~bit(slot.level);
  }
  /// Returns whether a slot is occupied. For tests.
  bool occupied(SlotIndex slot) const noexcept {
    return (words_[slot.level * words_per_level_ + slot.digit / 64] >> slot.digit % 64 & 1) != 0;
  }
  bool any() const noexcept { return levels_in_use_ != 0; }

  /// Returns the occupied slot that comes first: the first one of the lowest level that has any. Slots of higher levels
  /// come later, because each level begins where the one below ends. Precondition: any().
  SlotIndex first() const noexcept {
    const auto level = static_cast<std::size_t>(std::countr_zero(levels_in_use_));
    const auto word = static_cast<std::size_t>(std::countr_zero(words_in_use_[level]));
    const int bit = std::countr_zero(words_[level * words_per_level_ + word]);
    return {level, word * 64 + static_cast<std::size_t>(bit)};
  }

 private:
  /// Returns the bit of a slot, a word or a level in its word.
  static std::uint64_t bit(std::size_t number) noexcept { return std::uint64_t{1} << number % 64; }

  const std::size_t words_per_level_;
  // A bit for each slot, for each word of words_, and for each level: set if any slot there is occupied.
  std::unique_ptr<std::uint64_t[]> words_;
  std::array<std::uint64_t, kMaxLevels> words_in_use_{};
  std::uint64_t levels_in_use_ = 0;
};

}  // namespace hwt::internal
