#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/fast_divider.h"
#include "hashed_wheel_timer/detail/wheel_link.h"

namespace hwt {

class PassiveWheel;

/// What waits in a PassiveWheel: a base, of 48 bytes, of the object whose timeout it is.
///
///   struct Connection : hwt::WheelNode {
///     void on_timeout() override { close(); }            // idle for too long
///   };
///
/// Guarantees: on_timeout() runs once for each schedule() that nothing has cancelled or replaced.
/// Threads: it belongs to the thread of its wheel.
/// Not for: two timeouts of one object at once; give that two members that are nodes.
/// Source: the intrusive timers of Linux' timer.c and folly::HHWheelTimer.
class HWT_API WheelNode : private detail::WheelLink {
 public:
  /// Not scheduled.
  WheelNode() noexcept = default;
  /// Takes it out of its wheel.
  virtual ~WheelNode();
  WheelNode(const WheelNode&) = delete;
  WheelNode& operator=(const WheelNode&) = delete;

  /// Takes it out of its wheel. True if it was scheduled.
  bool cancel() noexcept;
  /// It is in a wheel.
  bool scheduled() const noexcept { return wheel_ != nullptr; }
  /// The latest one: that of a node which has fired or was cancelled stays. The epoch of the clock before the first.
  std::chrono::steady_clock::time_point deadline() const noexcept { return deadline_; }

 protected:
  /// The deadline has passed; the node is out of the wheel. Any node may be scheduled, postponed, cancelled or
  /// destroyed in here, this one and the wheel included. An exception leaves PassiveWheel::advance().
  virtual void on_timeout() = 0;

 private:
  friend class PassiveWheel;

  PassiveWheel* wheel_ = nullptr;  // null: not scheduled, and the links mean nothing
  std::chrono::steady_clock::time_point deadline_{};
  std::uint64_t tick_ = 0;  // the one whose slot it is in; postpone() moves the deadline alone, to later
};

/// Timeouts for an event loop: one thread, no locks, no clock of its own, nothing allocated. The loop tells the wheel
/// what time it is, and asks it how long it may sleep.
///
///   hwt::PassiveWheel wheel(10ms, steady_clock::now());
///   wheel.schedule(connection, 30s);
///   wheel.postpone(connection, 30s);                     // with every byte that arrives: one store
///   for (;;) {
///     wait_for_events(until(wheel.next_wakeup()));
///     wheel.advance(steady_clock::now());                // first: the wheel knows no other time, delays count from it
///     handle_events();
///   }
///
/// Guarantees: never early by the caller's clock; a node runs in the first advance(now) with now >= the first point of
/// the grid, start + k * tick_duration, at or after its deadline; in the order of the ticks. About 33 KiB, all in the
/// object itself; no function allocates.
/// Threads: all calls come from one.
/// Not for: several threads, or objects that cannot carry a base class. HashedWheelTimer and ManualTimer are for
/// those.
/// Source: a hierarchical wheel: Varghese & Lauck, scheme 7; intrusive as in Linux' timer.c, folly::HHWheelTimer,
/// ratas.
class HWT_API PassiveWheel {
 public:
  /// `now` is the start of the grid. Throws std::invalid_argument unless tick_duration is positive.
  PassiveWheel(std::chrono::nanoseconds tick_duration, std::chrono::steady_clock::time_point now);
  /// Takes all nodes out. Allowed inside on_timeout(); the advance() around it then returns.
  ~PassiveWheel();
  PassiveWheel(const PassiveWheel&) = delete;
  PassiveWheel& operator=(const PassiveWheel&) = delete;

  /// The node fires `delay` after the wheel's time. If it was scheduled before, in this wheel or another, that is
  /// cancelled. A delay of 0 or less ends with the next tick, never within the running advance(). A deadline beyond the
  /// range of the clock is the end of time: never, unless advance() is called with that. Nodes of the same tick run in
  /// the order of their scheduling, postponed ones apart. Throws std::invalid_argument for a NaN; nothing has changed.
  void schedule(WheelNode& node, Delay delay) { schedule_in(node, delay); }
  /// The same.
  template <std::same_as<std::chrono::nanoseconds> Nanoseconds>  // saves three instructions of some fifty
  void schedule(WheelNode& node, Nanoseconds delay) {
    schedule_in(node, delay);
  }

  /// The same, at a point of the caller's clock; one that is not after the wheel's time is due at the next tick. The
  /// node's deadline() is what was passed.
  void schedule_at(WheelNode& node, std::chrono::steady_clock::time_point deadline);

  /// Moves the deadline to `delay` after the wheel's time, if that is later. Otherwise, for a NaN, and if the node is
  /// not scheduled in this wheel, nothing changes. Made for keep-alives: stores the deadline and leaves the node where
  /// it is, until the wheel meets it at its old tick.
  void postpone(WheelNode& node, Delay delay) noexcept;

  /// The same: moves the deadline to `deadline`, if that is later.
  void postpone_at(WheelNode& node, std::chrono::steady_clock::time_point deadline) noexcept;

  /// The wheel's time becomes `now`, or stays if that is earlier. Runs what is due, in the order of ticks, but no more
  /// than max_tasks nodes, and returns how many. The next call goes on with the rest, also after an exception of
  /// on_timeout(). Costs nothing for empty ticks, however many. Throws IllegalState inside on_timeout() of the same
  /// wheel, and then has done nothing.
  ///
  /// Nodes of far deadlines also have to be moved while these come nearer, millions at once perhaps. Called with
  /// max_tasks, it moves no more than some thousands. So if fewer than max_tasks have run, nothing is due any more
  /// unless next_wakeup() is in the past: then call it again, after a look at other events.
  std::size_t advance(std::chrono::steady_clock::time_point now,
                      std::size_t max_tasks = (std::numeric_limits<std::size_t>::max)());

  /// When to call advance() next: never after the first tick at which something is due, so that it may bound the sleep
  /// of an event loop. May be earlier: each timeout costs at most a few such wake-ups while it comes nearer, and a
  /// postponed one another at its old deadline. Not after the time of the latest advance() if that has left something
  /// over, to run or to move. nullopt when empty.
  std::optional<std::chrono::steady_clock::time_point> next_wakeup() const noexcept;

  /// How many nodes are scheduled.
  std::size_t size() const noexcept { return size_; }

  /// Takes all nodes out without running them and returns how many. Allowed inside on_timeout().
  std::size_t cancel_all() noexcept;

 private:
  friend class WheelNode;
  using Link = detail::WheelLink;
  class Running;

  // A tick has eight digits in base 256. A node is at the level of the highest digit in which its tick differs from the
  // cursor, in the slot of that digit. So whatever is on one level is due before anything on a higher one, all ticks
  // have a place, and no slot ever holds ticks of two revolutions.
  static constexpr unsigned kDigitBits = 8;
  static constexpr std::size_t kSlotsPerLevel = std::size_t{1} << kDigitBits;
  static constexpr std::size_t kLevels = 64 / kDigitBits;
  static constexpr std::size_t kSlots = kLevels * kSlotsPerLevel;

  // What advance(now, max_tasks) moves at a time: a fraction of a millisecond's work.
  static constexpr std::size_t kMoves = 8192;

  void set_now(std::chrono::steady_clock::time_point now) noexcept;
  std::uint64_t since_start(std::chrono::steady_clock::time_point time) const noexcept;
  std::uint64_t tick_after(std::chrono::steady_clock::time_point deadline) const noexcept;
  std::chrono::steady_clock::time_point time_of(std::uint64_t tick) const noexcept;
  std::uint64_t clipped(std::chrono::nanoseconds delay) const noexcept;
  template <class Duration>
  void schedule_in(WheelNode& node, Duration delay);
  void schedule_clipped(WheelNode& node, Delay delay);
  void schedule_clipped_at(WheelNode& node, std::chrono::steady_clock::time_point deadline) noexcept;
  std::uint64_t due_tick(const WheelNode& node) const noexcept;
  std::size_t run_until(std::uint64_t present, std::size_t max_tasks);

  void link(WheelNode& node, std::uint64_t tick) noexcept;
  void unlink(WheelNode& node) noexcept;

  bool empty() const noexcept { return occupied_words_ == 0; }
  bool occupied_until(std::uint64_t tick) const noexcept;
  std::size_t first_occupied() const noexcept;
  std::uint64_t first_tick_of(std::size_t slot) const noexcept;
  void mark_occupied(const Link& slot) noexcept;
  void mark_empty(const Link& slot) noexcept;

  Link slots_[kSlots];  // first: a slot's address then needs no offset
  const detail::FastDivider tick_duration_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point now_;
  std::uint64_t elapsed_;     // nanoseconds from start_ to now_
  std::uint64_t left_;        // nanoseconds from now_ to the end of time, as far as a delay can reach
  std::uint64_t cursor_ = 0;  // no tick before it is due any more, and none after it has been reached
  // The slot that begins at the next tick and is half moved down; 0: none, since slot 0 is of the lowest level. The
  // cursor waits before it: seen from there, what is scheduled now goes into that slot too, behind what is left.
  std::size_t half_moved_ = 0;
  std::size_t size_ = 0;
  Running* running_ = nullptr;  // the advance() that runs
  // Which slots are occupied, and which of these words are not 0: the next node is due in the first slot.
  std::uint32_t occupied_words_ = 0;
  std::uint64_t occupied_[kSlots / 64] = {};
};

}  // namespace hwt

#include "hashed_wheel_timer/detail/passive_wheel_impl.h"
