// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// Where the ticks of a timer begin and end. Times are nanoseconds of its clock; a tick spans [begin_of, end_of).
/// `Signed` and `Unsigned` are integers of 64 bits, so that tests/arithmetic can prove it with symbolic ones.
template <class Signed, class Unsigned>
struct BasicTickGrid {
  Signed start;
  Signed tick_duration;

  /// The first tick that ends at or after a deadline: at its end the timeout is due, which is never early and at most a
  /// tick late.
  Signed due_tick(Signed deadline) const noexcept { return deadline <= start ? Signed{0} : count(deadline, 1); }

  /// The tick that a time falls into.
  Signed at(Signed time) const noexcept { return time <= start ? Signed{0} : count(time, 0); }

  Signed begin_of(Signed tick) const noexcept {
    const Unsigned room = static_cast<Unsigned>(kForever) - static_cast<Unsigned>(start);
    const Unsigned ticks = static_cast<Unsigned>(tick);
    if (ticks > room / static_cast<Unsigned>(tick_duration)) return kForever;
    return static_cast<Signed>(static_cast<Unsigned>(start) + ticks * static_cast<Unsigned>(tick_duration));
  }
  /// Returns the end of a tick. The last tick stands for all later ones and never ends. Later ones exist, for example,
  /// if a tick is a nanosecond and the start is negative.
  Signed end_of(Signed tick) const noexcept { return tick >= kNever - 1 ? Signed{kForever} : begin_of(tick + 1); }

  /// Of the ticks that end in [earliest, latest], takes the one whose number ends in the most zero bits, and returns
  /// its end. Such a tick is the first one of its slot on several levels of a HierarchicalWheel, so the worker need not
  /// wake up on the way there. Returns `earliest` if no tick ends there, and kForever only if `earliest` is kForever.
  Signed roundest(Signed earliest, Signed latest) const noexcept {
    const Unsigned first = static_cast<Unsigned>(due_tick(earliest));
    const Unsigned end = static_cast<Unsigned>(at(std::min<Signed>(latest, kForever - 1)));
    return first >= end ? earliest : end_of(static_cast<Signed>(roundest_of(first, end)));
  }

  /// The tick in [first, end) whose number ends in the most zero bits. Precondition: first < end.
  static Unsigned roundest_of(Unsigned first, Unsigned end) noexcept {
    using std::bit_floor;
    // The highest bit in which first - 1 and end - 1 differ is set in end - 1. Without the bits below that bit, end - 1
    // is the roundest. If `first` is 0, they differ in the sign bit, and the result is 0.
    const Unsigned last = end - 1;
    return last & ~(bit_floor(last ^ (first - 1)) - 1);
  }

 private:
  // Whole ticks from the start to `less` nanoseconds before `time`. For due_tick() it is 1, because a deadline at the
  // end of a tick belongs to that tick. For at() it is 0, because such a time belongs to the next one. Unsigned,
  // because the distance from a start before the clock's zero may exceed the signed range.
  Signed count(Signed time, Unsigned less) const noexcept {
    const Unsigned since = static_cast<Unsigned>(time) - static_cast<Unsigned>(start) - less;
    return static_cast<Signed>(
        std::min(since / static_cast<Unsigned>(tick_duration), static_cast<Unsigned>(kNever - 1)));
  }
};

using TickGrid = BasicTickGrid<std::int64_t, std::uint64_t>;

/// Announces a sleep until the tick `known`, and asks `wanted` for the tick once more. So the worker finds all that
/// came before the announcement, and threads that come later find the announcement (see Sleeper). If the tick is an
/// earlier one now, announces that one, unless a thread has called the driver meanwhile. Returns the tick.
///
/// The sleep lasts until the end of the announced tick. The announced time is the beginning of that tick: a timeout
/// with a deadline up to this time is due in an earlier tick, so it must wake the worker. A sleep until the end of the
/// `current` tick is announced without a deadline, so no timeout wakes the worker. Even a timeout whose deadline has
/// passed is due only at that end.
template <class Wanted>
Tick announce_sleep(Sleeper& sleeper, const TickGrid& grid, Tick known, Tick current, const Wanted& wanted) noexcept {
  const auto time_of = [&](Tick until) { return until <= current ? Sleeper::kNoDeadline : grid.begin_of(until); };
  sleeper.announce(time_of(known));
  const Tick until = wanted();
  if (until != known) sleeper.announce_earlier(time_of(known), time_of(until));
  return until;
}

}  // namespace hwt::internal
