// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/memory/origin_table.h"

#include <memory>
#include <new>

namespace hwt::internal {

constinit std::array<std::atomic<const Origin*>, Trace::kOrigins> OriginTable::origins_{};

std::uint32_t OriginTable::number_of(const Origin& origin) noexcept {
  // The product with 2^64 / the golden ratio spreads addresses and lines that are close together.
  const std::uint64_t key = reinterpret_cast<std::uintptr_t>(origin.text()) + (std::uint64_t{origin.line()} << 32);
  std::uint64_t number = (key * 0x9E37'79B9'7F4A'7C15) >> 40;
  for (int looks = 0; looks != kMaxLooks; ++looks, ++number) {
    std::atomic<const Origin*>& place = origins_[number % Trace::kOrigins];
    if (&place == origins_.data()) continue;
    const Origin* there = place.load(std::memory_order_acquire);
    if (there == nullptr) {
      std::unique_ptr<const Origin> made(new (std::nothrow) Origin(origin));
      if (made == nullptr) return 0;
      if (place.compare_exchange_strong(there, made.get(), std::memory_order_release, std::memory_order_acquire)) {
        there = made.release();
      }
    }
    if (there->text() == origin.text() && there->line() == origin.line()) {
      return static_cast<std::uint32_t>(number % Trace::kOrigins);
    }
  }
  return 0;
}

}  // namespace hwt::internal
