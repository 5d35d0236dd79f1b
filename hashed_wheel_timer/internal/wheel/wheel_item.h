// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace hwt::internal {

/// The number of a tick since the timer's start. Tick k spans [k, k+1) * tick_duration, and is due at its end.
using Tick = std::int64_t;

/// Later than every deadline: "nothing due".
inline constexpr Tick kNever = std::numeric_limits<Tick>::max();

/// The tick after `tick`. The latest tick, kNever - 1, has no next one: returns it again.
template <class Signed>
constexpr Signed next_tick(Signed tick) noexcept {
  return tick < kNever - 1 ? tick + 1 : tick;
}

inline constexpr std::size_t kCacheLine = 64;

/// An item of a wheel. While it is in a wheel, only the wheel writes `position`. A visitor may take the item, and then
/// uses the memory of `position` for itself. So a wheel writes it for the last time before it calls the visitor.
///
/// A derived class must be aligned to a cache line, because the wheel uses the low six bits of its address (see Chunk).
/// This class is not aligned itself, because compilers differ in whether a derived class may use the padding.
struct WheelItem {
  using Position = std::uint32_t*;

  /// An atomic whose operations are relaxed. Before the item is in a wheel, its owner may use it for its own purpose.
  /// Any thread may read it, also while the wheel writes it.
  class RelaxedPosition {
   public:
    RelaxedPosition() noexcept = default;
    RelaxedPosition(const RelaxedPosition& other) noexcept : position_(other) {}
    RelaxedPosition& operator=(const RelaxedPosition& other) noexcept { return *this = static_cast<Position>(other); }
    RelaxedPosition& operator=(Position other) noexcept {
      position_.store(other, std::memory_order_relaxed);
      return *this;
    }
    operator Position() const noexcept { return position_.load(std::memory_order_relaxed); }

   private:
    std::atomic<Position> position_{nullptr};
  };

  RelaxedPosition position;
};

}  // namespace hwt::internal
