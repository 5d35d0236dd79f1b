#include "hashed_wheel_timer/internal/handover/seat_table.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace hwt::internal {

SeatTable::~SeatTable() {
  for (std::size_t i = 0; i < size_; ++i) {
    if (seats_[i] != nullptr) seats_[i]->home->give_back(seats_[i]);
  }
}

bool SeatTable::reserve() noexcept {
  // The smallest table is made anew each time: that is cheap, and a thread with few timers then keeps little of others.
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
    // A core may have gone since its seat was counted. There is room for those that were counted alone.
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
