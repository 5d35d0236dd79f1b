// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/origin.h"

namespace hwt::internal {

/// The time at which a timeout was scheduled, and the number of its origin, in 8 bytes. The number replaces the lowest
/// 12 bits of the time, so the time is rounded down to about 4 us.
class Trace {
 public:
  static constexpr std::size_t kOrigins = 4096;

  Trace(std::int64_t scheduled, std::uint32_t number) noexcept
      : value_((static_cast<std::uint64_t>(scheduled) & ~std::uint64_t{kOrigins - 1}) | number) {}
  explicit Trace(std::uint64_t value) noexcept : value_(value) {}

  std::uint64_t value() const noexcept { return value_; }
  std::uint32_t number() const noexcept { return static_cast<std::uint32_t>(value_ % kOrigins); }
  Origin origin() const noexcept;
  std::chrono::steady_clock::time_point scheduled() const noexcept {
    return std::chrono::steady_clock::time_point(
        std::chrono::nanoseconds(static_cast<std::int64_t>(value_ - value_ % kOrigins)));
  }

 private:
  std::uint64_t value_;
};

/// The origins of this process that timeouts remember, by number. An origin keeps its number for ever: a program has
/// only as many as it has lines that schedule. Any thread; without a lock.
class OriginTable {
 public:
  /// Returns the number of an origin; 0, which is an unknown one, if there are too many or if there is no memory.
  /// Compares addresses, so the same text at two addresses has two numbers.
  static std::uint32_t number_of(const Origin& origin) noexcept;

  static Origin at(std::uint32_t number) noexcept {
    const Origin* const origin = origins_[number].load(std::memory_order_acquire);
    return origin == nullptr ? Origin() : *origin;
  }

 private:
  // If so many places in a row have other origins, the table counts as full, because each schedule searches it.
  static constexpr int kMaxLooks = 64;

  // A hash table with open addressing. Place 0 stays empty. None is removed, so a place that is taken keeps its origin.
  static constinit std::array<std::atomic<const Origin*>, Trace::kOrigins> origins_;
};

inline Origin Trace::origin() const noexcept { return OriginTable::at(number()); }

}  // namespace hwt::internal
