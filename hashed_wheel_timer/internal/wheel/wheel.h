// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// The answer of a visitor about an item that a walk visits.
class Verdict {
 public:
  /// The item leaves the wheel. It may already be destroyed.
  static constexpr Verdict taken() noexcept { return Verdict(kTaken); }
  /// The walk ends. This item and the later ones stay as they are.
  static constexpr Verdict stop() noexcept { return Verdict(kStop); }
  /// The item stays, and is visited again at `tick`, or at the next tick if `tick` is not later.
  static constexpr Verdict later(Tick tick) noexcept { return Verdict(tick); }

  constexpr bool is_taken() const noexcept { return tick_ == kTaken; }
  constexpr bool is_stop() const noexcept { return tick_ == kStop; }
  /// Returns the tick of later().
  constexpr Tick tick() const noexcept { return tick_; }

 private:
  // Below every tick, so that a Verdict fits into one register.
  static constexpr Tick kStop = -1;
  static constexpr Tick kTaken = -2;

  constexpr explicit Verdict(Tick tick) noexcept : tick_(tick) {}

  Tick tick_;
};

/// Holds items by the tick at which they are due. A Worker turns it. One thread at a time uses it, and it reads no
/// clock. Its only atomic is WheelItem::position, which another thread may read meanwhile. Only the constructor throws;
/// it takes the size, a power of two.
///
///   revolution()        returns the ticks of one turn of the wheel, or of its lowest level
///   put_off(tick)       returns the tick for later() of an item of `tick` that is not to be due any more
///   next_due()          returns a tick before which no item is due; kNever if none is ever due
///   reserve()           makes sure that the next insert() or move() succeeds; returns false without memory
///   insert(item, tick)  inserts an item; a closed tick means the first one that is not; returns false without memory,
///                       and then changes nothing
///   move(item, tick)    gives an item of the wheel another tick, after reserve()
///   remove(item)        removes an item from the wheel
///   expire(tick, visit) visits the items that may be due at `tick`, in order of insertion. An item that got this tick
///                       by move() or later() may come anywhere. Ticks never fall from call to call. Precondition:
///                       tick <= next_due(). Until skip_to() closes the tick, items may still enter it, and it may be
///                       expired again. The visitor must not change the wheel. If it answers with later() and there is
///                       no memory at the new place of the item, every later call visits the item again until there is
///                       memory, and next_due() is not later than its tick
///   skip_to(tick)       closes all ticks before `tick`, so that no item enters them. Precondition: next_due() >= tick
///   clear(take)         removes all items, in no particular order
///
/// insert(), move() and later() take kNever as the tick before it. The memory of removed items is used again. The tests
/// also need size().
template <class W>
concept Wheel =
    std::constructible_from<W, std::int64_t> && requires(W wheel, const W& seen, WheelItem& item, Tick tick,
                                                         Verdict (&visit)(WheelItem&), void (&take)(WheelItem&)) {
      { seen.revolution() } noexcept -> std::same_as<Tick>;
      { seen.put_off(tick) } noexcept -> std::same_as<Tick>;
      { seen.next_due() } noexcept -> std::same_as<Tick>;
      { wheel.reserve() } noexcept -> std::same_as<bool>;
      { wheel.insert(item, tick) } noexcept -> std::same_as<bool>;
      { wheel.move(item, tick) } noexcept;
      { wheel.remove(item) } noexcept;
      { wheel.expire(tick, visit) } noexcept;
      { wheel.skip_to(tick) } noexcept;
      { wheel.clear(take) } noexcept;
    };

}  // namespace hwt::internal
