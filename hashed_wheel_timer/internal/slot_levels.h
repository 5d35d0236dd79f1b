#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hashed_wheel_timer/internal/wheel_item.h"

namespace hwt::internal {

/// Where a tick lies in a hierarchy of slots, and which slots are occupied. To the base `slots` a tick is a row of
/// digits, one for each level; a slot of level k stands for all ticks that have the same digits from the k-th on, so
/// it spans slots^k ticks. The levels cover all ticks that there are.
///
/// Seen from a cursor, a later tick lies on the level of the highest digit in which the two differ, in the slot of its
/// digit there. The digits above are the cursor's own: that makes a slot number mean one span of ticks, and each level
/// begin where the one below it ends; no slot is ever reached by wrapping around.
class SlotLevels {
 public:
  static constexpr std::int64_t kMinSlots = 2;
  static constexpr std::int64_t kMaxSlots =
      std::int64_t{64} * 64;  // one word tells which of a level's words are not zero

  /// `slots` of each level: a power of two in [kMinSlots, kMaxSlots]. Throws std::bad_alloc.
  explicit SlotLevels(std::int64_t slots)
      : bits_(std::countr_zero(static_cast<std::uint64_t>(slots))),
        mask_(slots - 1),
        words_per_level_((static_cast<std::size_t>(slots) + 63) / 64) {
    for (std::size_t bit = 0; bit < level_of_bit_.size(); ++bit) {
      level_of_bit_[bit] = static_cast<std::uint8_t>(bit / static_cast<std::size_t>(bits_));
    }
    levels_ = std::size_t{level_of_bit_.back()} + 1;
    words_ = std::make_unique<std::uint64_t[]>(levels_ * words_per_level_);
  }

  std::size_t levels() const noexcept { return levels_; }
  Tick slots_per_level() const noexcept { return mask_ + 1; }
  std::size_t slots() const noexcept { return levels_ << bits_; }

  /// The slot, counted through all levels, in which `tick` lies. Precondition: tick >= cursor >= 0.
  std::size_t slot_of(Tick tick, Tick cursor) const noexcept {
    const auto differ = static_cast<std::uint64_t>(tick ^ cursor) | 1;
    const int level = level_of_bit_[static_cast<std::size_t>(std::bit_width(differ)) - 1];
    return number(level, (tick >> (level * bits_)) & mask_);
  }

  std::size_t level_of_slot(std::size_t slot) const noexcept { return slot >> bits_; }

  void occupy(std::size_t slot) noexcept {
    const Place at(*this, slot);
    words_[at.word] |= at.bit;
    words_in_use_[at.level] |= at.word_bit;
    levels_in_use_ |= std::uint64_t{1} << at.level;
  }
  void vacate(std::size_t slot) noexcept {
    const Place at(*this, slot);
    if ((words_[at.word] &= ~at.bit) != 0) return;
    if ((words_in_use_[at.level] &= ~at.word_bit) != 0) return;
    levels_in_use_ &= ~(std::uint64_t{1} << at.level);
  }
  bool occupied(std::size_t slot) const noexcept {
    const Place at(*this, slot);
    return (words_[at.word] & at.bit) != 0;
  }
  bool any() const noexcept { return levels_in_use_ != 0; }

  /// The occupied slot that comes first. Precondition: any().
  /// It is the first of the lowest level that has one: a level ends where the slot of the next level that the cursor is
  /// in ends, and all slots of higher levels begin there or later.
  std::size_t first() const noexcept {
    const auto level = static_cast<std::size_t>(std::countr_zero(levels_in_use_));
    const auto word = static_cast<std::size_t>(std::countr_zero(words_in_use_[level]));
    const int bit = std::countr_zero(words_[level * words_per_level_ + word]);
    return (level << bits_) + word * 64 + static_cast<std::size_t>(bit);
  }

  /// The first tick of a slot, as seen from the cursor.
  Tick begin_of(std::size_t slot, Tick cursor) const noexcept {
    const int shift = static_cast<int>(level_of_slot(slot)) * bits_;
    return (((cursor >> shift) & ~mask_) | (static_cast<Tick>(slot) & mask_)) << shift;
  }

 private:
  static constexpr std::size_t kTickBits = 63;

  struct Place {
    Place(const SlotLevels& levels, std::size_t slot) noexcept : level(slot >> levels.bits_) {
      const std::size_t digit = slot & static_cast<std::size_t>(levels.mask_);
      word = level * levels.words_per_level_ + digit / 64;
      bit = std::uint64_t{1} << digit % 64;
      word_bit = std::uint64_t{1} << digit / 64;
    }
    std::size_t level;
    std::size_t word;
    std::uint64_t bit;
    std::uint64_t word_bit;
  };

  std::size_t number(int level, Tick digit) const noexcept {
    return (static_cast<std::size_t>(level) << bits_) + static_cast<std::size_t>(digit);
  }

  const int bits_;  // of a digit
  const Tick mask_;
  const std::size_t words_per_level_;
  std::size_t levels_ = 0;
  std::array<std::uint8_t, kTickBits> level_of_bit_{};  // a division by bits_ would be slow
  // A bit for each slot, for each word of these, and for each level: set where something is.
  std::unique_ptr<std::uint64_t[]> words_;
  std::array<std::uint64_t, kTickBits> words_in_use_{};
  std::uint64_t levels_in_use_ = 0;
};

}  // namespace hwt::internal
