#include "hashed_wheel_timer/internal/handover/seat.h"

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
  Seat* const seat = free_.take_one();
  if (seat != nullptr) references_.fetch_add(1, std::memory_order_relaxed);
  return seat;
}

void FreeSeats::give_back(Seat* seat) noexcept {
  if (closed()) {
    delete seat;
  } else {
    free_.push(*seat);
  }
  drop_reference();
}

void FreeSeats::close() noexcept {
  closed_.store(true, std::memory_order_relaxed);
  delete_free();
  drop_reference();
}

void FreeSeats::delete_free() noexcept {
  for (Seat* seat = free_.take_all(); seat != nullptr;) delete std::exchange(seat, seat->next);
}

void FreeSeats::drop_reference() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace hwt::internal
