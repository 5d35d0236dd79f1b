// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "hashed_wheel_timer/detail/export.h"

/// Random durations, so that clients which began together do not stay in step.
///
///   hwt::schedule(timer, hwt::Schedule::fixed_rate(1min, 1min).jitter([](auto wait) {
///     return hwt::jitter::around(wait, 0.05);
///   }), refresh);
///
/// Guarantees: uniform in the stated range. Each function throws std::invalid_argument that names the value and the
/// valid range.
/// Threads: any thread may call any function. Each thread has its own generator, seeded from std::random_device, which
/// may throw at the first call of a thread, and at the first call in a forked child.
/// Not for: secrets.
/// Source: Raft's election timeouts; SOFAJRaft and go-zero as named below.
namespace hwt::jitter {

/// Returns a duration in [lo, hi), for election timeouts (SOFAJRaft: NodeImpl.randomTimeout). Expects lo < hi.
HWT_API std::chrono::nanoseconds between(std::chrono::nanoseconds lo, std::chrono::nanoseconds hi);

/// Returns a duration in mean * (1 - fraction) .. mean * (1 + fraction), both ends included. It is for the expiry of
/// cache entries that were written together (go-zero: mathx.Unstable). Expects mean >= 0 and fraction 0 .. 1. The
/// result is at most nanoseconds::max().
HWT_API std::chrono::nanoseconds around(std::chrono::nanoseconds mean, double fraction);

/// Returns a duration in [full / 2, full). It is for the first of a series that many clients begin together, such as
/// snapshots (SOFAJRaft: the first snapshot). Expects full > 0.
HWT_API std::chrono::nanoseconds first_half(std::chrono::nanoseconds full);

}  // namespace hwt::jitter
