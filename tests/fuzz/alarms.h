#pragma once

#include <map>
#include <string_view>
#include <thread>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/fuzz/input.h"

namespace hwt::fuzz {

/// A ManualTimer beside its model: the alarms that are expected on it, in a multimap by the points of the timer's grid.
/// The owner of a timeout expects an alarm, and reports when it has come, was moved or was cancelled.
class Alarms {
 public:
  struct Alarm {
    std::uint64_t due = 0;  // the number of a point of the grid
    TimePoint deadline;
    std::uint64_t order = 0;  // rises with each expect_in_order(); 0: it may run anywhere among those of its tick
    bool any_time = false;  // its deadline has passed: it may run in the tick that is processed now, or in the next one
    bool any_turn = false;  // a calendar also wakes up before it is due; after a jump, such a wake-up may run it
  };
  /// An expected alarm, or none.
  using Id = std::optional<std::multimap<std::uint64_t, Alarm>::iterator>;

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

  /// A time for a call: a deadline, or a delay from now on.
  struct Asked {
    When when;
    TimePoint deadline;
  };
  Asked any_when(bool by_deadline) {
    const auto delay = any_delay();
    if (!by_deadline) return {delay, after(delay)};
    const TimePoint deadline = any_deadline();
    return {deadline, deadline};
  }
  Asked any_when() { return any_when(input_.one_in(2)); }

  /// The deadline with a leeway: of the ticks within it, the end of the one whose number ends in the most zero bits.
  TimePoint roundest(TimePoint deadline, std::chrono::nanoseconds leeway) const {
    if (leeway.count() <= 0) return deadline;
    const TimePoint latest = std::min(later_by(deadline, static_cast<std::uint64_t>(leeway.count())),
                                      TimePoint::max() - std::chrono::nanoseconds(1));
    if (latest <= start_) return deadline;
    const std::uint64_t first = std::max<std::uint64_t>(points_until(deadline), 1) - 1;
    const std::uint64_t end = std::min(distance(start_, latest) / each_, kLastPoint - 1);
    if (first >= end) return deadline;
    std::uint64_t roundest = end - 1;
    for (int bit = 0; bit < 64 && (end - 1) >> bit << bit >= first; ++bit) roundest = (end - 1) >> bit << bit;
    return later_by(start_, (roundest + 1) * each_);
  }

  void expect(Id& id, TimePoint deadline, bool any_time = false) { add(id, deadline, 0, any_time); }
  /// For a new timeout that the owner itself has scheduled. Only the timeouts of one thread have an order.
  void expect_in_order(Id& id, TimePoint deadline) {
    add(id, deadline, std::this_thread::get_id() == home_ ? ++last_order_ : 0, false);
  }
  /// How many of these have an alarm that is expected.
  template <class Slots>
  static std::size_t pending_of(const Slots& slots) {
    const auto is_pending = [](const auto& slot) { return slot.alarm.has_value(); };
    return static_cast<std::size_t>(std::count_if(slots.begin(), slots.end(), is_pending));
  }
  void forget(Id& id) {
    if (id) by_due_.erase(*id);
    id.reset();
  }
  void move(Id& id, TimePoint deadline) {
    forget(id);
    add(id, deadline, 0, deadline <= now());
  }
  void expect_or_move(Id& id, TimePoint deadline) { id ? move(id, deadline) : expect(id, deadline); }

  /// The alarm has come. Makes the calls from inside, which may remove `id`.
  void fired(Id& id) {
    require(!ended_, "nothing runs after the end");
    require(id.has_value(), "only what is expected runs, and once");
    const Alarm& alarm = (*id)->second;
    require(alarm.deadline <= now(), "never early");
    if (!alarm.any_time) check_turn(alarm);
    forget(id);
    ++tasks_;
    operate_inside();
    --tasks_;
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
    if (inside()) return expect_no_turn();
    TimePoint to =
        later_by(now(), static_cast<std::uint64_t>(tick_.count() / 4 * input_.up_to(255) + tick_.count() % 4));
    if (input_.one_in(3) && !by_due_.empty() && by_due_.begin()->second.deadline != TimePoint::max())
      to = std::max(now(), first());
    const bool passing = !input_.one_in(3);
    turn(to, passing, passing || input_.one_in(2) ? kAll : input_.below(4));
  }
  void jump_to(TimePoint to) { turn(to, false, kAll); }

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
    if (first() == TimePoint::max()) return;
    require(wakeup.has_value(), "next_wakeup() is there if something is due");
    require(*wakeup <= std::max(first(), now()), "next_wakeup() is not too late");
    // A cancelled() that this call makes may move an alarm to the past.
    const bool at_once =
        std::any_of(by_due_.begin(), by_due_.end(), [](const auto& each) { return each.second.any_time; });
    require(within || left_over_ || at_once || *wakeup > now(), "next_wakeup() is in the future");
  }
  /// `expected`: how many are pending of each origin of kOrigin.
  void check_pending(std::map<unsigned, std::int64_t> expected) const {
    require_equal(timer_->pending_timeouts(), static_cast<std::int64_t>(by_due_.size()), "each alarm has one timeout");
    if (start_ != kTraced) return;
    std::int64_t found = 0;
    for (const PendingOrigin& each : timer_->pending_by_origin()) {
      found += each.count;
      if (std::string_view(each.origin.text()) != kOrigin) continue;
      require_equal(each.count, std::exchange(expected[each.origin.line()], 0), "each origin counts its timeouts");
    }
    require_equal(found, static_cast<std::int64_t>(by_due_.size()), "each timeout has one origin");
    for (const auto& [line, count] : expected) require_equal(0, count, "each origin that has timeouts is there");
  }

  /// From now on nothing may run. Returns how many alarms were pending.
  std::size_t end() {
    ended_ = true;
    return by_due_.size();
  }
  void destroy_timer() { timer_.reset(); }

  static constexpr const char* kOrigin = "fuzz";

 protected:
  /// Calls something of the family.
  virtual void operate() = 0;

 private:
  void expect_no_turn() {
    if (tasks_ == 0 || ended_ || std::this_thread::get_id() != home_) return;
    require_throws<IllegalState>([&] { timer_->advance(std::chrono::nanoseconds(1)); }, "no time passes inside a task");
    require_throws<IllegalState>([&] { timer_->stop(); }, "no task stops its timer");
  }

  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  static constexpr int kDeepest = 4;
  static constexpr std::int64_t kFar = 10'000;                               // ticks
  static constexpr TimePoint kTraced{};                                      // a timer that starts then traces origins
  static constexpr std::uint64_t kLastPoint = (std::uint64_t{1} << 63) - 1;  // the last tick never ends

  std::uint64_t points_until(TimePoint time) const {
    const std::uint64_t since = time <= start_ ? 0 : distance(start_, time);
    return since / each_ + (since % each_ != 0 ? 1 : 0);
  }
  TimePoint time_of(std::uint64_t point) const {
    const std::uint64_t most = std::min(distance(start_, TimePoint::max()) / each_, kLastPoint - 1);
    return point > most ? TimePoint::max() : later_by(start_, point * each_);
  }
  /// When the first alarm is due. TimePoint::max(): never.
  TimePoint first() const { return by_due_.empty() ? TimePoint::max() : time_of(by_due_.begin()->first); }

  /// The alarm is due at the first point of the grid that is at or after the deadline, and after now.
  void add(Id& id, TimePoint deadline, std::uint64_t order, bool any_time) {
    require(!id, "one alarm at a time");
    const std::uint64_t due = deadline == TimePoint::max()
                                  ? std::numeric_limits<std::uint64_t>::max()
                                  : std::max(distance(start_, now()) / each_ + 1, points_until(deadline));
    const bool may_join = left_over_ && deadline <= now();  // it may be among the remaining alarms
    id = by_due_.emplace(due, Alarm{due, deadline, order, any_time || may_join, false});
  }

  void check_turn(const Alarm& alarm) const {
    require(turning_, "runs when time passes");
    const bool jumped = !passing_ || now() == began_;  // at the beginning of a turn, overdue alarms run as after a jump
    if (alarm.any_turn && jumped) return;
    if (passing_) {
      require(now() == std::max(time_of(alarm.due), began_), "runs at the point of the grid where it is due");
    } else {
      require(time_of(alarm.due) <= now(), "not before it is due");
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

  /// `passing`: time passes tick by tick. Otherwise the clock jumps.
  void turn(TimePoint to, bool passing, std::size_t most) {
    to = std::min(to, later_by(now(), std::numeric_limits<std::int64_t>::max()));
    to = std::min(to, TimePoint::max() - std::chrono::nanoseconds(1));  // no clock comes to the end of time
    far_ = to > after(kFar * tick_);
    turning_ = true;
    began_ = now();
    passing_ = passing;
    ++depth_;
    const std::size_t ran = passing ? timer_->advance(to - now()) : timer_->advance_to(to, most);
    --depth_;
    turning_ = far_ = false;
    require(ran <= most, "no more than max_tasks run");
    if (timer_ == nullptr) return;
    require(now() == to, "the time is what was asked for");
    left_over_ = ran == most;
    for (auto& [due, alarm] : by_due_) {
      // A task of this turn has scheduled it, and it may join the remaining alarms.
      if (left_over_ && alarm.deadline <= now() && time_of(due) > now()) alarm.any_time = true;
    }
    require(left_over_ || first() > now() || first() == TimePoint::max(), "nothing is left over");
  }

  Input& input_;
  const std::chrono::nanoseconds tick_;
  const std::uint64_t each_ = static_cast<std::uint64_t>(tick_.count());
  const TimePoint start_;
  const std::thread::id home_ = std::this_thread::get_id();
  std::multimap<std::uint64_t, Alarm> by_due_;
  std::uint64_t last_order_ = 0;
  bool turning_ = false, passing_ = false;
  bool left_over_ = false;  // a turn has ended before it had run all that was due
  TimePoint began_;         // the latest turn
  int depth_ = 0;
  int tasks_ = 0;  // that run, one inside the other
  bool far_ = false, ended_ = false;
  std::unique_ptr<ManualTimer> timer_;
};

}  // namespace hwt::fuzz
