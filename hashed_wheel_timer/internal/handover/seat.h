// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "hashed_wheel_timer/detail/intrusive_stack.h"

namespace hwt::internal {

struct Producer;
class FreeSeats;

/// The right of one thread to use a producer. It is in the SeatTable of the thread that owns it, or in the FreeSeats of
/// the core. It is not a part of the producer, because the thread keeps it until it ends, and the core may be destroyed
/// before.
struct Seat {
  Producer* const producer;  // gone when home->closed()
  const std::uint64_t core_id;
  FreeSeats* const home;
  Seat* next = nullptr;  // the next free seat of the core; only the owner writes it
};

/// The seats of one core that no thread owns. It has a reference count: one for the core, and one for every seat that a
/// thread owns. So a thread that ends and a core that is destroyed need not know of each other.
///
/// No thread waits for another here, and there is no lock that a fork() could find locked.
class FreeSeats {
 public:
  FreeSeats() = default;
  FreeSeats(const FreeSeats&) = delete;
  FreeSeats& operator=(const FreeSeats&) = delete;

  // Called while the core exists.

  /// Makes a seat, which belongs to the caller. Returns null without memory.
  Seat* add(Producer* producer, std::uint64_t core_id) noexcept;
  /// Takes a seat. Returns null if there is none, or if another thread is taking one.
  Seat* take() noexcept;
  /// Returns whether each seat has an owner, so that another take() would find none. The core has a reference, and so
  /// has each seat in use. So there are more references than seats only if all seats are in use.
  bool all_in_use() const noexcept {
    return made_.load(std::memory_order_relaxed) < references_.load(std::memory_order_relaxed);
  }
  /// Called when the core and its producers are destroyed. This may be destroyed afterwards.
  void close() noexcept;

  // Called by the owner of a seat, whether or not the core still exists.

  bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
  /// Gives a seat back. This may be destroyed afterwards.
  void give_back(Seat* seat) noexcept;

 private:
  ~FreeSeats() { delete_free(); }
  void delete_free() noexcept;
  void drop_reference() noexcept;

  detail::IntrusiveStack<Seat, &Seat::next> free_;
  // Tells owners that no thread will take their seats again. relaxed: it orders nothing. An owner that sees it late
  // leaves its seat here, until the last reference is dropped.
  std::atomic<bool> closed_{false};
  // One for the core, and one for each seat in use. acq_rel when one is dropped: the thread that drops the last one
  // sees all pushed seats.
  std::atomic<std::int64_t> references_{1};
  std::atomic<std::int64_t> made_{0};  // seats. relaxed: for a decision that may be wrong
};

/// The seats of one thread, found by the id of their core. It is an open-addressing hash table that is at most half
/// full. So a search takes few steps, however many timers the thread uses. Only that thread touches it.
///
/// Seats of cores that are gone stay until the table is full. Before it grows, it drops them. So it has at most some
/// four times as many seats as are of use, and a new seat costs O(1) on average.
class SeatTable {
 public:
  SeatTable() = default;
  SeatTable(const SeatTable&) = delete;
  SeatTable& operator=(const SeatTable&) = delete;
  /// Gives all seats back.
  ~SeatTable();

  /// Returns the seat of that core, or null if the thread has none.
  Seat* find(std::uint64_t core_id) const noexcept { return seats_ == nullptr ? nullptr : seats_[place_of(core_id)]; }

  /// Makes room for one more seat. Returns false without memory; then nothing has changed.
  bool reserve() noexcept;
  /// Takes over a seat of a core that has none here. Precondition: reserve() has returned true.
  void add(Seat* seat) noexcept;

 private:
  static constexpr std::size_t kSmallest = 8;

  /// Returns the place of that core's seat, or the empty place where it belongs.
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
