#include "hashed_wheel_timer/internal/core/seat.h"

#include <new>
#include <utility>

namespace hwt::internal {

Seat* FreeSeats::add(Producer* producer, std::uint64_t core_id) noexcept {
  auto* const seat = new (std::nothrow) Seat{producer, core_id, this};
  // relaxed: the core's own reference keeps this meanwhile.
  if (seat != nullptr) references_.fetch_add(1, std::memory_order_relaxed);
  return seat;
}

Seat* FreeSeats::take() noexcept {
  // Looked at first: without free seats, threads that come at once do not fight for the flag.
  if (free_.load(std::memory_order_relaxed) == nullptr || taking_.exchange(true, std::memory_order_acquire)) {
    return nullptr;
  }
  Seat* seat = free_.load(std::memory_order_acquire);
  while (seat != nullptr && !free_.compare_exchange_weak(seat, seat->next, std::memory_order_acquire)) {
  }
  taking_.store(false, std::memory_order_release);
  if (seat != nullptr) references_.fetch_add(1, std::memory_order_relaxed);
  return seat;
}

void FreeSeats::give_back(Seat* seat) noexcept {
  if (closed()) {
    delete seat;
  } else {
    seat->next = free_.load(std::memory_order_relaxed);
    while (!free_.compare_exchange_weak(seat->next, seat, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  drop_reference();
}

void FreeSeats::close() noexcept {
  closed_.store(true, std::memory_order_relaxed);
  delete_free();
  drop_reference();
}

void FreeSeats::delete_free() noexcept {
  // Nobody takes any more, so the whole stack is this thread's. acquire: the links.
  for (Seat* seat = free_.exchange(nullptr, std::memory_order_acquire); seat != nullptr;) {
    delete std::exchange(seat, seat->next);
  }
}

void FreeSeats::drop_reference() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace hwt::internal
