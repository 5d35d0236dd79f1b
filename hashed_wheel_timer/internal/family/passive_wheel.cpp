// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/passive_wheel.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <limits>
#include <utility>

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt {

namespace {

using TimePoint = std::chrono::steady_clock::time_point;

std::uint64_t count_of(TimePoint time) noexcept { return static_cast<std::uint64_t>(time.time_since_epoch().count()); }

// The end of time for a wheel: less than 2^64 - 1 nanoseconds after its start, so that numbers of ticks do not
// overflow.
TimePoint end_of_time(TimePoint start) noexcept {
  return start == (TimePoint::min)() ? (TimePoint::max)() - std::chrono::nanoseconds(1) : (TimePoint::max)();
}

}  // namespace

WheelNode::~WheelNode() { cancel(); }

/// Lives on the stack of a running advance(), and tells it whether a task has destroyed the wheel.
class PassiveWheel::Running {
 public:
  // Not inlined, because GCC 12 warns that the wheel keeps a pointer to the stack. It does not see that the destructor
  // clears the pointer.
  [[gnu::noinline]] explicit Running(PassiveWheel& wheel) noexcept : wheel_(&wheel) { wheel.running_ = this; }
  ~Running() {
    if (wheel_ != nullptr) wheel_->running_ = nullptr;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void wheel_goes() noexcept { wheel_ = nullptr; }
  bool wheel_has_gone() const noexcept { return wheel_ == nullptr; }

 private:
  PassiveWheel* wheel_;
};

PassiveWheel::PassiveWheel(std::chrono::nanoseconds tick_duration, detail::PresentTime now)
    : tick_duration_(
          static_cast<std::uint64_t>(internal::positive("PassiveWheel: tick_duration", tick_duration).count())),
      start_(now) {
  set_now(now);
  for (Link& slot : slots_) slot.next_ = slot.previous_ = &slot;
}

PassiveWheel::~PassiveWheel() {
  cancel_all();
  if (running_ != nullptr) running_->wheel_goes();
}

std::size_t PassiveWheel::advance(detail::PresentTime present_time, std::size_t max_tasks) {
  const TimePoint now = present_time;
  if (running_ != nullptr) throw IllegalState("PassiveWheel: advance() inside on_timeout() of the same wheel");
  if (now > now_) set_now(now);
  const std::uint64_t present = tick_duration_.divide_rounding_up(elapsed_ + 1) - 1;
  if (half_moved_ != 0 || occupied_until(present)) return run_until(present, max_tasks);
  cursor_ = present;
  return 0;
}

std::size_t PassiveWheel::run_until(std::uint64_t present, std::size_t max_tasks) {
  constexpr auto kAll = (std::numeric_limits<std::size_t>::max)();
  constexpr auto kNever = (std::numeric_limits<std::uint64_t>::max)();  // numbers of ticks are less
  Running running(*this);
  std::size_t ran = 0;
  std::size_t moves_left = max_tasks == kAll ? kAll : kMoves;
  while (ran < max_tasks) {
    // Moves the cursor to the first tick of the next slot. While it is there, no node enters the slot, for two reasons.
    // New nodes are due after the present tick. And a moved node differs from the cursor in a lower digit, or is due
    // after the slot.
    std::size_t index = std::exchange(half_moved_, 0);
    std::uint64_t begin = cursor_ + 1;
    if (index == 0) {
      index = empty() ? 0 : first_occupied();
      begin = empty() ? kNever : first_tick_of(index);
    }
    if (begin > present) {
      cursor_ = present;  // passes no occupied slot: each begins later
      break;
    }
    cursor_ = begin;
    const Link& slot = slots_[index];
    while (slot.next_ != &slot) {
      if (moves_left == 0) {
        if (index >= kSlotsPerLevel) {  // the next call goes on with this slot; see half_moved_
          half_moved_ = index;
          --cursor_;
        }
        return ran;
      }
      auto& node = static_cast<WheelNode&>(*slot.next_);
      internal::prefetch_to_write(node.next_);  // the next node of the walk, while this one is handled
      const std::uint64_t due = due_tick(node);
      if (due > cursor_ || index >= kSlotsPerLevel) {
        detach(node);
        append(node, due);
        --moves_left;
        continue;
      }
      unlink(node);
      node.on_timeout();
      if (++ran == max_tasks || running.wheel_has_gone()) return ran;
    }
  }
  return ran;
}

std::optional<TimePoint> PassiveWheel::next_wakeup() const noexcept {
  if (empty()) return std::nullopt;
  return time_of(first_tick_of(first_occupied()));
}

std::size_t PassiveWheel::cancel_all() noexcept {
  const std::size_t count = size_;
  while (!empty()) {
    const Link& slot = slots_[first_occupied()];
    while (slot.next_ != &slot) unlink(static_cast<WheelNode&>(*slot.next_));
  }
  return count;
}

void PassiveWheel::schedule_clipped(WheelNode& node, std::chrono::nanoseconds delay) noexcept {
  const std::uint64_t wait = clipped(delay);
  const std::uint64_t next_tick = tick_duration_.divide_rounding_up(elapsed_ + 1);
  node.cancel();
  node.deadline_ = now_ + std::chrono::nanoseconds(static_cast<std::int64_t>(wait));
  link(node, std::max(next_tick, tick_duration_.divide_rounding_up(elapsed_ + wait)));
}

void PassiveWheel::schedule_clipped_at(WheelNode& node, TimePoint deadline) noexcept {
  const std::uint64_t next_tick = tick_duration_.divide_rounding_up(elapsed_ + 1);
  node.cancel();
  node.deadline_ = deadline;
  link(node, std::max(next_tick, tick_after(deadline)));
}

void PassiveWheel::set_now(TimePoint now) noexcept {
  const TimePoint end = end_of_time(start_);
  now_ = std::min(now, end);
  elapsed_ = since_start(now_);
  constexpr auto kLongestDelay = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  left_ = std::min(count_of(end) - count_of(now_), kLongestDelay);
}

// Returns the time since the start. Unsigned, and therefore right for any two times.
std::uint64_t PassiveWheel::since_start(TimePoint time) const noexcept { return count_of(time) - count_of(start_); }

TimePoint PassiveWheel::time_of(std::uint64_t tick) const noexcept {
  const std::uint64_t ticks_of_all_time = tick_duration_.divide_rounding_up(since_start(end_of_time(start_)) + 1);
  if (tick >= ticks_of_all_time) return (TimePoint::max)();
  const std::uint64_t time = count_of(start_) + tick * tick_duration_.divisor();
  return TimePoint(std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
}

// Returns the first tick at or after the deadline, but no tick before the one for which the node was linked. A node
// without a delay was linked for the next tick, which may be later than the tick of its deadline.
std::uint64_t PassiveWheel::due_tick(const WheelNode& node) const noexcept {
  // Without a division for a node that was not postponed beyond its tick. If the product is more than 64 bits have, the
  // tick is the last one, and nothing is later.
  if (since_start(node.deadline_) <= node.tick_ * tick_duration_.divisor()) [[likely]]
    return node.tick_;
  return std::max(node.tick_, tick_after(node.deadline_));
}

// Returns the first tick at or after the deadline. The deadline is first clamped to [start, end of time].
std::uint64_t PassiveWheel::tick_after(TimePoint deadline) const noexcept {
  return tick_duration_.divide_rounding_up(since_start(std::clamp(deadline, start_, end_of_time(start_))));
}

bool PassiveWheel::occupied_until(std::uint64_t tick) const noexcept {
  return !empty() && first_tick_of(first_occupied()) <= tick;
}

// Returns the first occupied slot. Precondition: the wheel is not empty.
std::size_t PassiveWheel::first_occupied() const noexcept {
  const auto word = static_cast<std::size_t>(std::countr_zero(occupied_words_));
  assert(word < std::size(occupied_) && occupied_[word] != 0);
  return word * 64 + static_cast<std::size_t>(std::countr_zero(occupied_[word]));
}

// Returns the first tick of a slot: the digits of the cursor above the slot's level, the slot's digit, and zeros.
std::uint64_t PassiveWheel::first_tick_of(std::size_t slot) const noexcept {
  const std::size_t shift = slot / kSlotsPerLevel * kDigitBits;
  const std::uint64_t digits = cursor_ >> shift;
  return (digits - digits % kSlotsPerLevel + slot % kSlotsPerLevel) << shift;
}

}  // namespace hwt
