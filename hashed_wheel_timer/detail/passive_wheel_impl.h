// SPDX-License-Identifier: Apache-2.0
#pragma once

// The inline bodies of passive_wheel.h. Each is so short that a call would double its cost.

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/passive_wheel.h"

namespace hwt {

inline bool WheelNode::cancel() noexcept {
  if (wheel_ == nullptr) return false;
  wheel_->unlink(*this);
  return true;
}

inline void PassiveWheel::schedule(WheelNode& node, When when) {
  when = detail::number("PassiveWheel: delay", when);
  const std::chrono::nanoseconds time(when.nanoseconds());
  if (when.is_deadline()) {
    schedule_by(node, std::chrono::steady_clock::time_point(time));
  } else {
    schedule_in(node, time);
  }
}

inline void PassiveWheel::schedule_in(WheelNode& node, std::chrono::nanoseconds delay) {
  const auto wait = static_cast<std::uint64_t>(delay.count());
  if (wait - 1 >= left_) [[unlikely]] {  // 0, negative, or past the end of time
    schedule_clipped(node, delay);
    return;
  }
  node.cancel();
  node.deadline_ = now_ + delay;
  link(node, tick_duration_.divide_predecessor(elapsed_ + wait));
}

inline void PassiveWheel::schedule_by(WheelNode& node, std::chrono::steady_clock::time_point deadline) {
  // If the deadline is now, has passed or is too far, wait - 1 is at least left_.
  const std::uint64_t wait = detail::nanoseconds_between(now_, deadline);
  if (wait - 1 >= left_) [[unlikely]] {
    schedule_clipped(node, deadline);
    return;
  }
  node.cancel();
  node.deadline_ = deadline;
  link(node, tick_duration_.divide_predecessor(elapsed_ + wait));
}

inline void PassiveWheel::postpone(WheelNode& node, When when) noexcept {
  if (node.wheel_ != this || when.is_nan()) return;
  const auto deadline = deadline_of(when);
  if (deadline > node.deadline_) node.deadline_ = deadline;
}

inline std::chrono::steady_clock::time_point PassiveWheel::deadline_of(When when) const noexcept {
  const auto now = [this] { return std::chrono::nanoseconds(now_.time_since_epoch()).count(); };
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(when.deadline(now)));
}

inline void PassiveWheel::link(WheelNode& node, std::uint64_t tick) noexcept {
  node.tick_ = tick;
  append(node, slot_of(tick));
  node.wheel_ = this;
  ++size_;
}

inline void PassiveWheel::unlink(WheelNode& node) noexcept {
  Link* const next = node.next_;
  Link* const previous = node.previous_;
  next->previous_ = previous;
  previous->next_ = next;
  if (next == previous) mark_empty(*next);  // both neighbours are one: that is the slot, alone now
  node.wheel_ = nullptr;
  --size_;
}

inline PassiveWheel::Link& PassiveWheel::slot_of(std::uint64_t tick) noexcept {
  // The level is the highest digit in which the tick differs from the cursor; `shift` is where that digit begins.
  const auto highest_bit = static_cast<unsigned>(std::countl_zero((tick ^ cursor_) | 1)) ^ 63U;
  const unsigned shift = highest_bit / kDigitBits * kDigitBits;
  const auto digit = static_cast<unsigned>(tick >> shift) % unsigned{kSlotsPerLevel};
  return slots_[shift * (unsigned{kSlotsPerLevel} / kDigitBits) | digit];
}

inline void PassiveWheel::append(Link& node, Link& slot) noexcept {
  // In this order, because the compiler would merge successive stores to neighbours into one wide store, which takes
  // more instructions than it saves.
  Link* const last = slot.previous_;
  node.next_ = &slot;
  last->next_ = &node;
  slot.previous_ = &node;
  node.previous_ = last;
  if (last == &slot) mark_occupied(slot);
}

inline void PassiveWheel::mark_occupied(const Link& slot) noexcept {
  const auto index = static_cast<std::size_t>(&slot - slots_);
  occupied_[index / 64] |= std::uint64_t{1} << index % 64;
  occupied_words_ |= std::uint32_t{1} << index / 64;
}

inline void PassiveWheel::mark_empty(const Link& slot) noexcept {
  const auto index = static_cast<std::size_t>(&slot - slots_);
  std::uint64_t& word = occupied_[index / 64];
  word &= ~(std::uint64_t{1} << index % 64);
  if (word == 0) occupied_words_ &= ~(std::uint32_t{1} << index / 64);
}

}  // namespace hwt
