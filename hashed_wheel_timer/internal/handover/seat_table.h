#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hashed_wheel_timer/internal/handover/seat.h"

namespace hwt::internal {

/// The seats of one thread, found by the id of their core. It is an open-addressing hash table that is at most half
/// full. So a search takes few steps, however many timers the thread uses. Only that thread touches it.
///
/// Seats of cores that are gone stay until the table is full. Growing drops them, so at most some four times as many
/// seats are kept as are live, and a new seat costs O(1) on average.
class SeatTable {
 public:
  SeatTable() = default;
  SeatTable(const SeatTable&) = delete;
  SeatTable& operator=(const SeatTable&) = delete;
  /// Gives all seats back.
  ~SeatTable();

  /// Null: the thread has no seat of that core.
  Seat* find(std::uint64_t core_id) const noexcept { return seats_ == nullptr ? nullptr : seats_[place_of(core_id)]; }

  /// Makes room for one more. False: no memory, and nothing has changed.
  bool reserve() noexcept;
  /// Takes over a seat of a core that has none here. Precondition: reserve() has returned true.
  void add(Seat* seat) noexcept;

 private:
  static constexpr std::size_t kSmallest = 8;

  /// The place of that core's seat, or the empty one where it belongs.
  std::size_t place_of(std::uint64_t core_id) const noexcept {
    // Ids are consecutive numbers. Their product with 2^64 / the golden ratio spreads any pattern of them.
    const auto first = static_cast<std::size_t>((core_id * 0x9E37'79B9'7F4A'7C15) >> 32);
    std::size_t place = first & (size_ - 1);
    while (seats_[place] != nullptr && seats_[place]->core_id != core_id) place = (place + 1) & (size_ - 1);
    return place;
  }

  std::unique_ptr<Seat*[]> seats_;
  std::size_t size_ = 0;  // a power of two, or 0 without seats_
  std::size_t used_ = 0;
};

}  // namespace hwt::internal
