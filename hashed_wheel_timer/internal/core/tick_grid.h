#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// Where the ticks of a timer begin and end. Times are nanoseconds of its clock; a tick spans [begin_of, end_of).
struct TickGrid {
  std::int64_t start;
  std::int64_t tick_duration;

  /// The first tick that ends at or after a deadline: at its end the timeout is due, which is never early and at most a
  /// tick late.
  Tick due_tick(std::int64_t deadline) const noexcept { return deadline <= start ? 0 : count(deadline, 1); }

  /// The tick that a time falls into.
  Tick at(std::int64_t time) const noexcept { return time <= start ? 0 : count(time, 0); }

  std::int64_t begin_of(Tick tick) const noexcept {
    const auto room = static_cast<std::uint64_t>(kForever) - static_cast<std::uint64_t>(start);
    const auto ticks = static_cast<std::uint64_t>(tick);
    if (ticks > room / static_cast<std::uint64_t>(tick_duration)) return kForever;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     ticks * static_cast<std::uint64_t>(tick_duration));
  }
  /// The last tick never ends: it stands for all later ones as well. There are such if the start is before the clock's
  /// zero and a tick is a nanosecond.
  std::int64_t end_of(Tick tick) const noexcept { return tick >= kNever - 1 ? kForever : begin_of(tick + 1); }

  /// The end of a tick in [earliest, latest], of the tick whose number ends in the most zero bits. Returns `earliest`
  /// if no tick ends there. Returns kForever only for kForever. Such a tick is the first one of its slot on several
  /// levels of a HierarchicalWheel, so the worker need not wake up on the way there.
  std::int64_t roundest(std::int64_t earliest, std::int64_t latest) const noexcept {
    const auto first = static_cast<std::uint64_t>(due_tick(earliest));
    const auto end = static_cast<std::uint64_t>(at(std::min(latest, kForever - 1)));
    if (first >= end) return earliest;
    // The highest bit in which they differ is set in end - 1. Without the bits below it, that is the roundest.
    const std::uint64_t last = end - 1;
    return end_of(static_cast<Tick>(last & ~(std::bit_floor(last ^ (first - 1)) - 1)));
  }

 private:
  // Unsigned, because the distance from a start before the clock's zero may exceed the signed range.
  Tick count(std::int64_t time, std::uint64_t less) const noexcept {
    const std::uint64_t since = static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(start) - less;
    return static_cast<Tick>(
        std::min(since / static_cast<std::uint64_t>(tick_duration), static_cast<std::uint64_t>(kNever - 1)));
  }
};

/// Announces a sleep until the tick `known`, passes the heavy fence, and asks `wanted` for the tick once more. That
/// finds all that came before the fence; threads that come later find the announcement. If the tick is another one now,
/// announces that one. Returns it. Until the end of the `current` tick no thread needs to wake the worker, because past
/// deadlines are due then, too.
template <class Wanted>
Tick announce_sleep(Sleeper& sleeper, const TickGrid& grid, Tick known, Tick current, const Wanted& wanted) noexcept {
  const auto announce = [&](Tick until) {
    sleeper.announce(until <= current ? Sleeper::kNobody : grid.begin_of(until));
  };
  announce(known);
  AsymmetricFence::heavy();
  const Tick until = wanted();
  if (until != known) announce(until);
  return until;
}

}  // namespace hwt::internal
