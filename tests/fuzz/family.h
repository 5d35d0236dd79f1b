#pragma once

#include <coroutine>
#include <stop_token>

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/stop_after.h"
#include "tests/fuzz/alarms.h"
#include "tests/fuzz/counted.h"

// Each type of the family on one ManualTimer, beside a model that is too simple to be wrong. operate() calls one
// function of the type. Tasks of the timer report to Alarms that they run, and make more calls from inside.

namespace hwt::fuzz {

/// Timeouts with each kind of task, by their handles or ids.
class Timeouts {
 public:
  explicit Timeouts(Alarms& alarms) : alarms_(alarms), slots_(alarms.input().patient() ? 256 : 12) {}

  void operate() {
    const std::size_t index = alarms_.input().below(slots_.size());
    Slot& slot = slots_[index];
    switch (alarms_.input().below(8)) {
      case 0:
        cancel(slot, false);
        break;
      case 1:
        if (index != running_) cancel(slot, true);  // it would wait for itself
        break;
      case 2:
      case 3: {
        const Alarms::Asked asked = alarms_.any_when();
        const bool moved =
            slot.id ? alarms_.timer().reschedule(slot.id, asked.when) : slot.timeout.reschedule(asked.when);
        require(moved == slot.alarm.has_value(), "reschedule() tells whether it was pending");
        if (!moved) break;
        alarms_.move(slot.alarm, asked.deadline);
        check(slot, asked.deadline);
        break;
      }
      default:
        if (!slot.alarm) schedule(index);
        break;
    }
  }

  /// Schedules a timeout in a slot that has none. `given`: the deadline; otherwise the input chooses.
  void schedule(std::size_t index, std::optional<TimePoint> given = {}) {
    Input& input = alarms_.input();
    Slot& slot = slots_[index];
    slot.kind = input.one_of({Kind::Plain, Kind::WithHandle, Kind::Boxed, Kind::Throwing, Kind::Told, Kind::Shared});
    const std::uint64_t form = input.below(4);
    const auto [when, deadline] = given ? Alarms::Asked{*given, *given} : alarms_.any_when();
    const Origin origin(Alarms::kOrigin, static_cast<unsigned>(index) + 1);
    slot.id = {};
    const auto make = [&, when = when](auto task) -> Timeout {
      ManualTimer& timer = alarms_.timer();
      if (form < 2) {
        return form == 1 ? timer.try_new_timeout(task, when, origin) : timer.new_timeout(task, when, origin);
      }
      if constexpr (!std::is_same_v<decltype(task), std::shared_ptr<TimerTask>>) {
        slot.id = form == 3 ? timer.try_add(task, when, origin) : timer.add(task, when, origin);
        return {};
      }
      return timer.new_timeout(task, when, origin);
    };
    switch (slot.kind) {
      case Kind::Plain:
        slot.timeout = make([this, index] { on_run(index); });
        break;
      case Kind::WithHandle:
        slot.timeout = make([this, index](Timeout& self) {
          const Slot& mine_too = slots_[index];
          require((mine_too.id || self == mine_too.timeout) && self.is_expired(), "a task gets its own handle");
          const Timeout mine = std::move(self);
          on_run(index);
        });
        break;
      case Kind::Boxed:
        slot.timeout = make([this, index, held = held_, big = std::array<std::size_t, 12>{index}] {
          require(big[0] == index, "what is captured stays");
          on_run(index);
        });
        break;
      case Kind::Throwing:
        slot.timeout = make([this, index] {
          on_run(index);
          ++thrown_;
          throw Thrown();
        });
        break;
      case Kind::Told:
        slot.timeout = make(ToldTask{this, index});
        break;
      case Kind::Shared:
        ++shared_;
        slot.timeout = make(std::shared_ptr<TimerTask>(std::make_shared<SharedTask>(*this, index)));
        break;
    }
    require(slot.timeout || slot.id, "nothing is refused");
    alarms_.expect_in_order(slot.alarm, deadline);
    check(slot, deadline);
  }

  /// Called when the timer was destroyed. Each TimerTask got either run() or cancelled(), and each pending task of
  /// Kind::Told got will_not_run().
  void check_end() const {
    require_equal(shared_runs_ + shared_cancellations_, shared_, "a TimerTask is run or cancelled");
    require_equal(told_, to_be_told_, "will_not_run() is called once for each pending task");
  }
  /// The timer is destroyed with pending timeouts.
  void end() {
    for (const Slot& slot : slots_) to_be_told_ += slot.alarm && slot.kind == Kind::Told ? 1 : 0;
  }
  /// The next task that runs calls this, once.
  void at_next(std::function<void()> call) { at_next_ = std::move(call); }
  std::int64_t thrown() const { return thrown_; }
  /// When no task runs.
  void check_held() const {
    const auto pending = std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) {
      return slot.alarm.has_value() && slot.kind == Kind::Boxed;
    });
    require_equal(held_.use_count() - 1, pending, "a callable is destroyed when it can never run again");
  }
  /// The number of those that are pending, by the lines of their origins.
  std::map<unsigned, std::int64_t> pending_by_line() const {
    std::map<unsigned, std::int64_t> pending;
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].alarm) pending[static_cast<unsigned>(i) + 1] = 1;
    return pending;
  }

  struct Thrown {};

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  enum class Kind : std::uint8_t { Plain, WithHandle, Boxed, Throwing, Told, Shared };

  struct Slot {
    Timeout timeout;
    TimeoutId id;  // or the handle is not null
    Alarms::Id alarm;
    Kind kind{};
  };

  struct SharedTask : TimerTask {
    SharedTask(Timeouts& owner, std::size_t index) : owner(owner), index(index) {}
    void run(Timeout&) override {
      ++owner.shared_runs_;
      owner.on_run(index);
    }
    void cancelled(Timeout& timeout) override {
      ++owner.shared_cancellations_;
      require(timeout.is_cancelled(), "what is cancelled says so");
      owner.alarms_.operate_inside();
    }
    Timeouts& owner;
    std::size_t index;
  };
  struct ToldTask {
    Timeouts* owner;
    std::size_t index;
    void operator()() const { owner->on_run(index); }
    void will_not_run(detail::NotRun why) const {
      require(why == detail::NotRun::Stopped && owner->alarms_.ended(), "told at the timer's end only");
      ++owner->told_;
    }
  };

  void check(const Slot& slot, TimePoint deadline) const {
    const Timeout timeout = slot.id ? alarms_.timer().find(slot.id) : slot.timeout;
    require(timeout.deadline() == deadline, "the deadline is what was asked for");
    require(!timeout.is_cancelled() && !timeout.is_expired(), "pending");
    require(timeout.timer() == &alarms_.timer(), "it knows its timer");
  }

  void cancel(Slot& slot, bool waits) {
    ManualTimer& timer = alarms_.timer();
    bool done = false;
    if (slot.id) {
      done = (waits ? timer.cancel_and_wait(slot.id) : timer.cancel(slot.id)) == CancelResult::Cancelled;
    } else {
      done = waits ? slot.timeout.cancel_and_wait() : slot.timeout.cancel();
    }
    require(done == slot.alarm.has_value(), "a cancel tells whether it was pending");
    if (slot.alarm && !slot.id) require(slot.timeout.is_cancelled(), "what is cancelled says so");
    alarms_.forget(slot.alarm);
  }

  void on_run(std::size_t index) {
    const std::size_t around = std::exchange(running_, index);
    alarms_.fired(slots_[index].alarm);
    running_ = around;
    if (at_next_) std::exchange(at_next_, nullptr)();
  }

  Alarms& alarms_;
  std::vector<Slot> slots_;
  std::size_t running_ = kNone;
  std::function<void()> at_next_;
  std::int64_t thrown_ = 0, shared_ = 0, shared_runs_ = 0, shared_cancellations_ = 0, told_ = 0;
  std::int64_t to_be_told_ = 0;
  std::shared_ptr<int> held_ = std::make_shared<int>(0);  // by the boxed tasks
};

/// A KeyedTimer beside an array.
class Keyed {
 public:
  explicit Keyed(Alarms& alarms) : alarms_(alarms) {}

  void operate() {
    if (keyed_ == nullptr) make();
    const std::size_t key = alarms_.input().below(kKeys);
    Value& value = values_[key];
    const bool by_deadline = alarms_.input().one_in(2);
    switch (alarms_.input().below(8)) {
      case 0: {
        const std::optional<int> removed = keyed_->remove(key);
        require(removed.has_value() == value.alarm.has_value(), "remove() returns what is there");
        require(!removed || *removed == value.number, "and its value");
        alarms_.forget(value.alarm);
        break;
      }
      case 1: {
        const auto remaining = keyed_->remaining(key);
        require(remaining.has_value() == value.alarm.has_value() && keyed_->contains(key) == remaining.has_value(),
                "contains() and remaining() tell what is there");
        if (remaining && value.deadline != TimePoint::max()) {
          const TimePoint farthest = later_by(alarms_.now(), std::numeric_limits<std::int64_t>::max());
          require(later_by(alarms_.now(), static_cast<std::uint64_t>(remaining->count())) ==
                      std::clamp(value.deadline, alarms_.now(), farthest),
                  "remaining() leads to the deadline");
        }
        break;
      }
      case 2: {
        if (!alarms_.input().one_in(8)) break;
        require(keyed_->drain().size() == there(), "drain() returns all");
        for (Value& each : values_) alarms_.forget(each.alarm);
        break;
      }
      case 3:
      case 4: {
        const auto [when, deadline] = alarms_.any_when(by_deadline);
        const KeyedResult result = keyed_->move(key, when);
        require(result == (value.alarm ? KeyedResult::Moved : KeyedResult::NotFound), "move() tells what it did");
        if (value.alarm) alarms_.move(value.alarm, value.deadline = deadline);
        break;
      }
      default: {
        const auto [when, deadline] = alarms_.any_when(by_deadline);
        ++number_;
        const KeyedResult result = keyed_->set(key, number_, when);
        require(result == (value.alarm ? KeyedResult::Replaced : KeyedResult::Added), "set() tells what it did");
        value.number = number_;
        value.deadline = deadline;
        alarms_.expect_or_move(value.alarm, deadline);
        break;
      }
    }
    require(keyed_->size() == there(), "size() counts what is there");
  }

  /// The timer has been stopped.
  void check_stopped() {
    if (keyed_ != nullptr)
      require(keyed_->set(0, 0, std::chrono::hours(1)) == KeyedResult::Stopped, "set() is refused");
  }
  void destroy() {
    if (keyed_ != nullptr && !alarms_.ended() && number_ % 2 == 0) {
      require(keyed_->stop().size() == there(), "stop() returns all");
    }
    keyed_.reset();
    for (Value& value : values_) alarms_.forget(value.alarm);
  }

 private:
  static constexpr std::size_t kKeys = 6;
  struct Value {
    Alarms::Id alarm;
    TimePoint deadline;
    int number = 0;
  };

  std::size_t there() const { return Alarms::pending_of(values_); }

  void make() {
    keyed_ =
        std::make_unique<KeyedTimer<std::size_t, int>>(alarms_.timer(), [this](const std::size_t& key, int& number) {
          require(number == values_[key].number, "on_expire gets the value");
          alarms_.fired(values_[key].alarm);
        });
  }

  Alarms& alarms_;
  std::array<Value, kKeys> values_;
  int number_ = 0;
  std::unique_ptr<KeyedTimer<std::size_t, int>> keyed_;
};

/// A RepeatedTimer beside its state: when it is due, if at all.
class Repeated {
 public:
  explicit Repeated(Alarms& alarms) : alarms_(alarms) {}

  void operate() {
    if (alarms_.far()) return;
    if (timer_ == nullptr) make();
    Input& input = alarms_.input();
    const bool idle = !triggering_;
    const auto call = input.below(8);
    const nanoseconds timeout = alarms_.tick() / 4 * input.up_to(255) + nanoseconds(3);
    if (destroyed_ && call == 7 && idle) return destroy();  // the next one is made anew
    // A trigger on another thread might wait for a task of this one.
    const bool waits = call == 6 && idle && alarms_.inside();
    const bool elsewhere = input.patient() && input.one_in(16) && !waits;
    const auto run = [elsewhere](const auto& calls) {
      if (!elsewhere) return calls();
      std::thread(calls).join();
    };
    switch (call) {
      case 0:
      case 1:
        run([&] { timer_->start(); });
        if (!destroyed_ && std::exchange(stopped_, false) && idle) arm();
        break;
      case 2:
        run([&] { timer_->stop(); });
        if (destroyed_) break;
        stopped_ = true;
        alarms_.forget(alarm_);
        break;
      case 3:
        run([&] { timer_->restart(); });
        if (destroyed_) break;
        stopped_ = false;
        if (idle) arm();
        break;
      case 4:
        run([&] { timer_->reset(); });
        if (idle) arm();
        break;
      case 5:
        run([&] { timer_->reset(timeout); });
        if (destroyed_) break;
        timeout_ = timeout;
        if (idle) arm();
        break;
      case 6: {
        const bool expected = idle && running();
        triggers_now_ = expected;
        run([&] { require(timer_->run_once_now() == expected, "run_once_now() tells whether it did"); });
        require(!triggers_now_, "and does it at once");
        break;
      }
      default:
        if (!input.one_in(4)) break;
        run([&] { timer_->destroy(); });
        if (std::exchange(destroyed_, true)) break;
        alarms_.forget(alarm_);
        if (idle) ++expected_ends_;
        break;
    }
    check();
  }

  void check_stopped() const {
    if (timer_ != nullptr) require(!timer_->running(), "a RepeatedTimer ends with its timer");
  }
  void destroy() {
    if (timer_ == nullptr) return;
    timer_.reset();
    alarms_.forget(alarm_);
    require_equal(ends_, 1, "on_destroy runs exactly once");
  }

 private:
  using nanoseconds = std::chrono::nanoseconds;

  bool running() const { return !stopped_ && !destroyed_; }

  // The timer and the model use it, with the number of the call, so that a call too many or too few shows.
  static nanoseconds adjusted(nanoseconds timeout, int call) { return timeout + nanoseconds(call % 5 - 2); }

  void make() {
    stopped_ = true;
    destroyed_ = false;
    asked_ = expected_asked_ = ends_ = expected_ends_ = 0;
    timeout_ = alarms_.tick() * 2;
    timer_ = std::make_unique<RepeatedTimer>(
        "fuzz", timeout_, alarms_.timer(),
        RepeatedTimer::Hooks{.on_trigger = [this] { trigger(); },
                             .adjust_timeout = [this](nanoseconds timeout) { return adjusted(timeout, ++asked_); },
                             .on_destroy = [this] { ++ends_; }});
  }

  void arm() {
    if (!running()) return;
    const TimePoint deadline = alarms_.after(adjusted(timeout_, ++expected_asked_));
    alarms_.expect_or_move(alarm_, deadline);
  }

  void trigger() {
    require(!std::exchange(triggering_, true), "a trigger never overlaps another one");
    if (std::exchange(triggers_now_, false)) {
      alarms_.forget(alarm_);
      alarms_.operate_inside();
    } else {
      alarms_.fired(alarm_);
    }
    check();
    triggering_ = false;
    // The calls of the timer after this has returned.
    if (destroyed_) ++expected_ends_;
    arm();
  }

  void check() const {
    require(timer_->running() == running(), "running()");
    require(timer_->timeout() == timeout_, "timeout()");
    require_equal(asked_, expected_asked_, "adjust_timeout is asked once for each arming");
    require_equal(ends_, expected_ends_, "on_destroy runs when it should");
  }

  Alarms& alarms_;
  Alarms::Id alarm_;
  nanoseconds timeout_{};
  bool stopped_ = true, destroyed_ = false, triggering_ = false, triggers_now_ = false;
  int asked_ = 0, expected_asked_ = 0, ends_ = 0, expected_ends_ = 0;
  std::unique_ptr<RepeatedTimer> timer_;
};

/// A schedule beside its occurrences, counted one by one.
class Scheduled {
 public:
  explicit Scheduled(Alarms& alarms) : alarms_(alarms) {}

  void operate() {
    if (alarms_.far()) return;
    if (task_ == nullptr || (done_ && !running_)) {
      start();
    } else if (alarms_.input().one_in(4)) {
      require(task_->cancel() == !done_, "cancel() tells whether it ended the schedule");
      done_ = true;
      alarms_.forget(alarm_);
    }
    if (running_) return;
    require(task_->done() == done_ && task_->runs() == runs_, "done() and runs() tell");
    if (!done_ && deadline_ > alarms_.now()) require(task_->next() == deadline_, "next() tells when");
  }

  void check_stopped() const {
    if (task_ != nullptr) require(task_->done(), "a schedule ends with its timer");
  }
  void destroy() {
    if (task_ != nullptr) task_->cancel();
    task_.reset();
    alarms_.forget(alarm_);
  }

 private:
  using nanoseconds = std::chrono::nanoseconds;
  enum class Kind : std::uint8_t { Once, Delay, Rate, Sequence, Cycle, Calendar };

  nanoseconds any_gap() { return alarms_.tick() / 4 * alarms_.input().up_to(40) + alarms_.tick() / 4 + nanoseconds(1); }

  void start() {
    Input& input = alarms_.input();
    kind_ = input.one_of({Kind::Once, Kind::Delay, Kind::Rate, Kind::Sequence, Kind::Cycle, Kind::Calendar});
    catch_up_ = input.one_of({CatchUp::Skip, CatchUp::Once, CatchUp::Burst});
    limit_ = input.one_in(2) ? 1 + input.below(5) : ~std::uint64_t{0};
    jitter_ = input.one_in(4) ? any_gap() : nanoseconds(0);
    period_ = std::chrono::seconds(1 + input.up_to(99));
    std::vector<nanoseconds> gaps = {any_gap(), any_gap()};
    const nanoseconds initial = input.one_in(2) ? any_gap() : nanoseconds(0);
    Schedule schedule = Schedule::once(initial);
    counted_ = {alarms_.after(initial), {gaps[0]}, true};
    switch (kind_) {
      case Kind::Once:
        limit_ = 1;
        break;
      case Kind::Delay:
        schedule = Schedule::fixed_delay(initial, gaps[0]);
        break;
      case Kind::Rate:
        schedule = Schedule::fixed_rate(initial, gaps[0], catch_up_);
        break;
      case Kind::Sequence:
      case Kind::Cycle:
        schedule = kind_ == Kind::Cycle ? Schedule::cycle(gaps, catch_up_) : Schedule::sequence(gaps, catch_up_);
        counted_ = {alarms_.now(), gaps, kind_ == Kind::Cycle};
        counted_.step();
        break;
      case Kind::Calendar:
        schedule = Schedule::calendar(
            [this](WallTime after) { return next_period(after); }, CatchUp::Skip,
            [this] { return std::chrono::system_clock::time_point(alarms_.now().time_since_epoch()); });
        counted_.at = point(next_period(wall()));
        break;
    }
    if (jitter_ != nanoseconds(0))
      schedule = std::move(schedule).jitter(
          [this](nanoseconds wait) { return std::min(wait, nanoseconds::max() - jitter_) + jitter_; });
    done_ = false;
    runs_ = 0;
    task_ = hwt::schedule(alarms_.timer(), std::move(schedule).limit(limit_), [this] { on_run(); });
    expect(false);
  }

  /// The multiples of the period since 1970.
  WallTime next_period(WallTime after) const {
    const auto since = after.time_since_epoch();
    const auto past = (since % period_ + period_) % period_;
    return WallTime(since - past + period_);
  }
  /// Never, if the clock ends before.
  static TimePoint point(WallTime time) {
    const bool is_there =
        time.time_since_epoch() <= std::chrono::floor<std::chrono::seconds>(TimePoint::max().time_since_epoch());
    return is_there ? TimePoint(time.time_since_epoch()) : TimePoint::max();
  }
  WallTime wall() const { return WallTime(std::chrono::floor<std::chrono::seconds>(alarms_.now().time_since_epoch())); }

  void expect(bool overdue) {
    deadline_ = after(std::max(counted_.at, alarms_.now()), jitter_);
    alarms_.expect(alarm_, deadline_, overdue);
    (*alarm_)->second.any_turn = kind_ == Kind::Calendar;
  }

  void on_run() {
    running_ = true;
    ++runs_;
    alarms_.fired(alarm_);
    running_ = false;
    if (done_) return;
    const TimePoint now = alarms_.now();
    bool more = runs_ < limit_;
    if (kind_ == Kind::Delay) {
      counted_.at = after(now, counted_.gaps[0]);
    } else if (kind_ == Kind::Calendar) {
      const WallTime last(std::chrono::floor<std::chrono::seconds>(counted_.at.time_since_epoch()));
      counted_.at = point(next_period(std::max(last, wall())));
    } else {
      more = more && counted_.next(catch_up_, now, now);
    }
    done_ = !more;
    // An occurrence that has passed runs at once, or at the next tick if the burst has lasted too long.
    if (more) expect(counted_.at <= now);
  }

  Alarms& alarms_;
  Alarms::Id alarm_;
  Kind kind_{};
  CatchUp catch_up_{};
  Counted counted_;
  std::chrono::seconds period_{1};
  nanoseconds jitter_{};
  TimePoint deadline_;
  std::uint64_t limit_ = 0, runs_ = 0;
  bool done_ = true, running_ = false;
  std::shared_ptr<ScheduledTask> task_;
};

/// Coroutines that sleep, some times in a row.
class Sleepers {
 public:
  explicit Sleepers(Alarms& alarms) : alarms_(alarms) {}
  ~Sleepers() {
    for (Slot& slot : slots_) destroy(slot);
  }

  void operate() {
    Slot& slot = slots_[alarms_.input().below(slots_.size())];
    if (!slot.frame) {
      slot.stop = alarms_.input().one_in(3) ? std::stop_source(std::nostopstate) : std::stop_source();
      slot.frame = sleep(slot).frame;
    } else if (slot.frame.done()) {
      destroy(slot);
    } else if (alarms_.input().one_in(2)) {
      const bool sleeps = slot.alarm.has_value() && slot.stop.stop_possible();
      slot.stop.request_stop();
      require(!sleeps || !slot.alarm, "a stop request ends the sleep");
    } else if (slot.alarm) {
      destroy(slot);
    }
  }

  /// The timer has ended: it has resumed all.
  void check_end() const {
    for (const Slot& slot : slots_)
      require(!slot.alarm && (!slot.frame || slot.frame.done()), "no coroutine is left asleep");
  }

 private:
  struct Coroutine {
    struct promise_type {
      Coroutine get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
      std::suspend_never initial_suspend() const noexcept { return {}; }
      std::suspend_always final_suspend() const noexcept { return {}; }
      void return_void() const noexcept {}
      void unhandled_exception() const { require(false, "a sleep throws nothing"); }
    };
    std::coroutine_handle<> frame;
  };
  struct Slot {
    std::stop_source stop{std::nostopstate};
    std::coroutine_handle<> frame;
    Alarms::Id alarm;
  };

  Coroutine sleep(Slot& slot) {
    for (auto more = alarms_.input().below(4) + 1; more > 0; --more) {
      const auto delay = alarms_.any_delay();
      const bool by_deadline = alarms_.input().one_in(2);
      const TimePoint deadline = by_deadline ? alarms_.any_deadline() : alarms_.after(delay);
      const bool stopped = slot.stop.stop_requested();
      const bool sleeps = !stopped && deadline > alarms_.now();
      if (sleeps) alarms_.expect(slot.alarm, deadline);
      const Wake wake = by_deadline ? co_await sleep_until(alarms_.timer(), deadline, slot.stop.get_token())
                                    : co_await sleep_for(alarms_.timer(), delay, slot.stop.get_token());
      if (wake == Wake::Stopped) {
        require(slot.stop.stop_requested() || alarms_.ended(), "stopped by a request, or at the timer's end");
        alarms_.forget(slot.alarm);
        co_return;
      }
      require(!stopped, "a stop that was requested before ends the sleep");
      if (sleeps) alarms_.fired(slot.alarm);
    }
  }

  void destroy(Slot& slot) {
    if (slot.frame) std::exchange(slot.frame, nullptr).destroy();
    alarms_.forget(slot.alarm);
  }

  Alarms& alarms_;
  std::array<Slot, 3> slots_;
};

/// A StopAfter, with a parent or without.
class Limit {
 public:
  explicit Limit(Alarms& alarms) : alarms_(alarms) {}

  void operate() {
    if (limit_ == nullptr) return start();
    switch (alarms_.input().below(5)) {
      case 0:
        require(limit_->cancel() == !timed_out_, "cancel() tells whether the deadline has made the request");
        alarms_.forget(alarm_);
        break;
      case 1: {
        const auto delay = alarms_.any_delay();
        require(limit_->reschedule(delay) == alarm_.has_value(), "reschedule() tells whether it was pending");
        if (alarm_) alarms_.move(alarm_, alarms_.after(delay));
        break;
      }
      case 2:
        if (!parent_.stop_possible()) break;
        alarms_.forget(alarm_);
        parent_.request_stop();
        require(limit_->token().stop_requested(), "a parent's stop is passed on");
        break;
      case 3:
        destroy();
        return;
      default:
        break;
    }
    if (limit_ != nullptr) require(limit_->timed_out() == timed_out_, "timed_out() tells");
  }

  void destroy() {
    on_stop_.reset();
    limit_.reset();
    alarms_.forget(alarm_);
  }

 private:
  struct OnStop {
    Limit* owner;
    void operator()() const { owner->stop_requested(); }
  };

  void start() {
    if (stopping_) return;  // in the request of the one before, which is about to end
    timed_out_ = false;
    parent_ = alarms_.input().one_in(2) ? std::stop_source() : std::stop_source(std::nostopstate);
    const auto delay = alarms_.any_delay();
    limit_ = std::make_unique<StopAfter>(alarms_.timer(), delay, parent_.get_token());
    alarms_.expect(alarm_, alarms_.after(delay));
    on_stop_.emplace(limit_->token(), OnStop{this});
  }

  /// fired() may destroy the stop callback that is running.
  void stop_requested() {
    if (parent_.stop_requested()) return;
    require(limit_->timed_out(), "timed_out() is true before the callbacks run");
    timed_out_ = true;
    stopping_ = true;
    alarms_.fired(alarm_);
    stopping_ = false;
  }

  Alarms& alarms_;
  Alarms::Id alarm_;
  bool timed_out_ = false, stopping_ = false;
  std::stop_source parent_{std::nostopstate};
  std::unique_ptr<StopAfter> limit_;
  std::optional<std::stop_callback<OnStop>> on_stop_;
};

}  // namespace hwt::fuzz
