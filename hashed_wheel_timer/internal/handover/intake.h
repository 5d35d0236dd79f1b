#pragma once

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/handover/inbox.h"

namespace hwt::internal {

/// The worker's end of the inbox: takes what is in the listed places, some of each in turn, so that a flood of one
/// producer does not hold up the others. The worker's alone.
class Intake {
 public:
  explicit Intake(Inbox& inbox) noexcept : inbox_(inbox) {}

  /// From now on take() comes to all that was put into the inbox before this call.
  void open() noexcept;

  /// The next new timeouts, all of one producer and in its order. Returns how many; 0: there are none, or their
  /// producers are sifting them (see held_up()).
  std::size_t take(Arrived* entries, std::size_t max) noexcept;
  /// The next recheck requests. 0: there are none.
  std::size_t take_rechecks(Node** nodes, std::size_t max) noexcept;

  /// Whether there is something that open() has found.
  bool any() const noexcept { return first_ != nullptr; }
  /// The latest take() has passed over a place at which its owner was.
  bool held_up() const noexcept { return held_up_; }

  /// The earliest deadline of what has come since open(), or some time before it. kUnlisted: nothing.
  std::int64_t earliest_waiting() noexcept;

 private:
  using Place = Inbox::Place;

  static constexpr std::size_t kUncounted = ~std::size_t{0};
  // More places than this are not watched while their deadlines come nearer: they are taken.
  static constexpr int kMaxWaiting = 64;

  void append(Place& place) noexcept;
  Place& pop() noexcept;
  void put_aside(Place& place) noexcept;

  Inbox& inbox_;
  Place* first_ = nullptr;  // places at work, linked by next_at_work_
  Place* last_ = nullptr;
  Place* waiting_ = nullptr;  // listed since open(), linked by next_listed_
  bool held_up_ = false;
};

}  // namespace hwt::internal
