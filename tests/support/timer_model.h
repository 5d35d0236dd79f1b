#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "tests/support/time_points.h"

namespace hwt::test {

/// The model of a ManualTimer: which timeouts are pending, and when each is due. A multimap by the points of the
/// timer's grid. The owner of a timeout expects an alarm, and reports when it has come, was moved or was cancelled.
/// Passes each promise that the timer breaks to `broken`.
class TimerModel {
 public:
  struct Alarm {
    std::uint64_t due = 0;  // the number of a point of the grid
    TimePoint deadline;
    std::uint64_t order = 0;  // rises with each expect_in_order(); 0: it may run anywhere among those of its tick
    bool any_time = false;  // its deadline has passed: it may run in the tick that is processed now, or in the next one
    bool any_turn = false;  // a calendar also wakes up before it is due; after a jump, such a wake-up may run it
  };
  using Due = std::multimap<std::uint64_t, Alarm>;
  /// An expected alarm, or none.
  using Id = std::optional<Due::iterator>;

  TimerModel(std::chrono::nanoseconds tick, TimePoint start, std::function<void(const char* promise)> broken)
      : tick_(static_cast<std::uint64_t>(tick.count())), start_(start), broken_(std::move(broken)) {}

  std::size_t size() const { return by_due_.size(); }
  /// The alarms in the order of their ticks.
  const Due& by_due() const { return by_due_; }
  /// When the first alarm is due. TimePoint::max(): never.
  TimePoint first() const { return by_due_.empty() ? TimePoint::max() : time_of(by_due_.begin()->first); }
  /// Whether a turn has ended before it had run all that was due.
  bool left_over() const { return left_over_; }

  void expect(Id& id, TimePoint deadline, TimePoint now, bool any_time = false) { add(id, deadline, now, 0, any_time); }
  /// For a timeout that the owner itself has scheduled.
  void expect_in_order(Id& id, TimePoint deadline, TimePoint now) { add(id, deadline, now, ++last_order_, false); }
  void forget(Id& id) {
    if (!id) return;
    by_due_.erase(*id);
    id.reset();
  }
  void move(Id& id, TimePoint deadline, TimePoint now) {
    forget(id);
    add(id, deadline, now, 0, deadline <= now);
  }

  /// The alarm has come.
  void fired(Id& id, TimePoint now) {
    require(id.has_value(), "only what is expected runs, and once");
    if (!id) return;
    const Alarm& alarm = (*id)->second;
    require(alarm.deadline <= now, "never early");
    if (!alarm.any_time) check_turn(alarm, now);
    forget(id);
  }

  /// A turn begins. `passing`: time passes tick by tick. Otherwise the clock has jumped.
  void begin_turn(TimePoint now, bool passing) {
    turning_ = true;
    began_ = now;
    passing_ = passing;
  }
  /// `left_over`: it has run as many tasks as it may.
  void end_turn(TimePoint now, bool left_over) {
    turning_ = false;
    left_over_ = left_over;
    for (auto& [due, alarm] : by_due_) {
      // A task of this turn has scheduled it, and it may join the remaining alarms.
      if (left_over_ && alarm.deadline <= now && time_of(due) > now) alarm.any_time = true;
    }
    require(left_over_ || first() > now || first() == TimePoint::max(), "nothing is left over");
  }

  void check_wakeup(std::optional<TimePoint> wakeup, TimePoint now) const {
    if (first() == TimePoint::max()) return;
    require(wakeup.has_value(), "next_wakeup() is there if something is due");
    require(!wakeup || *wakeup <= std::max(first(), now), "next_wakeup() is not too late");
  }

  /// The deadline with a leeway: of the ticks within it, the end of the one whose number ends in the most zero bits.
  TimePoint roundest(TimePoint deadline, std::chrono::nanoseconds leeway) const {
    const TimePoint latest = std::min(after(deadline, leeway), TimePoint::max() - std::chrono::nanoseconds(1));
    if (leeway.count() <= 0 || latest <= start_) return deadline;
    const std::uint64_t first = std::max<std::uint64_t>(points_until(deadline), 1) - 1;
    const std::uint64_t end = std::min(distance(start_, latest) / tick_, kLastPoint - 1);
    if (first >= end) return deadline;
    std::uint64_t roundest = end - 1;
    for (int bit = 0; bit < 64 && (end - 1) >> bit << bit >= first; ++bit) roundest = (end - 1) >> bit << bit;
    return later_by(start_, (roundest + 1) * tick_);
  }

  /// The first point of the grid that is at or after the deadline, and after now.
  std::uint64_t due_of(TimePoint deadline, TimePoint now) const {
    return std::max(distance(start_, now) / tick_ + 1, points_until(deadline));
  }
  TimePoint time_of(std::uint64_t point) const {
    if (point >= kLastPoint) return TimePoint::max();
    return point > distance(start_, TimePoint::max()) / tick_ ? TimePoint::max() : later_by(start_, point * tick_);
  }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kLastPoint = (std::uint64_t{1} << 63) - 1;  // the last tick never ends

  void require(bool kept, const char* promise) const {
    if (!kept) [[unlikely]]
      broken_(promise);
  }

  std::uint64_t points_until(TimePoint time) const {
    const std::uint64_t since = time <= start_ ? 0 : distance(start_, time);
    return since / tick_ + (since % tick_ != 0 ? 1 : 0);
  }

  void add(Id& id, TimePoint deadline, TimePoint now, std::uint64_t order, bool any_time) {
    require(!id, "one alarm at a time");
    const std::uint64_t due = deadline == TimePoint::max() ? kNever : due_of(deadline, now);
    const bool may_join = left_over_ && deadline <= now;  // it may be among the remaining alarms
    id = by_due_.emplace(due, Alarm{due, deadline, order, any_time || may_join, false});
  }

  void check_turn(const Alarm& alarm, TimePoint now) const {
    require(turning_, "runs when time passes");
    const bool jumped = !passing_ || now == began_;  // at the beginning of a turn, overdue alarms run as after a jump
    if (alarm.any_turn && jumped) return;
    if (passing_) {
      require(now == std::max(time_of(alarm.due), began_), "runs at the point of the grid where it is due");
    } else {
      require(time_of(alarm.due) <= now, "not before it is due");
    }
    for (auto other = by_due_.begin(); other->first < alarm.due; ++other) {
      require(other->second.any_time, "in the order of ticks");
    }
    const auto [first, end] = by_due_.equal_range(alarm.due);
    require(alarm.order == 0 || std::all_of(first, end,
                                            [&](const auto& other) {
                                              return other.second.order == 0 || other.second.order >= alarm.order;
                                            }),
            "in the order of scheduling");
  }

  const std::uint64_t tick_;
  const TimePoint start_;
  const std::function<void(const char*)> broken_;
  Due by_due_;
  std::uint64_t last_order_ = 0;
  bool turning_ = false;
  bool passing_ = false;
  bool left_over_ = false;
  TimePoint began_;
};

}  // namespace hwt::test
