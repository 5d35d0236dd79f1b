#pragma once

#include <cstdint>

namespace hwt::internal {

/// Threads sleep here until an event that belongs to an object. The object needs no member for that: all addresses
/// share 32 places. A place counts the calls of wake_all(), and a ticket is a value of this counter. An address only
/// chooses the place, so its object may be gone.
///
/// A waiter takes a ticket, checks whether its event has come, makes sure that it will be woken, and parks. A waker
/// makes the event happen before it calls wake_all(). So either the waiter's check finds the event, or its ticket is
/// out of date when it parks. There is no lock, so a fork() finds none locked.
class ParkingLot {
 public:
  using Ticket = std::uint32_t;

  /// Returns a ticket for park(). acquire: a thread that takes a ticket after wake_all() sees everything that the waker
  /// did before that call.
  static Ticket ticket(const void* address) noexcept;

  /// Returns when wake_all() has been called since the ticket was taken, or for no reason.
  static void park(const void* address, Ticket ticket) noexcept;

  /// Wakes the threads that are parked, and makes earlier tickets out of date. release: pairs with the acquire of
  /// ticket(). Costs a system call if a thread is parked at an address of the same place.
  static void wake_all(const void* address) noexcept;
};

}  // namespace hwt::internal
