#pragma once

#include <concepts>

#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// A visitor's answer about an item of a walk.
class Verdict {
 public:
  /// The item leaves the wheel; it may be gone already.
  static constexpr Verdict taken() noexcept { return Verdict(kTaken); }
  /// The walk ends here: the item and those after it stay as they are.
  static constexpr Verdict stop() noexcept { return Verdict(kStop); }
  /// The item stays, to be visited again at that later tick; at the next one, if it is not later.
  static constexpr Verdict later(Tick tick) noexcept { return Verdict(tick); }

  constexpr bool is_taken() const noexcept { return tick_ == kTaken; }
  constexpr bool is_stop() const noexcept { return tick_ == kStop; }
  /// Of later().
  constexpr Tick tick() const noexcept { return tick_; }

 private:
  // Below every tick, so that an answer is one register.
  static constexpr Tick kStop = -1;
  static constexpr Tick kTaken = -2;

  constexpr explicit Verdict(Tick tick) noexcept : tick_(tick) {}

  Tick tick_;
};

/// Items by the tick at which they are due, turned by a Driver. One thread at a time uses it. It reads no clock. Its
/// only atomic is WheelItem::position, which another thread may read meanwhile. Only the constructor throws. Ticks only
/// rise. The constructor takes the size, a power of two.
///
///   revolution()        the ticks of one turn of the wheel, or of its lowest level
///   next_due()          no item is due before it; kNever when the wheel is empty
///   reserve()           makes sure that the next insert() or move() succeeds. False: no memory
///   insert(item, tick)  a past tick stands for the next one to expire. False: no memory, nothing has changed
///   move(item, tick)    gives an item that is in the wheel another tick, after reserve()
///   remove(item)        takes an item out that is in the wheel
///   expire(tick, visit) walks the items that may be due at `tick`, in order of insertion, and forgets the ticks up to
///                       it; no tick with something due may be left out. After a stop the same tick may be walked
///                       again. The visitor must not touch the wheel. An item that stays, but for whose new place there
///                       is no memory, is visited at the next tick, and again until there is some
///   skip_to(tick)       no tick before it is left to expire. Precondition: next_due() >= tick
///   clear(take)         takes all items out, in no particular order
///
/// A tick may be kNever: it is taken as the one before, the latest there is. What removed items have occupied is given
/// back. The tests also want size().
template <class W>
concept Wheel =
    std::constructible_from<W, std::int64_t> && requires(W wheel, const W& seen, WheelItem& item, Tick tick,
                                                         Verdict (&visit)(WheelItem&), void (&take)(WheelItem&)) {
      { seen.revolution() } noexcept -> std::same_as<Tick>;
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
