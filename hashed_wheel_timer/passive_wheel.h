// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/fast_divider.h"
#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/detail/wheel_link.h"
#include "hashed_wheel_timer/when.h"

namespace hwt {

class PassiveWheel;

/// A timeout of a PassiveWheel: a base class, of 48 bytes, of the object that waits.
///
///   struct Connection : hwt::WheelNode {
///     void on_timeout() override { close(); }            // idle for too long
///   };
///
/// Guarantees: on_timeout() runs once for each schedule() that was not cancelled or replaced.
/// Threads: it belongs to the thread of its wheel.
/// Not for: two timeouts of one object at once. Give that object two members that are nodes.
/// Source: the intrusive timers of Linux' timer.c and folly::HHWheelTimer.
class HWT_API WheelNode : private detail::WheelLink {
 public:
  /// Makes a node that is not scheduled.
  WheelNode() noexcept = default;
  /// Takes the node out of its wheel.
  virtual ~WheelNode();
  WheelNode(const WheelNode&) = delete;
  WheelNode& operator=(const WheelNode&) = delete;

  /// Takes the node out of its wheel. Returns whether it was scheduled.
  bool cancel() noexcept;
  /// Returns whether the node is in a wheel.
  bool scheduled() const noexcept { return wheel_ != nullptr; }
  /// Returns the latest deadline, also after the node has fired or was cancelled. Before the first it is the epoch of
  /// the clock.
  std::chrono::steady_clock::time_point deadline() const noexcept { return deadline_; }

 protected:
  /// Runs when the deadline has passed and the node is out of the wheel. Any node may be scheduled, postponed,
  /// cancelled or destroyed here, this one and the wheel included. An exception leaves PassiveWheel::advance().
  virtual void on_timeout() = 0;

 private:
  friend class PassiveWheel;

  std::uint64_t tick_ = 0;         // the node is in the slot of this tick; postpone() changes only the deadline
  PassiveWheel* wheel_ = nullptr;  // null: not scheduled, and the links mean nothing
  std::chrono::steady_clock::time_point deadline_{};
};

/// Timeouts for an event loop: one thread, no locks, no clock of its own, no allocation. The loop tells the wheel the
/// time, and asks it how long it may sleep.
///
///   hwt::PassiveWheel wheel(10ms, steady_clock::now());
///   wheel.schedule(connection, 30s);
///   wheel.postpone(connection, 30s);                     // with every byte that arrives: one store
///   while (!ended) {
///     wait_for_events(until(wheel.next_wakeup()));
///     wheel.advance(steady_clock::now());                // first: the wheel knows no other time, delays count from it
///     handle_events();
///   }
///
/// Guarantees: a node is due at the first point of the grid, start + k * tick_duration, at or after its deadline. It
/// runs in the first advance(now) whose `now` has reached that point, unless max_tasks ends that call before. So it is
/// never early by the caller's clock. Nodes run in the order of the ticks. The object takes about 33 KiB, and no
/// function allocates.
/// Threads: one thread makes all calls.
/// Not for: several threads, or objects that cannot carry a base class. Use HashedWheelTimer or LoopTimer for those.
/// Source: a hierarchical wheel: Varghese & Lauck, scheme 7; intrusive as in Linux' timer.c, folly::HHWheelTimer,
/// ratas.
class HWT_API PassiveWheel {
 public:
  /// Makes a wheel whose grid starts at `now`. Throws std::invalid_argument unless tick_duration is positive.
  PassiveWheel(std::chrono::nanoseconds tick_duration, detail::PresentTime now);
  /// Takes all nodes out. Allowed inside on_timeout(); the advance() around it then returns.
  ~PassiveWheel();
  PassiveWheel(const PassiveWheel&) = delete;
  PassiveWheel& operator=(const PassiveWheel&) = delete;

  /// Lets the node fire after a delay from the wheel's time, or at a point of the caller's clock, and cancels its
  /// former schedule in any wheel; see When. A delay of 0 or less, and a deadline that is not after the wheel's time,
  /// are due at the next tick, never within the running advance(). A deadline beyond the range of the clock is the end
  /// of time, to which no real clock comes. WheelNode::deadline() returns exactly the point of that clock that was
  /// given. Nodes of the same tick run in the order of their scheduling, except postponed ones. Throws
  /// std::invalid_argument for a NaN; then nothing has changed.
  void schedule(WheelNode& node, When when);
  /// Lets the node fire `delay` after the wheel's time; see the overload for a When.
  template <std::same_as<std::chrono::nanoseconds> Nanoseconds>  // saves three instructions of some thirty
  void schedule(WheelNode& node, Nanoseconds delay) {
    schedule_in(node, delay);
  }

  /// Moves the deadline, if the new one is later than the present one; a delay counts from the wheel's time. Changes
  /// nothing otherwise, for a NaN, or if the node is not scheduled in this wheel. Made for keep-alives: it only stores
  /// the deadline. The wheel moves the node when it comes to the node's old tick.
  void postpone(WheelNode& node, When when) noexcept;

  /// Sets the wheel's time to `now`, unless that is earlier, and runs the due nodes in the order of ticks, at most
  /// max_tasks. Returns their number. The next call goes on with the rest, also after an exception of on_timeout().
  /// Empty ticks cost nothing. Throws IllegalState inside on_timeout() of the same wheel, and then has done nothing.
  ///
  /// Nodes of far deadlines also move while these come nearer, perhaps millions at once. With max_tasks it moves no
  /// more than some thousands. If fewer than max_tasks have run and next_wakeup() is not after the wheel's time, it has
  /// more nodes to move: handle other events, and call it again.
  std::size_t advance(detail::PresentTime now, std::size_t max_tasks = (std::numeric_limits<std::size_t>::max)());

  /// Returns when to call advance() next, or nothing if the wheel is empty. The time is never after the first tick at
  /// which something is due, so it may bound the sleep of an event loop. It may be earlier: each timeout costs a few
  /// such wake-ups at most while it comes nearer, and a postponed one another at its old deadline. If the latest
  /// advance() has left something over, the result is not after the wheel's time.
  std::optional<std::chrono::steady_clock::time_point> next_wakeup() const noexcept;

  /// Returns the number of scheduled nodes.
  std::size_t size() const noexcept { return size_; }

  /// Takes all nodes out without running them, and returns their number. Allowed inside on_timeout().
  std::size_t cancel_all() noexcept;

 private:
  friend class WheelNode;
  using Link = detail::WheelLink;
  class Running;

  // A tick has eight digits in base 256. A node is at the level of the highest digit in which its tick differs from the
  // cursor, in the slot of that digit. So the nodes of a level are due before those of higher levels. Each tick has a
  // place, and no slot ever holds ticks of two revolutions.
  static constexpr unsigned kDigitBits = 8;
  static constexpr std::size_t kSlotsPerLevel = std::size_t{1} << kDigitBits;
  static constexpr std::size_t kLevels = 64 / kDigitBits;
  static constexpr std::size_t kSlots = kLevels * kSlotsPerLevel;

  // The most nodes that one advance(now, max_tasks) moves to another slot, which takes less than a millisecond.
  static constexpr std::size_t kMoves = 8192;

  void set_now(std::chrono::steady_clock::time_point now) noexcept;
  std::uint64_t since_start(std::chrono::steady_clock::time_point time) const noexcept;
  std::uint64_t present_tick() const noexcept;
  std::uint64_t tick_after(std::chrono::steady_clock::time_point deadline) const noexcept;
  std::chrono::steady_clock::time_point grid_point(std::uint64_t tick) const noexcept;
  std::chrono::steady_clock::time_point deadline_of(When when) const noexcept;
  void schedule_in(WheelNode& node, std::chrono::nanoseconds delay);
  void schedule_by(WheelNode& node, std::chrono::steady_clock::time_point deadline);
  void schedule_clipped(WheelNode& node, When when) noexcept;

  /// The slot that the cursor comes to next, and the slot's first tick.
  struct NextSlot {
    std::size_t index;
    std::uint64_t begin;
  };
  NextSlot next_slot() const noexcept;
  std::size_t move_down(Link& slot, std::size_t max_moves) noexcept;

  void link(WheelNode& node, std::uint64_t tick) noexcept;
  void unlink(WheelNode& node) noexcept;
  Link& slot_of(std::uint64_t tick) noexcept;
  void append(Link& node, Link& slot) noexcept;

  bool empty() const noexcept { return occupied_words_ == 0; }
  void mark_occupied(const Link& slot) noexcept;
  void mark_empty(const Link& slot) noexcept;

  Link slots_[kSlots];  // first: a slot's address then needs no offset
  const detail::FastDivider tick_duration_;
  const std::chrono::steady_clock::time_point start_;
  // Less than 2^64 - 1 nanoseconds after start_, so that numbers of ticks do not overflow.
  const std::chrono::steady_clock::time_point end_of_time_;
  std::chrono::steady_clock::time_point now_;
  // elapsed_ is the time from start_ to now_, and one tick more. So (elapsed_ + delay - 1) / tick_duration_, rounded
  // down, is the tick of a delay of 1 .. left_ nanoseconds: it rounds the quotient up. FastDivider multiplies instead.
  // Longer delays, also those past the end of time, take schedule_clipped().
  std::uint64_t elapsed_;
  std::uint64_t left_;
  // left_ when now_ is start_. Less than nanoseconds::max(), so that schedule_clipped() gets that delay, which is never
  // over.
  const std::uint64_t left_at_start_;
  std::uint64_t cursor_ = 0;  // no node has an earlier tick, and none of a later tick has run
  // The slot of a higher level of which the latest advance() has moved only some nodes down. 0: none, because slot 0 is
  // of the lowest level. Until all are moved, the cursor stays one tick before the first tick of the slot. So newly
  // scheduled nodes also enter the slot, behind the nodes that remain there.
  std::size_t half_moved_ = 0;
  std::size_t size_ = 0;
  Running* running_ = nullptr;  // the advance() that runs
  // A bit of occupied_ is set for each slot with nodes, and a bit of occupied_words_ for each word of occupied_ that is
  // not 0. The node that is due next is in the first occupied slot.
  std::uint32_t occupied_words_ = 0;
  std::uint64_t occupied_[kSlots / 64] = {};
};

}  // namespace hwt

#include "hashed_wheel_timer/detail/passive_wheel_impl.h"
