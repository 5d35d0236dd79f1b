#pragma once

#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/fuzz/alarms.h"

namespace hwt::fuzz {

/// A TimeoutScope beside an array, whose timeouts may have a leeway. It ends now and then, also inside its own tasks.
class Scoped {
 public:
  explicit Scoped(Alarms& alarms) : alarms_(alarms) {}

  void operate() {
    if (scope_ == nullptr) scope_ = std::make_unique<TimeoutScope>(alarms_.timer());
    Slot& slot = slots_[alarms_.input().below(kSlots)];
    switch (alarms_.input().below(12)) {
      case 0:
      case 1:
        require((scope_->cancel(slot.id) == CancelResult::Cancelled) == slot.alarm.has_value(),
                "a scope cancels what is pending");
        return alarms_.forget(slot.alarm);
      case 2:
        require(scope_->cancel_all() == pending(), "cancel_all() cancels all that is pending");
        return forget_all();
      case 3:
        return destroy();
      case 4:
        return require(scope_->size() == pending() + running_, "size() counts what is pending, and the running task");
      case 5:
      case 6:
        return move(slot);
      default:
        if (!slot.alarm) add(slot);
    }
  }

  void destroy() {
    scope_.reset();
    running_ = 0;
    forget_all();
  }

  void check_stopped() {
    if (scope_ == nullptr) return;
    require(scope_->size() == 0 && scope_->cancel_all() == 0, "nothing is pending after stop()");
    require_throws<IllegalState>([&] { scope_->add([] {}, std::chrono::nanoseconds(1)); }, "a stopped timer refuses");
  }

 private:
  static constexpr std::size_t kSlots = 8;

  struct Slot {
    TimeoutId id;
    Alarms::Id alarm;
  };

  std::chrono::nanoseconds any_leeway() {
    return alarms_.input().one_in(2) ? std::chrono::nanoseconds(0) : alarms_.any_delay();
  }

  void add(Slot& slot) {
    const auto [when, deadline] = alarms_.any_when();
    const auto leeway = any_leeway();
    slot.id = scope_->add([this, &slot] { on_run(slot); }, when, Leeway(leeway));
    alarms_.expect(slot.alarm, alarms_.roundest(deadline, leeway));
    check(slot, deadline, leeway);
  }

  void move(Slot& slot) {
    const auto [when, deadline] = alarms_.any_when();
    const auto leeway = any_leeway();
    const bool moved = alarms_.timer().reschedule(slot.id, when, Leeway(leeway));
    require(moved == slot.alarm.has_value(), "reschedule() tells whether it was pending");
    if (!moved) return;
    alarms_.move(slot.alarm, alarms_.roundest(deadline, leeway));
    check(slot, deadline, leeway);
  }

  void check(const Slot& slot, TimePoint deadline, std::chrono::nanoseconds leeway) {
    require(alarms_.timer().find(slot.id).deadline() == alarms_.roundest(deadline, leeway),
            "the deadline is the roundest tick within the leeway");
  }

  void on_run(Slot& slot) {
    running_ = 1;
    alarms_.fired(slot.alarm);
    running_ = 0;
  }

  std::size_t pending() const { return Alarms::pending_of(slots_); }
  void forget_all() {
    for (Slot& slot : slots_) alarms_.forget(slot.alarm);
  }

  Alarms& alarms_;
  std::array<Slot, kSlots> slots_;
  std::size_t running_ = 0;  // tasks of this scope
  std::unique_ptr<TimeoutScope> scope_;
};

}  // namespace hwt::fuzz
