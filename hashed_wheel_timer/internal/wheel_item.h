#pragma once

#include <cstdint>
#include <limits>

namespace hwt::internal {

/// Number of a tick since the timer's start; tick k spans [k, k+1) * tick_duration and is due at its end.
using Tick = std::int64_t;

/// Later than every deadline: "nothing due".
inline constexpr Tick kNever = std::numeric_limits<Tick>::max();

inline constexpr std::size_t kCacheLine = 64;

/// What a wheel holds. The wheel alone touches `position`; null while the item is in no wheel.
/// A class derived from it must be aligned to a cache line: the low six bits of its address are the wheel's (see
/// HashedWheel). It is not aligned itself, because compilers differ in whether a derived class may use the padding.
struct WheelItem {
  using Position = std::uint32_t*;
  Position position = nullptr;
};

}  // namespace hwt::internal
