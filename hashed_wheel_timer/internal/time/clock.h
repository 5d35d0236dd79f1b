// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace hwt::internal {

/// Nanoseconds since the epoch of steady_clock.
inline std::int64_t nanoseconds_of(std::chrono::steady_clock::time_point time) noexcept {
  return time.time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Nanoseconds of steady_clock.
inline std::int64_t steady_now() noexcept { return nanoseconds_of(std::chrono::steady_clock::now()); }

/// The end of any clock, in nanoseconds. A timeout that is due then never expires.
inline constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

/// Returns now + delay, at most kForever. `delay` is not negative.
template <class Signed>
constexpr Signed deadline_after(Signed now, Signed delay) noexcept {
  return now > kForever - delay ? Signed{kForever} : now + delay;
}

}  // namespace hwt::internal
