// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/handover/seat.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace hwt::internal {

Seat* FreeSeats::add(Producer* producer, std::uint64_t core_id) noexcept {
  auto* const seat = new (std::nothrow) Seat{producer, core_id, this};
  // relaxed: the core's own reference keeps this meanwhile.
  if (seat != nullptr) {
    references_.fetch_add(1, std::memory_order_relaxed);
    made_.fetch_add(1, std::memory_order_relaxed);
  }
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

SeatTable::~SeatTable() {
  for (std::size_t i = 0; i < size_; ++i) {
    if (seats_[i] != nullptr) seats_[i]->home->give_back(seats_[i]);
  }
}

bool SeatTable::reserve() noexcept {
  // The smallest table is made anew for each seat. That is cheap, and drops the seats of cores that are gone. So a
  // thread with few timers at a time keeps few such seats.
  if (size_ > kSmallest && 2 * (used_ + 1) <= size_) return true;
  std::size_t live = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    if (seats_[i] != nullptr && !seats_[i]->home->closed()) ++live;
  }
  const std::size_t size = std::max(kSmallest, std::bit_ceil(4 * live));
  std::unique_ptr<Seat*[]> old(new (std::nothrow) Seat*[size]());
  if (old == nullptr) return false;
  old.swap(seats_);
  const std::size_t old_size = std::exchange(size_, size);
  used_ = 0;
  for (std::size_t i = 0; i < old_size; ++i) {
    Seat* const seat = old[i];
    if (seat == nullptr) continue;
    // A core may have gone since its seat was counted, so there may be fewer seats to add than were counted, never
    // more.
    if (seat->home->closed()) {
      seat->home->give_back(seat);
    } else {
      add(seat);
    }
  }
  return true;
}

void SeatTable::add(Seat* seat) noexcept {
  seats_[place_of(seat->core_id)] = seat;
  ++used_;
}

}  // namespace hwt::internal
