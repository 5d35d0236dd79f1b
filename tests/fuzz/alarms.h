#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "hashed_wheel_timer/manual_timer.h"
#include "tests/fuzz/input.h"

namespace hwt::fuzz {

/// A ManualTimer, and the alarms that are expected on it: a multimap by the points of its grid. The owner of a timeout
/// expects an alarm, and says when it has come, was moved or was cancelled.
class Alarms {
 public:
  struct Alarm {
    std::uint64_t due = 0;  // the number of a point of the grid
    TimePoint deadline;
    bool any_time = false;  // its deadline has passed: it may run in the tick that is processed now, or in the next one
    bool any_turn = false;  // of a calendar, which also wakes up earlier; after a jump such a wake-up may run it
  };
  using Due = std::multimap<std::uint64_t, Alarm>;
  /// One that is expected, or none.
  using Id = std::optional<Due::iterator>;

  Alarms(Input& input, std::chrono::nanoseconds tick, TimePoint start,
         std::function<void(std::exception_ptr, const Timeout&)> on_task_error)
      : input_(input),
        tick_(tick),
        start_(start),
        timer_(std::make_unique<ManualTimer>(
            Options{
                .tick_duration = tick, .on_task_error = std::move(on_task_error), .trace_origins = start == kTraced},
            start)) {}
  virtual ~Alarms() = default;

  Input& input() { return input_; }
  ManualTimer& timer() { return *timer_; }
  bool ended() const { return ended_; }
  bool inside() const { return depth_ != 0; }
  /// Returns whether advance() now covers so many ticks that a new repetition would run for minutes.
  bool far() const { return far_; }
  std::chrono::nanoseconds tick() const { return tick_; }
  TimePoint now() const { return timer_->now(); }
  TimePoint after(std::chrono::nanoseconds delay) const { return fuzz::after(now(), delay); }

  std::chrono::nanoseconds any_delay() {
    using std::chrono::nanoseconds;
    switch (input_.below(8)) {
      case 0:
        return nanoseconds(input_.up_to(2) - 1);
      case 1:
        return input_.one_of({nanoseconds::max(), nanoseconds::min()});
      case 2:
        return input_.number<nanoseconds>();
      case 3:
        return tick_ * input_.up_to(65535);
      default:
        return tick_ * input_.up_to(255) / 4;
    }
  }
  TimePoint any_deadline() {
    switch (input_.below(6)) {
      case 0:
        return TimePoint(std::chrono::nanoseconds(input_.number<std::int64_t>()));
      case 1:
        return input_.one_of({TimePoint::max(), TimePoint::min(), now(), start_});
      case 2:
        return by_due_.empty() ? now() : by_due_.begin()->second.deadline;
      default:
        return after(any_delay());
    }
  }

  /// The deadline with a leeway: the end of the tick whose number ends in the most zero bits.
  TimePoint roundest(TimePoint deadline, std::chrono::nanoseconds leeway) const {
    const TimePoint latest = std::min(fuzz::after(deadline, leeway), TimePoint::max() - std::chrono::nanoseconds(1));
    if (leeway.count() <= 0 || latest <= start_) return deadline;
    const auto each = static_cast<std::uint64_t>(tick_.count());
    const std::uint64_t since = deadline <= start_ ? 0 : distance(start_, deadline);
    const std::uint64_t first = std::max<std::uint64_t>(since / each + (since % each != 0 ? 1 : 0), 1) - 1;
    const std::uint64_t end = std::min(distance(start_, latest) / each, (std::uint64_t{1} << 63) - 2);  // see time_of()
    if (first >= end) return deadline;
    std::uint64_t roundest = end - 1;
    for (int bit = 0; bit < 64 && (end - 1) >> bit << bit >= first; ++bit) roundest = (end - 1) >> bit << bit;
    return later_by(start_, (roundest + 1) * each);
  }

  void expect(Id& id, TimePoint deadline, bool any_time = false) {
    require(!id, "one alarm at a time");
    const std::uint64_t due = deadline == TimePoint::max() ? kNever : due_of(deadline);
    const bool may_join = left_over_ && deadline <= now();  // it may be among the remaining alarms
    id = by_due_.emplace(due, Alarm{due, deadline, any_time || may_join});
  }
  void forget(Id& id) {
    if (!id) return;
    by_due_.erase(*id);
    id.reset();
  }
  void move(Id& id, TimePoint deadline) {
    forget(id);
    expect(id, deadline, deadline <= now());
  }

  /// The alarm has come. Makes the calls from inside, which may remove `id`.
  void fired(Id& id) {
    require(!ended_, "nothing runs after the end");
    require(id.has_value(), "only what is expected runs, and once");
    const Alarm alarm = (*id)->second;
    require(alarm.deadline <= now(), "never early");
    if (!alarm.any_time) check_turn(alarm);
    forget(id);
    operate_inside();
  }

  /// Some operations from inside a task of the timer.
  void operate_inside() {
    if (ended_ || depth_ == kDeepest) return;
    ++depth_;
    for (auto operations = input_.below(4); operations > 0; --operations) operate();
    --depth_;
  }

  /// Time passes, or the clock jumps.
  void advance() {
    if (inside()) return;
    const auto first = by_due_.begin();
    TimePoint to =
        later_by(now(), static_cast<std::uint64_t>(tick_.count() / 4 * input_.up_to(255) + tick_.count() % 4));
    if (input_.one_in(3) && first != by_due_.end() && first->first != kNever)
      to = std::max(now(), time_of(first->first));
    to = std::min(to, after(std::chrono::nanoseconds::max()));
    to = std::min(to, TimePoint::max() - std::chrono::nanoseconds(1));  // no clock comes to the end of time
    far_ = to > after(kFar * tick_);
    began_ = now();
    passing_ = !input_.one_in(3);
    const std::size_t most = passing_ || input_.one_in(2) ? kAll : input_.below(4);
    turning_ = true;
    ++depth_;
    const std::size_t ran = passing_ ? timer_->advance(to - now()) : timer_->advance_to(to, most);
    --depth_;
    turning_ = far_ = false;
    require(ran <= most, "no more than max_tasks run");
    if (timer_ == nullptr) return;
    require(now() == to, "the time is what was asked for");
    left_over_ = ran == most;
    for (auto& [due, alarm] : by_due_) {
      // Scheduled from inside: it may join the remaining alarms.
      if (left_over_ && alarm.deadline <= now() && time_of(due) > now()) alarm.any_time = true;
    }
    for (const auto& [due, alarm] : by_due_) {
      if (left_over_ || time_of(due) > now() || time_of(due) == TimePoint::max()) break;
      require(false, "nothing is left over");
    }
  }

  void check_wakeup() {
    // Inside a task, and inside a cancelled() that another next_wakeup() calls, the wake-up is now.
    const bool within = inside();
    ++depth_;
    std::optional<TimePoint> wakeup = timer_->next_wakeup();
    // A cancelled() that this call makes may cancel another task, whose cancelled() the next call makes, and so on. The
    // input ends such a chain soon.
    constexpr int kLongestChain = 16;
    for (int calls = 0; calls != kLongestChain && !within && wakeup == now(); ++calls) wakeup = timer_->next_wakeup();
    --depth_;
    const auto first = by_due_.begin();
    if (first == by_due_.end() || time_of(first->first) == TimePoint::max()) return;
    require(wakeup.has_value(), "next_wakeup() is there if something is due");
    require(*wakeup <= std::max(time_of(first->first), now()), "next_wakeup() is not too late");
    // A cancelled() that this call makes may move an alarm to the past.
    const bool at_once =
        std::any_of(by_due_.begin(), by_due_.end(), [](const auto& each) { return each.second.any_time; });
    require(within || left_over_ || at_once || *wakeup > now(), "next_wakeup() is in the future");
  }
  void check_pending() const {
    require_equal(timer_->pending_timeouts(), static_cast<std::int64_t>(by_due_.size()), "each alarm has one timeout");
    if (start_ != kTraced) return;
    std::int64_t found = 0;
    for (const PendingOrigin& origin : timer_->pending_by_origin()) found += origin.count;
    require_equal(found, static_cast<std::int64_t>(by_due_.size()), "each timeout has one origin");
  }

  /// From now on nothing may run. Returns how many alarms were pending.
  std::size_t end() {
    ended_ = true;
    return by_due_.size();
  }
  void destroy_timer() { timer_.reset(); }

 protected:
  /// Calls something of the family.
  virtual void operate() = 0;

 private:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr int kDeepest = 4;
  static constexpr std::int64_t kFar = 10'000;  // ticks
  static constexpr TimePoint kTraced{};         // a timer that starts then traces origins

  void check_turn(const Alarm& alarm) const {
    require(turning_, "runs when time passes");
    const bool jumped = !passing_ || now() == began_;  // then the remaining alarms run
    if (alarm.any_turn && jumped) return;
    if (passing_) {
      require_equal(count(now()), count(std::max(time_of(alarm.due), began_)),
                    "at the point of the grid where it is due");
    } else {
      require(time_of(alarm.due) <= now(), "not before it is due");
    }
    for (const auto& [due, other] : by_due_) {
      if (due >= alarm.due) break;
      require(other.any_time, "in the order of ticks");
    }
  }

  static std::int64_t count(TimePoint time) { return time.time_since_epoch().count(); }

  /// The first point of the grid that is at or after the deadline, and after now.
  std::uint64_t due_of(TimePoint deadline) const {
    const auto each = static_cast<std::uint64_t>(tick_.count());
    const std::uint64_t next = distance(start_, now()) / each + 1;
    if (deadline <= start_) return next;
    const std::uint64_t since = distance(start_, deadline);
    return std::max(next, since / each + (since % each != 0 ? 1 : 0));
  }
  TimePoint time_of(std::uint64_t point) const {
    if (point >= (std::uint64_t{1} << 63) - 1) return TimePoint::max();  // the last tick never ends
    const auto each = static_cast<std::uint64_t>(tick_.count());
    return point > distance(start_, TimePoint::max()) / each ? TimePoint::max() : later_by(start_, point * each);
  }

  Input& input_;
  const std::chrono::nanoseconds tick_;
  const TimePoint start_;
  Due by_due_;
  int depth_ = 0;
  bool turning_ = false;
  bool far_ = false;
  bool passing_ = false;
  bool left_over_ = false;
  bool ended_ = false;
  TimePoint began_;
  std::unique_ptr<ManualTimer> timer_;
};

}  // namespace hwt::fuzz
