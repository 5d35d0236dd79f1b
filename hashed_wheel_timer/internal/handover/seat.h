#pragma once

#include <atomic>
#include <cstdint>

#include "hashed_wheel_timer/detail/intrusive_stack.h"

namespace hwt::internal {

struct Producer;
class FreeSeats;

/// A producer's place with a thread. It is in the SeatTable of the thread that has it, or among the core's free ones.
/// The thread that has taken it owns it, and the producer with it. It is not a part of the producer, because the thread
/// keeps it until it ends, and the core may be gone by then.
struct Seat {
  Producer* const producer;  // gone when home->closed()
  const std::uint64_t core_id;
  FreeSeats* const home;
  Seat* next = nullptr;  // of the core's free ones; the owner's to write
};

/// The seats of one core that no thread has. It goes with the last of those who refer to it: the core, and every seat
/// that is out. So a thread that ends and a core that goes need not know of each other.
///
/// No thread ever waits for another here. There is no lock, so a fork() finds none locked.
class FreeSeats {
 public:
  FreeSeats() = default;
  FreeSeats(const FreeSeats&) = delete;
  FreeSeats& operator=(const FreeSeats&) = delete;

  // While the core is there.

  /// A new seat, which belongs to the caller. Null: no memory.
  Seat* add(Producer* producer, std::uint64_t core_id) noexcept;
  /// Null: there is none, or another thread is taking one.
  Seat* take() noexcept;
  /// The core goes, and its producers. This may be gone afterwards.
  void close() noexcept;

  // The owner of a seat, whether the core is there or not.

  bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
  /// This may be gone afterwards.
  void give_back(Seat* seat) noexcept;

 private:
  ~FreeSeats() { delete_free(); }
  void delete_free() noexcept;
  void drop_reference() noexcept;

  detail::IntrusiveStack<Seat, &Seat::next> free_;
  // relaxed: tells owners of seats that nobody will want them again, and orders nothing. If it is seen late, a seat
  // stays here until the last one goes.
  std::atomic<bool> closed_{false};
  // The core's, and one for each seat that is out. acq_rel when one goes: the last to go sees what all others pushed.
  std::atomic<std::int64_t> references_{1};
};

}  // namespace hwt::internal
