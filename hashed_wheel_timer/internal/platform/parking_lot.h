#pragma once

#include <cstdint>

namespace hwt::internal {

/// Where threads sleep until something about an address changes, without a word of its own at that address: some places
/// that all addresses share. The address only names the place; its object may be gone.
///
/// A waiter takes a ticket, checks whether its event has come, makes sure that it will be woken, and parks. A waker
/// lets the event come before it wakes. So either the look finds it, or the ticket is out of date when the thread
/// parks. There is no lock, so a fork() finds none locked.
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
