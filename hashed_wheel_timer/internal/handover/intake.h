#pragma once

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/handover/inbox.h"

namespace hwt::internal {

/// The worker's end of the inbox. It takes some entries of each listed place in turn, so that a flood of one producer
/// does not delay the others. Only the worker uses it.
class Intake {
 public:
  explicit Intake(Inbox& inbox) noexcept : inbox_(inbox) {}

  /// Makes take() return all entries that were enqueued before this call.
  void open() noexcept;

  /// Takes the next new timeouts, all of one producer and in its order. Returns their number, or 0 if there are none or
  /// their producers are sifting them (see held_up()).
  std::size_t take(NodeName* entries, std::size_t max) noexcept;
  /// Takes the next recheck requests. Returns their number.
  std::size_t take_rechecks(Node** nodes, std::size_t max) noexcept;

  /// Returns whether entries are left that open() has found.
  bool any() const noexcept { return first_ != nullptr; }
  /// Returns whether the latest take() skipped a place that its owner is sifting.
  bool held_up() const noexcept { return held_up_; }

  /// Returns a time not later than the earliest deadline that has come since open(), or kUnlisted if nothing has come.
  std::int64_t earliest_waiting() noexcept;

 private:
  using Place = Inbox::Place;

  static constexpr std::size_t kUncounted = ~std::size_t{0};
  // If more places than this are listed, the worker takes them at once instead of watching their deadlines.
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
