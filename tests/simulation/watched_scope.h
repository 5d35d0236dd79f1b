#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/simulation/watched_timer.h"
#include "tests/simulation/world.h"

namespace hwt::simulation {

/// A TimeoutScope on a WatchedTimer, which knows its timeouts too.
class WatchedScope {
 public:
  struct Member {
    TimeoutId id;
    std::size_t number = 0;
  };

  WatchedScope(World& world, WatchedTimer& watch) : world_(world), watch_(watch), scope_(watch.timer()) {}
  /// May be called inside a task of the scope. The model forgets all pending members, so one that still runs breaks a
  /// promise.
  ~WatchedScope() {
    for (const std::size_t number : numbers_) forget_if_pending(number);
  }
  WatchedScope(const WatchedScope&) = delete;
  WatchedScope& operator=(const WatchedScope&) = delete;

  /// As WatchedTimer::start(), but without pauses, in which another step might destroy the scope. Returns no member if
  /// the timer has ended.
  template <class F>
  Member add(const char* name, Deadline deadline, Leeway leeway, F f) {
    const std::size_t number = watch_.entries_.size();
    watch_.entries_.push_back({name, {}});
    Member member;
    try {
      member = {scope_.add(WatchedTimer::Task<F>{&watch_, number, std::move(f)}, deadline, {leeway, Origin(name, 0)}),
                number};
    } catch (const IllegalState&) {
    }
    world_.trace(name, " #", number, member.id ? " is to expire with its scope" : " is refused", ", with a leeway of ",
                 leeway.duration().count(), " ns");
    world_.expect(static_cast<bool>(member.id) != watch_.over_, "refused only when the timer has ended");
    if (!member.id) return member;
    numbers_.push_back(number);
    const TimePoint rounded = watch_.model_.roundest(deadline, leeway.duration());
    watch_.model_.expect_in_order(watch_.entries_[number].alarm, rounded, watch_.now());
    world_.expect(watch_.timer().find(member.id).deadline() == rounded, "a leeway chooses the roundest tick");
    return member;
  }

  void cancel(const Member& member) {
    if (!member.id) return;
    const bool done = scope_.cancel(member.id) == CancelResult::Cancelled;
    world_.expect(done == is_pending(member.number), "a scope cancels a timeout that is pending, and no other one");
    if (done) watch_.model_.forget(watch_.entries_[member.number].alarm);
  }

  void cancel_all() {
    const std::size_t cancelled = scope_.cancel_all();
    world_.trace("a scope cancels ", cancelled);
    world_.expect(cancelled == pending(), "cancel_all() cancels each timeout of the scope that is pending");
    for (const std::size_t number : numbers_) forget_if_pending(number);
  }

  /// When no task runs.
  void check() const { world_.expect(scope_.size() == pending(), "size() is the number of those that are pending"); }

 private:
  bool is_pending(std::size_t number) const { return watch_.entries_[number].alarm && !watch_.over_; }
  std::size_t pending() const {
    return static_cast<std::size_t>(
        std::count_if(numbers_.begin(), numbers_.end(), [this](std::size_t number) { return is_pending(number); }));
  }
  void forget_if_pending(std::size_t number) {
    if (is_pending(number)) watch_.model_.forget(watch_.entries_[number].alarm);
  }

  World& world_;
  WatchedTimer& watch_;
  std::vector<std::size_t> numbers_;  // of all members so far
  TimeoutScope scope_;                // the last member, so that it is destroyed first
};

}  // namespace hwt::simulation
