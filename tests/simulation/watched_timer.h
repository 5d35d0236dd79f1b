#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/manual_timer.h"
#include "tests/simulation/world.h"
#include "tests/support/timer_model.h"

namespace hwt::simulation {

using std::chrono::nanoseconds;
using test::TimePoint;

/// A ManualTimer, and a model of it that is asked about each call.
class WatchedTimer {
 public:
  /// A timeout by its handle, or by its id.
  struct Handle {
    Timeout timeout;
    TimeoutId id;
    std::size_t number = 0;

    explicit operator bool() const { return timeout || id; }
  };

  WatchedTimer(World& world, nanoseconds tick, TimePoint start, bool traces_origins)
      : world_(world),
        model_(tick, start, [this](const char* promise) { world_.expect(false, promise); }),
        traces_origins_(traces_origins),
        timer_(std::in_place,
               Options{.tick_duration = tick,
                       .on_task_error = [this](std::exception_ptr,
                                               const Timeout&) { world_.expect(false, "no task throws"); },
                       .trace_origins = traces_origins},
               start) {}

  /// For objects that use a Timer themselves, such as a KeyedTimer. The model does not know their timeouts, so their
  /// user checks them.
  Timer& timer() { return *timer_; }
  TimePoint now() const { return timer_ ? timer_->now() : end_; }
  /// stop() or destroy() has been called.
  bool over() const { return over_; }
  bool in_task() const { return in_task_; }

  /// Lives while the timer runs a task, also one that was not started here.
  class InTask {
   public:
    explicit InTask(WatchedTimer& watch) : watch_(watch) {
      watch_.world_.expect(!watch_.over_, "nothing runs after the end");
      watch_.world_.expect(!watch_.in_task_, "one task runs at a time");
      watch_.in_task_ = true;
    }
    ~InTask() { watch_.in_task_ = false; }
    InTask(const InTask&) = delete;
    InTask& operator=(const InTask&) = delete;

   private:
    WatchedTimer& watch_;
  };

  /// `f` has operator(), and will_not_run() for the end of the timer. Null when the timer has ended.
  template <class F>
  Handle start(const char* name, nanoseconds delay, F f) {
    world_.pause();
    const std::size_t number = entries_.size();
    entries_.push_back({name, {}});
    Handle handle;
    handle.number = number;
    if (timer_) {
      Task<F> task{this, number, std::move(f)};
      if (world_.one_in(2)) {
        handle.id = timer_->try_add(std::move(task), delay, Origin(name, 0));
      } else {
        handle.timeout = timer_->try_new_timeout(std::move(task), delay, Origin(name, 0));
      }
    }
    world_.trace(name, " #", number, handle ? " is to expire in " : " is refused, in ", delay.count(), " ns");
    world_.expect(static_cast<bool>(handle) != over_, "refused only when the timer has ended");
    if (handle) {
      model_.expect_in_order(entries_[number].alarm, now() + delay, now());
      world_.expect(found(handle).deadline() == now() + delay, "deadline() is what was asked for");
    }
    world_.pause();
    return handle;
  }

  bool cancel(Handle& handle) {
    if (!handle) return false;
    world_.pause();
    Entry& entry = entries_[handle.number];
    const bool done =
        handle.timeout ? handle.timeout.cancel() : timer_ && timer_->cancel(handle.id) == CancelResult::Cancelled;
    world_.trace("cancels ", entry.name, " #", handle.number, done ? "" : ", too late");
    world_.expect(done == (entry.alarm && !over_), "cancel() is true if, and only if, the timeout is pending");
    if (done) model_.forget(entry.alarm);
    world_.pause();
    return done;
  }

  bool reschedule(Handle& handle, nanoseconds delay) {
    if (!handle) return false;
    world_.pause();
    const bool done = found(handle).reschedule(delay);
    world_.trace("puts ", entries_[handle.number].name, " #", handle.number, " to ", delay.count(), " ns from now",
                 done ? "" : ", too late");
    TimerModel::Id& alarm = entries_[handle.number].alarm;
    world_.expect(done == (alarm && !over_), "reschedule() is true if the timeout is pending");
    if (done) model_.move(alarm, now() + delay, now());
    world_.pause();
    return done;
  }

  /// Time passes, tick by tick.
  void advance(nanoseconds by) {
    world_.trace("time passes: ", by.count(), " ns");
    const TimePoint to = now() + by;
    model_.begin_turn(now(), true);
    timer_->advance(by);
    finish_turn(to, false);
  }
  /// The clock jumps, and no more tasks run than that.
  void jump(nanoseconds by, std::size_t most) {
    world_.trace("time jumps: ", by.count(), " ns, at most ", most, " tasks");
    const TimePoint to = now() + by;
    model_.begin_turn(now(), false);
    const std::size_t ran = timer_->advance_to(to, most);
    world_.expect(ran <= most, "advance_to() runs no more tasks than it may");
    finish_turn(to, ran == most);
  }

  /// Inside a task.
  void expect_no_turn() {
    for (const auto& turn : {+[](ManualTimer& timer) { timer.advance(std::chrono::milliseconds(1)); },
                             +[](ManualTimer& timer) { timer.stop(); }}) {
      try {
        turn(*timer_);
        world_.expect(false, "no time passes inside a task, and no task stops the timer");
      } catch (const IllegalState&) {
      }
    }
  }

  /// Stops the timer. `pending`: the number of all its pending timeouts, also of those that were not started here.
  void stop(std::int64_t pending) {
    world_.trace("the timer stops");
    begin_end();
    const std::vector<Timeout> returned = timer_->stop();
    world_.expect(static_cast<std::int64_t>(returned.size()) == pending, "stop() returns all that is pending");
    expect_all_told();
    world_.expect(timer_->stop().empty(), "a second stop() returns nothing");
  }
  void destroy() {
    if (!timer_) return;
    world_.trace("the timer is destroyed");
    begin_end();
    end_ = timer_->now();
    timer_.reset();
    expect_all_told();
  }

  /// Those that were started here.
  std::int64_t pending() const { return over_ ? 0 : static_cast<std::int64_t>(model_.size()); }
  std::int64_t real_pending() const { return timer_ ? timer_->pending_timeouts() : 0; }

  /// The pending timeouts by the names that start() got, and so many others by the names of the library.
  void check_origins(std::int64_t others) const {
    if (!timer_ || !traces_origins_) return;
    std::map<std::string, std::int64_t> expected;
    if (!over_) {
      for (const Entry& entry : entries_) {
        if (entry.alarm) ++expected[entry.name];
      }
    }
    for (const PendingOrigin& found : timer_->pending_by_origin()) {
      const std::string name = found.origin.describe();
      if (name.starts_with("hwt::")) {
        others -= found.count;
        continue;
      }
      world_.expect(expected[name] == found.count, "pending_by_origin() counts what is pending");
      expected.erase(name);
    }
    world_.expect(expected.empty() && others == 0, "pending_by_origin() counts all that is pending");
  }

  /// The grid point at which a deadline that was set now is due.
  std::uint64_t due_of(TimePoint deadline) const { return model_.due_of(deadline, now()); }
  /// Nothing that is due at this grid point may be left. Not while some timeouts that a jump made due still wait.
  bool is_overdue(std::uint64_t due) const { return !model_.left_over() && model_.time_of(due) <= now(); }

  void check_wakeup(bool others_pending) {
    if (!timer_) return;
    const std::optional<TimePoint> wakeup = timer_->next_wakeup();
    if (in_task_) return world_.expect(wakeup == now(), "inside a task, next_wakeup() is now");
    if (model_.size() != 0 && !over_) return model_.check_wakeup(wakeup, now());
    world_.expect(!wakeup || others_pending, "next_wakeup() is none when nothing is pending");
  }

 private:
  friend class WatchedScope;

  using TimerModel = test::TimerModel;

  struct Entry {
    const char* name;
    TimerModel::Id alarm;  // while it is pending
  };

  template <class F>
  struct Task {
    WatchedTimer* watch;
    std::size_t number;
    F f;

    void operator()() {
      const InTask in_task(*watch);
      watch->begin_task(number);
      f();
    }
    void will_not_run(detail::NotRun why) {
      if (why == detail::NotRun::Refused) return;  // start() knows
      watch->told(number);
      f.will_not_run();
    }
  };

  Timeout found(const Handle& handle) { return handle.timeout || !timer_ ? handle.timeout : timer_->find(handle.id); }

  void begin_task(std::size_t number) {
    world_.trace(entries_[number].name, " #", number, " expires");
    model_.fired(entries_[number].alarm, now());
  }
  void told(std::size_t number) {
    world_.trace(entries_[number].name, " #", number, " is told that it will not run");
    world_.expect(over_, "a task is told at the end alone");
    TimerModel::Id& alarm = entries_[number].alarm;
    world_.expect(alarm.has_value(), "a task is told once, and not after it has run or was cancelled");
    model_.forget(alarm);
  }

  void finish_turn(TimePoint to, bool left_over) {
    if (!timer_ || over_) return;
    world_.expect(now() == to, "time is what it was set to");
    model_.end_turn(now(), left_over);
  }

  void begin_end() { over_ = true; }  // first: the callbacks ask for it
  void expect_all_told() { world_.expect(model_.size() == 0, "each timeout that is pending at the end is told"); }

  World& world_;
  TimerModel model_;
  const bool traces_origins_;
  std::vector<Entry> entries_;
  bool in_task_ = false;
  bool over_ = false;
  TimePoint end_{};
  std::optional<ManualTimer> timer_;
};

}  // namespace hwt::simulation
