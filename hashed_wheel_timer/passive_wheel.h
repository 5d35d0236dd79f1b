#pragma once

// Timeouts for an event loop: one thread, no locks, no clock of its own, nothing allocated. The timeout is a base class
// of the object that waits (a connection, a request); the loop tells the wheel what time it is and asks it how long it
// may sleep.
//
//   struct Connection : hwt::WheelNode {
//     void on_timeout() override { close(); }            // idle for too long
//   };
//   hwt::PassiveWheel wheel(10ms, steady_clock::now());
//   wheel.schedule(connection, 30s);
//   wheel.postpone(connection, 30s);                     // with every byte that arrives: one store
//   for (;;) {
//     wait_for_events(until(wheel.next_wakeup()));
//     wheel.advance(steady_clock::now());                // first: delays count from here
//     handle_events();
//   }
//
// Guarantees: never early by the caller's clock; exact on the grid of ticks; in the order of the ticks.
// Not for: several threads, or objects that cannot carry a base class. HashedWheelTimer and ManualTimer are for those.
//
// A hierarchical wheel: Varghese & Lauck, scheme 7; intrusive as in Linux' timer.c, folly::HHWheelTimer and ratas.

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "hashed_wheel_timer/export.h"
#include "hashed_wheel_timer/saturating_duration.h"
#include "hashed_wheel_timer/tick_duration.h"

namespace hwt {

class PassiveWheel;

namespace detail {

/// One link of a ring. A slot of the wheel is such a ring with the slot itself as the link that is always there, so
/// that a node leaves it without a case to tell apart.
struct WheelLink {
  WheelLink* next_ = nullptr;
  WheelLink* previous_ = nullptr;
};

}  // namespace detail

/// What waits in a PassiveWheel: the base of the user's object, 48 bytes. It belongs to the thread of its wheel.
class HWT_API WheelNode : private detail::WheelLink {
 public:
  WheelNode() noexcept = default;
  /// Takes it out of its wheel.
  virtual ~WheelNode();
  WheelNode(const WheelNode&) = delete;
  WheelNode& operator=(const WheelNode&) = delete;

  /// Takes it out of its wheel. True if it was scheduled.
  bool cancel() noexcept;
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
  std::uint64_t tick_ = 0;  // the one whose slot it is in: not after that of the deadline, which postpone() moves alone
};

/// Runs WheelNodes whose deadlines have passed when advance() is called: a node runs in the first advance(now) with
/// now >= the first point of the grid, start + k * tick_duration, at or after its deadline. All calls from one thread.
/// About 33 KiB, all in the object itself; no function allocates.
///
/// The wheel knows no time but the latest `now` it was told, and delays count from that: call advance() when the loop
/// wakes up, before the events are handled.
class HWT_API PassiveWheel {
 public:
  /// `now` is the start of the grid. Throws std::invalid_argument unless tick_duration is positive.
  PassiveWheel(std::chrono::nanoseconds tick_duration, std::chrono::steady_clock::time_point now);
  /// Takes all nodes out. Allowed inside on_timeout(); the advance() around it then returns.
  ~PassiveWheel();
  PassiveWheel(const PassiveWheel&) = delete;
  PassiveWheel& operator=(const PassiveWheel&) = delete;

  /// The node fires after `delay` from the wheel's time on; if it was scheduled, in this wheel or another, only that
  /// counts. A delay of 0 or less ends with the next tick, never within the running advance(). A deadline beyond the
  /// range of the clock is the end of time: never, unless advance() is called with that. Nodes of the same tick run in
  /// the order of their scheduling, postponed ones apart.
  void schedule(WheelNode& node, detail::Span delay);

  /// Moves the deadline to `delay` from the wheel's time on if that is later; otherwise, and if the node is not
  /// scheduled in this wheel, nothing changes. Made for keep-alives: stores the deadline and leaves the node where it
  /// is, until the wheel meets it at its old tick.
  void postpone(WheelNode& node, detail::Span delay) noexcept;

  /// It is `now`; an earlier time than the latest one counts as that. Runs what is due, in the order of ticks, but no
  /// more than max_tasks nodes, and returns how many: if fewer than max_tasks, nothing is due any more. The
  /// next call goes on with the rest, also after an exception of on_timeout(). Costs nothing for empty ticks, however
  /// many. Throws IllegalState inside on_timeout() of the same wheel, and then has done nothing.
  std::size_t advance(std::chrono::steady_clock::time_point now,
                      std::size_t max_tasks = (std::numeric_limits<std::size_t>::max)());

  /// When to call advance() next: never after the first tick at which something is due, so that it may bound the sleep
  /// of an event loop. May be earlier: each timeout costs at most a few such wake-ups while it comes nearer, and a
  /// postponed one another at its old deadline. In the past when max_tasks has left something over. Nothing when empty.
  std::optional<std::chrono::steady_clock::time_point> next_wakeup() const noexcept;

  /// How many nodes are scheduled.
  std::size_t size() const noexcept { return size_; }

  /// Takes all nodes out without running them and returns how many. Allowed inside on_timeout().
  std::size_t cancel_all() noexcept;

 private:
  friend class WheelNode;
  using Link = detail::WheelLink;
  class Running;

  // Digits of a tick in base 256. A node is at the level of the highest digit in which its tick differs from the
  // cursor, in the slot of that digit. So whatever is at one level is due before anything on a higher one, all ticks
  // have a place, and no slot ever holds ticks of two revolutions.
  static constexpr unsigned kDigitBits = 8;
  static constexpr std::size_t kSlotsPerLevel = std::size_t{1} << kDigitBits;
  static constexpr std::size_t kLevels = 64 / kDigitBits;
  static constexpr std::size_t kSlots = kLevels * kSlotsPerLevel;

  void set_now(std::chrono::steady_clock::time_point now) noexcept;
  std::uint64_t since_start(std::chrono::steady_clock::time_point time) const noexcept;
  std::chrono::steady_clock::time_point time_of(std::uint64_t tick) const noexcept;
  std::uint64_t clipped(std::chrono::nanoseconds delay) const noexcept;
  void schedule_clipped(WheelNode& node, std::chrono::nanoseconds delay) noexcept;
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

  Link slots_[kSlots];  // first: a slot then is where its number times its size says, without an offset
  const detail::TickDuration tick_duration_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point now_;
  std::uint64_t elapsed_;     // nanoseconds from start_ to now_
  std::uint64_t left_;        // nanoseconds from now_ to the end of time, as far as a delay can reach
  std::uint64_t cursor_ = 0;  // no tick before it is due any more, and none after it has been reached
  std::size_t size_ = 0;
  Running* running_ = nullptr;  // the advance() that runs
  // Which slots are occupied, and which words of that are not 0: the first of both is where the next node is due.
  std::uint32_t occupied_words_ = 0;
  std::uint64_t occupied_[kSlots / 64] = {};
};

inline bool WheelNode::cancel() noexcept {
  if (wheel_ == nullptr) return false;
  wheel_->unlink(*this);
  return true;
}

inline void PassiveWheel::schedule(WheelNode& node, detail::Span span) {
  const std::chrono::nanoseconds delay = span;
  const auto wait = static_cast<std::uint64_t>(delay.count());
  if (wait - 1 >= left_) [[unlikely]] {  // 0, negative, or past the end of time
    schedule_clipped(node, delay);
    return;
  }
  node.cancel();
  node.deadline_ = now_ + delay;
  link(node, tick_duration_.ticks_rounded_up(elapsed_ + wait));
}

inline void PassiveWheel::postpone(WheelNode& node, detail::Span delay) noexcept {
  if (node.wheel_ != this) return;
  const auto deadline = now_ + std::chrono::nanoseconds(static_cast<std::int64_t>(clipped(delay)));
  if (deadline > node.deadline_) node.deadline_ = deadline;
}

inline std::uint64_t PassiveWheel::clipped(std::chrono::nanoseconds delay) const noexcept {
  const std::uint64_t positive = delay.count() > 0 ? static_cast<std::uint64_t>(delay.count()) : 0;
  return positive < left_ ? positive : left_;
}

inline void PassiveWheel::link(WheelNode& node, std::uint64_t tick) noexcept {
  const auto highest_bit = static_cast<unsigned>(std::countl_zero((tick ^ cursor_) | 1)) ^ 63U;
  const unsigned shift = highest_bit / kDigitBits * kDigitBits;
  Link& slot = slots_[shift * (kSlotsPerLevel / kDigitBits) + (tick >> shift) % kSlotsPerLevel];
  // In this order: two stores to neighbours in a row would be made one wide store, by more instructions than it saves.
  Link* const last = slot.previous_;
  node.next_ = &slot;
  last->next_ = &node;
  slot.previous_ = &node;
  node.previous_ = last;
  node.wheel_ = this;
  node.tick_ = tick;
  ++size_;
  if (last == &slot) mark_occupied(slot);
}

inline void PassiveWheel::unlink(WheelNode& node) noexcept {
  Link* const next = node.next_;
  Link* const previous = node.previous_;
  next->previous_ = previous;
  previous->next_ = next;
  node.wheel_ = nullptr;
  --size_;
  if (next == previous) mark_empty(*next);  // both neighbours are one: that is the slot, alone now
}

inline void PassiveWheel::mark_occupied(const Link& slot) noexcept {
  const auto index = static_cast<std::size_t>(&slot - slots_);
  occupied_[index / 64] |= std::uint64_t{1} << index % 64;
  occupied_words_ |= std::uint32_t{1} << index / 64;
}

inline void PassiveWheel::mark_empty(const Link& slot) noexcept {
  const auto index = static_cast<std::size_t>(&slot - slots_);
  std::uint64_t& word = occupied_[index / 64];
  word &= ~(std::uint64_t{1} << index % 64);
  if (word == 0) occupied_words_ &= ~(std::uint32_t{1} << index / 64);
}

}  // namespace hwt
