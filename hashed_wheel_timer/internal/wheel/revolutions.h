// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// Where a tick lies in a HashedWheel: in bucket `tick & mask`, with the number of its revolution modulo 64 as its tag.
/// The integers are parameters so that tests/arithmetic can prove it with symbolic ones.
template <class Signed, class Unsigned, class Size>
class BasicRevolutions {
 public:
  static constexpr std::uint64_t kTagMask = kCacheLine - 1;

  /// `buckets` is a power of two.
  explicit BasicRevolutions(std::int64_t buckets) noexcept
      : mask_(buckets - 1), shift_(std::countr_zero(static_cast<std::uint64_t>(buckets))) {}

  /// Ticks until the same bucket comes up again.
  std::int64_t length() const noexcept { return mask_ + 1; }

  Size bucket_of(Signed tick) const noexcept { return static_cast<Size>(tick & mask_); }
  Unsigned tag_of(Signed tick) const noexcept { return static_cast<Unsigned>(tick >> shift_) & kTagMask; }

  /// Returns the latest tick, `tick` or earlier, whose timeouts belong into this bucket.
  Signed own_tick(Size bucket, Signed tick) const noexcept {
    return tick - ((tick - static_cast<Signed>(bucket)) & mask_);
  }

  /// By how many revolutions, modulo 64, an entry is ahead of that tag. Its tag is in its lowest bits.
  static Unsigned ahead(Unsigned entry, Unsigned tag) noexcept { return ((entry & kTagMask) - tag) & kTagMask; }
  /// The tick so many revolutions later.
  Signed later(Signed tick, Unsigned revolutions) const noexcept {
    return tick + (static_cast<Signed>(revolutions) << shift_);
  }

 private:
  const std::int64_t mask_;
  const int shift_;  // log2 of the number of buckets
};

using Revolutions = BasicRevolutions<Tick, std::uint64_t, std::size_t>;

/// Returns the latest tick before kNever that lies a whole number of revolutions after `tick`. `revolution`: its length
/// in ticks, a power of two.
template <class Signed>
constexpr Signed last_revolution(Signed tick, std::int64_t revolution) noexcept {
  return tick + ((kNever - 1 - tick) & -revolution);
}

}  // namespace hwt::internal
