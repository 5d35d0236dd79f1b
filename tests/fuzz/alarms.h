#pragma once

#include <map>
#include <string_view>
#include <thread>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "tests/fuzz/input.h"
#include "tests/support/timer_model.h"

namespace hwt::fuzz {

/// A ManualTimer, and the alarms that are expected on it. See TimerModel.
class Alarms {
 public:
  using Id = test::TimerModel::Id;

  Alarms(Input& input, std::chrono::nanoseconds tick, TimePoint start,
         std::function<void(std::exception_ptr, const Timeout&)> on_task_error)
      : input_(input),
        tick_(tick),
        start_(start),
        model_(tick, start, [](const char* promise) { require(false, promise); }),
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
        return model_.size() == 0 ? now() : model_.by_due().begin()->second.deadline;
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

  TimePoint roundest(TimePoint deadline, std::chrono::nanoseconds leeway) const {
    return model_.roundest(deadline, leeway);
  }

  void expect(Id& id, TimePoint deadline, bool any_time = false) { model_.expect(id, deadline, now(), any_time); }
  /// For a new timeout. Only the timeouts of one thread have an order.
  void expect_in_order(Id& id, TimePoint deadline) {
    if (std::this_thread::get_id() != home_) return expect(id, deadline);
    model_.expect_in_order(id, deadline, now());
  }
  void forget(Id& id) { model_.forget(id); }
  void move(Id& id, TimePoint deadline) { model_.move(id, deadline, now()); }
  void expect_or_move(Id& id, TimePoint deadline) { id ? move(id, deadline) : expect(id, deadline); }

  /// The alarm has come. Makes the calls from inside, which may remove `id`.
  void fired(Id& id) {
    require(!ended_, "nothing runs after the end");
    model_.fired(id, now());
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
    const auto& alarms = model_.by_due();
    if (input_.one_in(3) && !alarms.empty() && alarms.begin()->second.deadline != TimePoint::max())
      to = std::max(now(), model_.first());
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
    model_.check_wakeup(wakeup, now());
    if (model_.first() == TimePoint::max()) return;
    // A cancelled() that this call makes may move an alarm to the past.
    const auto& alarms = model_.by_due();
    const bool at_once =
        std::any_of(alarms.begin(), alarms.end(), [](const auto& each) { return each.second.any_time; });
    require(within || model_.left_over() || at_once || *wakeup > now(), "next_wakeup() is in the future");
  }
  /// `expected`: how many are pending of each origin of kOrigin.
  void check_pending(std::map<unsigned, std::int64_t> expected) const {
    require_equal(timer_->pending_timeouts(), static_cast<std::int64_t>(model_.size()), "each alarm has one timeout");
    if (start_ != kTraced) return;
    std::int64_t found = 0;
    for (const PendingOrigin& each : timer_->pending_by_origin()) {
      found += each.count;
      if (std::string_view(each.origin.text()) != kOrigin) continue;
      require_equal(each.count, std::exchange(expected[each.origin.line()], 0), "each origin counts its timeouts");
    }
    require_equal(found, static_cast<std::int64_t>(model_.size()), "each timeout has one origin");
    for (const auto& [line, count] : expected) require_equal(0, count, "each origin that has timeouts is there");
  }

  /// From now on nothing may run. Returns how many alarms were pending.
  std::size_t end() {
    ended_ = true;
    return model_.size();
  }
  void destroy_timer() { timer_.reset(); }

  static constexpr const char* kOrigin = "fuzz";

 protected:
  /// Calls something of the family.
  virtual void operate() = 0;

 private:
  void expect_no_turn() {
    if (tasks_ == 0 || ended_ || std::this_thread::get_id() != home_) return;
    for (const auto& turn : {+[](ManualTimer& timer) { timer.advance(std::chrono::nanoseconds(1)); },
                             +[](ManualTimer& timer) { timer.stop(); }}) {
      try {
        turn(*timer_);
        require(false, "no time passes inside a task, and no task stops the timer");
      } catch (const IllegalState&) {
      }
    }
  }

  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  static constexpr int kDeepest = 4;
  static constexpr std::int64_t kFar = 10'000;  // ticks
  static constexpr TimePoint kTraced{};         // a timer that starts then traces origins

  void turn(TimePoint to, bool passing, std::size_t most) {
    to = std::min(to, after(std::chrono::nanoseconds::max()));
    to = std::min(to, TimePoint::max() - std::chrono::nanoseconds(1));  // no clock comes to the end of time
    far_ = to > after(kFar * tick_);
    model_.begin_turn(now(), passing);
    ++depth_;
    const std::size_t ran = passing ? timer_->advance(to - now()) : timer_->advance_to(to, most);
    --depth_;
    far_ = false;
    require(ran <= most, "no more than max_tasks run");
    if (timer_ == nullptr) return;
    require(now() == to, "the time is what was asked for");
    model_.end_turn(now(), ran == most);
  }

  Input& input_;
  const std::chrono::nanoseconds tick_;
  const TimePoint start_;
  const std::thread::id home_ = std::this_thread::get_id();
  test::TimerModel model_;
  int depth_ = 0;
  int tasks_ = 0;  // that run, one inside the other
  bool far_ = false;
  bool ended_ = false;
  std::unique_ptr<ManualTimer> timer_;
};

}  // namespace hwt::fuzz
