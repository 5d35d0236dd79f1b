#include "hashed_wheel_timer/internal/platform/parking_lot.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "hashed_wheel_timer/internal/platform/waiting.h"

namespace hwt::internal {

namespace {

/// A counter of calls on a cache line of its own. Any thread adds to it, and reads it.
struct alignas(64) Place {
  std::atomic<ParkingLot::Ticket> calls{0};
};

// Two addresses that share a place only cause spurious wake-ups.
constexpr std::size_t kPlaces = 32;
constinit std::array<Place, kPlaces> places;

Place& place_of(const void* address) noexcept {
  // The low bits of aligned addresses are all equal.
  const auto number = reinterpret_cast<std::uintptr_t>(address) / 64;
  return places[(number ^ number / kPlaces) % kPlaces];
}

}  // namespace

ParkingLot::Ticket ParkingLot::ticket(const void* address) noexcept {
  return place_of(address).calls.load(std::memory_order_acquire);
}

void ParkingLot::park(const void* address, Ticket ticket) noexcept { await_change(place_of(address).calls, ticket); }

void ParkingLot::wake_all(const void* address) noexcept {
  Place& place = place_of(address);
  place.calls.fetch_add(1, std::memory_order_release);
  announce_change(place.calls);
}

}  // namespace hwt::internal
