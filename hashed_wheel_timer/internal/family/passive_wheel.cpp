// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/passive_wheel.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt {

namespace {

using TimePoint = std::chrono::steady_clock::time_point;

}  // namespace

WheelNode::~WheelNode() { cancel(); }

/// Lives on the stack of a running advance(), and ends it when a task has destroyed the wheel.
class PassiveWheel::Running {
 public:
  Running(PassiveWheel& wheel, std::size_t max_tasks) noexcept : wheel_(&wheel), max_tasks_(max_tasks) {
    wheel.running_ = this;
  }
  ~Running() {
    if (wheel_ != nullptr) wheel_->running_ = nullptr;
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void wheel_goes() noexcept {
    wheel_ = nullptr;
    max_tasks_ = 0;
  }
  /// Returns how many nodes may run: none if the wheel has gone.
  std::size_t max_tasks() const noexcept { return max_tasks_; }

 private:
  PassiveWheel* wheel_;
  std::size_t max_tasks_;
};

PassiveWheel::PassiveWheel(std::chrono::nanoseconds tick_duration, detail::PresentTime now)
    : tick_duration_(
          static_cast<std::uint64_t>(internal::positive("PassiveWheel: tick_duration", tick_duration).count())),
      start_(now),
      end_of_time_(start_ == (TimePoint::min)() ? (TimePoint::max)() - std::chrono::nanoseconds(1)
                                                : (TimePoint::max)()),
      left_at_start_(std::min({since_start(end_of_time_), detail::FastDivider::kFastUpTo - tick_duration_.divisor(),
                               std::uint64_t{detail::kMaxNanoseconds} - 1})) {
  set_now(now);
  for (Link& slot : slots_) slot.next_ = slot.previous_ = &slot;
}

PassiveWheel::~PassiveWheel() {
  cancel_all();
  if (running_ != nullptr) running_->wheel_goes();
}

std::size_t PassiveWheel::advance(detail::PresentTime present_time, std::size_t max_tasks) {
  constexpr auto kAll = (std::numeric_limits<std::size_t>::max)();
  if (running_ != nullptr) throw IllegalState("PassiveWheel: advance() inside on_timeout() of the same wheel");
  set_now(std::max<TimePoint>(present_time, now_));
  const std::uint64_t present = present_tick();
  NextSlot next = half_moved_ != 0 ? NextSlot{half_moved_, cursor_ + 1} : next_slot();
  if (next.begin > present) {
    cursor_ = present;  // passes no occupied slot: each begins later
    return 0;
  }
  if (max_tasks == 0) return 0;
  Running running(*this, max_tasks);  // not const: wheel_goes() changes it
  half_moved_ = 0;
  std::size_t ran = 0;
  std::size_t moves_left = max_tasks == kAll ? kAll : kMoves;
  while (moves_left != 0) {
    // While the cursor is at the first tick of the slot, no node enters the slot, for two reasons. New nodes are due
    // after the present tick. And a moved node differs from the cursor in a lower digit, or is due after the slot.
    cursor_ = next.begin;
    Link& slot = slots_[next.index];
    if (next.index >= kSlotsPerLevel) {
      moves_left = move_down(slot, moves_left);
      if (slot.next_ != &slot) {  // the next call goes on with this slot; see half_moved_
        half_moved_ = static_cast<std::size_t>(&slot - slots_);
        --cursor_;
        break;
      }
    } else {
      const TimePoint reached = grid_point(cursor_);
      while (slot.next_ != &slot) {
        auto& node = static_cast<WheelNode&>(*slot.next_);
        if (node.deadline_ > reached && tick_after(node.deadline_) > cursor_) [[unlikely]] {  // it was postponed
          unlink(node);
          link(node, tick_after(node.deadline_));
          if (--moves_left == 0) return ran;
          continue;
        }
        unlink(node);
        node.on_timeout();
        if (++ran >= running.max_tasks()) return ran;
      }
      if (next.begin == present) break;  // spares the search for a later slot
    }
    next = next_slot();
    if (next.begin > present) {
      cursor_ = present;
      break;
    }
  }
  return ran;
}

// Moves nodes of a slot to lower levels, and returns how many more may be moved. Precondition: the cursor is at the
// first tick of the slot, which is of a higher level than the lowest.
std::size_t PassiveWheel::move_down(Link& slot, std::size_t max_moves) noexcept {
  // Most moves are from the second level to the lowest. There the slot needs no search for a level.
  const bool to_lowest = &slot < slots_ + 2 * kSlotsPerLevel;
  Link* link = slot.next_;
  while (link != &slot) {
    Link& moved = *link;
    link = moved.next_;
    internal::prefetch_to_write(link);
    const std::uint64_t tick = static_cast<WheelNode&>(moved).tick_;
    append(moved, to_lowest ? slots_[tick % kSlotsPerLevel] : slot_of(tick));
    if (--max_moves == 0) break;
  }
  slot.next_ = link;
  link->previous_ = &slot;
  if (link == &slot) mark_empty(slot);
  return max_moves;
}

// Finds the first occupied slot, and its first tick: the digits of the cursor above the slot's level, the slot's digit,
// and zeros.
PassiveWheel::NextSlot PassiveWheel::next_slot() const noexcept {
  if (empty()) return {0, (std::numeric_limits<std::uint64_t>::max)()};  // never: numbers of ticks are less
  const auto word = static_cast<unsigned>(std::countr_zero(occupied_words_));
  assert(word < std::size(occupied_) && occupied_[word] != 0);
  // The highest bit changes no result. It tells the compiler that the word is not 0.
  const unsigned slot = word * 64 + static_cast<unsigned>(std::countr_zero(occupied_[word] | std::uint64_t{1} << 63));
  const auto shift = static_cast<unsigned>(slot / kSlotsPerLevel * kDigitBits);
  const std::uint64_t digits = cursor_ >> shift;
  return {slot, (digits - digits % kSlotsPerLevel + slot % kSlotsPerLevel) << shift};
}

std::optional<TimePoint> PassiveWheel::next_wakeup() const noexcept {
  if (empty()) return std::nullopt;
  const std::uint64_t tick = next_slot().begin;
  const std::uint64_t ticks_of_all_time = tick_duration_.divide_rounding_up(since_start(end_of_time_) + 1);
  return tick < ticks_of_all_time ? grid_point(tick) : (TimePoint::max)();
}

std::size_t PassiveWheel::cancel_all() noexcept {
  const std::size_t count = size_;
  while (!empty()) {
    const Link& slot = slots_[next_slot().index];
    while (slot.next_ != &slot) unlink(static_cast<WheelNode&>(*slot.next_));
  }
  return count;
}

// Schedules for a deadline that has passed, or for a delay of more than left_.
void PassiveWheel::schedule_clipped(WheelNode& node, When when) noexcept {
  node.cancel();
  node.deadline_ = deadline_of(when);
  link(node, std::max(present_tick() + 1, tick_after(node.deadline_)));
}

void PassiveWheel::set_now(TimePoint now) noexcept {
  now_ = std::min(now, end_of_time_);
  const std::uint64_t since = since_start(now_);
  elapsed_ = since + tick_duration_.divisor();
  left_ = left_at_start_ - std::min(left_at_start_, since);
}

std::uint64_t PassiveWheel::since_start(TimePoint time) const noexcept {
  return detail::nanoseconds_between(start_, time);
}

// Returns the latest tick that has been reached.
std::uint64_t PassiveWheel::present_tick() const noexcept {
  return tick_duration_.divide_rounding_up(since_start(now_) + 1) - 1;
}

// Returns the time of a tick. Precondition: it is not after the end of time.
TimePoint PassiveWheel::grid_point(std::uint64_t tick) const noexcept {
  const std::uint64_t time = detail::nanoseconds_between({}, start_) + tick * tick_duration_.divisor();
  return TimePoint(std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
}

// Returns the first tick at or after the deadline. The deadline is first clamped to [start, end of time].
std::uint64_t PassiveWheel::tick_after(TimePoint deadline) const noexcept {
  return tick_duration_.divide_rounding_up(since_start(std::clamp(deadline, start_, end_of_time_)));
}

}  // namespace hwt
