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
/// Aligned so that the low six bits of its address are free for the wheel (see HashedWheel).
struct alignas(kCacheLine) WheelItem {
  std::uintptr_t* position = nullptr;
};

}  // namespace hwt::internal
