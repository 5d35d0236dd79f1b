#pragma once

#include <chrono>

#include "hashed_wheel_timer/export.h"

/// Random durations, so that what began together does not go on in step. Any thread may call them at any time: each has
/// a generator of its own, seeded from std::random_device, which may throw at the first call. Not for secrets.
///
///   hwt::schedule(timer, hwt::Schedule::fixed_rate(1min, 1min).jitter([](auto wait) {
///     return hwt::jitter::around(wait, 0.05);
///   }), refresh);
///
/// Each throws std::invalid_argument that names the value and the valid range.
namespace hwt::jitter {

/// Uniform in [lo, hi): for election timeouts (Raft; SOFAJRaft: NodeImpl.randomTimeout). Expects lo < hi.
HWT_API std::chrono::nanoseconds between(std::chrono::nanoseconds lo, std::chrono::nanoseconds hi);

/// Uniform in mean * (1 - fraction) .. mean * (1 + fraction), both ends included: for the expiry of cache entries that
/// were written together (go-zero: mathx.Unstable). Expects mean >= 0 and fraction 0 .. 1. What would be beyond
/// nanoseconds::max() is that.
HWT_API std::chrono::nanoseconds around(std::chrono::nanoseconds mean, double fraction);

/// Uniform in [full / 2, full): for the first of a series that many begin together, such as snapshots (SOFAJRaft: the
/// first snapshot). Expects full > 0.
HWT_API std::chrono::nanoseconds first_half(std::chrono::nanoseconds full);

}  // namespace hwt::jitter
