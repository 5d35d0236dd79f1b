// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/recurring/timetable.h"

#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/detail/saturating.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/report/refuse.h"

namespace hwt::internal {

using std::chrono::floor;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::system_clock;
using time_point = Occurrences::time_point;

time_point saturating_sum(time_point a, nanoseconds b) {
  return b < nanoseconds::zero() ? a + b : Deadline::in(b, a).time();
}

Occurrences::Occurrences(const detail::SchedulePlan& plan)
    : initial_(plan.initial),
      gaps_(plan.gaps),
      next_gap_(plan.repeat ? plan.first_gap % plan.gaps.size() : plan.first_gap),
      repeat_(plan.repeat),
      from_end_(plan.from_end),
      catch_up_(plan.catch_up) {
  time_point end{};
  for (const nanoseconds gap : gaps_) end = saturating_sum(end, gap);
  cycle_ = end.time_since_epoch();
}

bool Occurrences::next(time_point started, time_point ended) {
  if (from_end_) {
    at_ = saturating_sum(ended, gaps_.front());
    return true;
  }
  switch (catch_up_) {
    case CatchUp::Burst:
      return step();
    case CatchUp::Once:
      if (!step_past(started)) return false;  // the run stands for all occurrences up to its start
      step_to_last(ended);
      return true;
    case CatchUp::Skip:
      break;
  }
  return step_past(ended);
}

/// Returns whether the awaited occurrence is not after `passed`. An occurrence at time_point::max() never passes.
bool Occurrences::has_passed(time_point passed) const { return at_ <= passed && at_ != (time_point::max)(); }

std::optional<time_point> Occurrences::following() const {
  if (next_gap_ == gaps_.size()) return {};
  return saturating_sum(at_, gaps_[next_gap_]);
}

bool Occurrences::step() {
  const std::optional<time_point> following_one = following();
  if (!following_one) return false;
  at_ = *following_one;
  ++next_gap_;
  if (repeat_ && next_gap_ == gaps_.size()) next_gap_ = 0;
  return true;
}

/// Skips the whole cycles between the awaited occurrence and `passed`. After a long stall, a loop over short gaps would
/// take too long. Without repetition there are no cycles, and a cycle that does not fit into nanoseconds cannot pass.
void Occurrences::skip_cycles(time_point passed) {
  if (!repeat_ || at_ >= passed || cycle_ == (nanoseconds::max)()) return;
  const auto past_the_last = detail::nanoseconds_between(at_, passed) % static_cast<std::uint64_t>(cycle_.count());
  at_ = passed - nanoseconds(static_cast<std::int64_t>(past_the_last));
}

/// Advances to the first occurrence after `passed`, by at least one. Returns false if there is none.
bool Occurrences::step_past(time_point passed) {
  if (!step()) return false;
  skip_cycles(passed);
  while (has_passed(passed)) {
    if (!step()) return false;
  }
  return true;
}

/// Advances to the last occurrence that is not after `passed`. Stays at an occurrence that is after it.
void Occurrences::step_to_last(time_point passed) {
  skip_cycles(passed);
  while (has_passed(passed)) {
    const std::optional<time_point> following_one = following();
    if (!following_one || *following_one > passed) return;
    step();
  }
}

Timetable::~Timetable() = default;

namespace {

nanoseconds adjusted(const Jitter& jitter, nanoseconds wait) {
  wait = std::max(wait, nanoseconds::zero());
  return jitter ? std::max(jitter(wait), nanoseconds::zero()) : wait;
}

class PlanTimetable final : public Timetable {
 public:
  explicit PlanTimetable(const detail::SchedulePlan& plan)
      : occurrences_(plan), jitter_(plan.jitter), burst_(plan.catch_up == CatchUp::Burst) {}

  std::optional<Wait> first(time_point now) override {
    occurrences_.start(now);
    const nanoseconds wait = detail::time_until(occurrences_.at(), now);
    return wait_of(now, wait, adjusted(jitter_, wait));
  }

  bool is_due(std::exception_ptr&) override { return true; }
  std::optional<Wait> wait_on(time_point, std::exception_ptr&) override { return {}; }

  std::optional<Wait> after_run(time_point started, time_point ended, std::exception_ptr& errors) override {
    if (!occurrences_.next(started, ended)) return {};
    const nanoseconds wait = detail::time_until(occurrences_.at(), ended);
    Wait next = wait_of(ended, wait, wait);
    try {
      next = wait_of(ended, wait, adjusted(jitter_, wait));
    } catch (...) {
      add_current_exception(errors);
    }
    next.at_once = burst_ && occurrences_.at() <= ended && next.delay == nanoseconds::zero();
    return next;
  }

 private:
  /// `wait`: the time from `now` until the occurrence, zero if it is overdue. `adjusted_wait`: the same time with
  /// jitter. Without jitter an overdue occurrence is due in the past, not at `now`.
  Wait wait_of(time_point now, nanoseconds wait, nanoseconds adjusted_wait) const {
    return {adjusted_wait == wait ? occurrences_.at() : saturating_sum(now, adjusted_wait), adjusted_wait};
  }

  Occurrences occurrences_;
  Jitter jitter_;
  const bool burst_;
};

/// Splits each wait into pieces of kPiece and reads the wall clock after each piece. So it notices that the wall clock
/// was set, or that steady_clock stood still while the machine was suspended.
class CalendarTimetable final : public Timetable {
 public:
  explicit CalendarTimetable(const detail::SchedulePlan& plan)
      : rule_(plan.rule), catch_up_(plan.catch_up), jitter_(plan.jitter), wall_clock_(plan.wall_clock) {}

  std::optional<Wait> first(time_point now) override {
    wall_ = present();
    choose(floor<seconds>(*wall_));
    return wait_from(now);
  }

  bool is_due(std::exception_ptr& errors) override {
    look_at_the_clock(errors);
    // Not due while the clock or the rule fails, or if there is no occurrence.
    if (!wall_ || !known_ || !occurrence_ || remaining() > nanoseconds::zero()) return false;
    begun_ = floor<seconds>(*wall_);
    return true;
  }

  std::optional<Wait> wait_on(time_point now, std::exception_ptr& errors) override {
    // The clock was set back, to before the time from which the jitter of an overdue occurrence counts.
    if (wall_ && *wall_ < overdue_since_) {
      known_ = false;
      occurrence_.reset();
    }
    // Asks the rule again if it failed. If the clock was set back, there may be occurrences before the chosen one.
    if (wall_ && (!known_ || floor<seconds>(*wall_) < after_)) choose(errors);
    return wait_from(now);
  }

  std::optional<Wait> after_run(time_point, time_point ended, std::exception_ptr& errors) override {
    // Its jitter ends with the run. If the clock was set back, the occurrence may come again, with another jitter.
    last_run_ = std::exchange(occurrence_, std::nullopt);
    known_ = false;
    look_at_the_clock(errors);
    ended_ = wall_ ? floor<seconds>(*wall_) : begun_;
    if (wall_) choose(errors);
    std::optional<Wait> next = wait_from(ended);
    if (next && next->due) next->at_once = catch_up_ == CatchUp::Burst && next->delay == nanoseconds::zero();
    return next;
  }

 private:
  static constexpr seconds kPiece{60};
  // If the clock is set back by no more than this, nothing runs until it is as late again.
  static constexpr std::chrono::hours kHeldBack{1};

  system_clock::time_point present() const { return wall_clock_ ? wall_clock_() : system_clock::now(); }

  void look_at_the_clock(std::exception_ptr& errors) {
    wall_.reset();
    try {
      wall_ = present();
    } catch (...) {
      add_current_exception(errors);
    }
  }

  /// Returns the time from `wall` until `time`, at most 200 years either way, because nanoseconds do not reach as far
  /// as time points of whole seconds.
  static nanoseconds distance(system_clock::time_point wall, WallTime time) {
    constexpr seconds kFar = std::chrono::years(200);
    const WallTime whole = floor<seconds>(wall);
    if (time >= whole + kFar) return kFar;
    if (time <= whole - kFar) return -kFar;
    // Not wall - whole: in the first second of the clock's range, `whole` is before that range.
    nanoseconds fraction = wall.time_since_epoch() % seconds(1);
    if (fraction < nanoseconds::zero()) fraction += seconds(1);
    return (time - whole) - fraction;
  }

  /// Returns the time until the run is due; zero or less if it is due.
  nanoseconds remaining() const {
    const nanoseconds wait = distance(*wall_, *occurrence_);
    if (wait > nanoseconds::zero() && shift_ > (nanoseconds::max)() - wait) return (nanoseconds::max)();
    if (wait < nanoseconds::zero() && shift_ < nanoseconds::zero()) return wait;  // their sum may be out of range
    return wait + shift_;
  }

  void choose(std::exception_ptr& errors) {
    try {
      const WallTime second = floor<seconds>(*wall_);
      // The clock was set back by more, so the last run must not hold back the next ones. Takes the earlier of the two
      // times, because jitter may have brought the run forward to before its occurrence.
      if (last_run_ && std::min(*last_run_, begun_) > second + kHeldBack) last_run_.reset();
      // A rule that threw is asked again from the same time, so that no occurrence is lost.
      const WallTime since = known_ ? second : std::min(after_, second);
      choose(last_run_ ? std::max(*last_run_, caught_up(second)) : since);
    } catch (...) {
      add_current_exception(errors);
    }
  }

  /// Returns the time up to which occurrences do not run any more after the last run. `now` is the present second.
  WallTime caught_up(WallTime now) const {
    switch (catch_up_) {
      case CatchUp::Burst:
        return *last_run_;
      case CatchUp::Once:
        return std::min(begun_, now);
      case CatchUp::Skip:
        break;
    }
    // Not `now`: after a rule or clock that threw, this call comes later. An occurrence since the end of the run was
    // missed only for that reason, so it still runs.
    return std::min(ended_, now);
  }

  /// Chooses the first occurrence after `after`, and its jitter.
  void choose(WallTime after) {
    known_ = false;
    after_ = after;
    const std::optional<WallTime> before = std::exchange(occurrence_, std::nullopt);
    const std::optional<WallTime> found = rule_(after);
    if (found && *found <= after) {
      refuse("Schedule: rule", "returned " + std::to_string(found->time_since_epoch().count()) + " s since 1970",
             "more than " + std::to_string(after.time_since_epoch().count()) + " s");
    }
    known_ = true;
    occurrence_ = found;
    if (!found || found == before) return;  // an awaited occurrence keeps its jitter
    shift_ = nanoseconds::zero();
    overdue_since_ = (system_clock::time_point::min)();
    const nanoseconds until = distance(*wall_, *found);
    const nanoseconds wait = std::max(until, nanoseconds::zero());
    shift_ = adjusted(jitter_, wait) - wait;
    // Jitter delays an overdue occurrence from now on, not from its own time. So adds how long it is overdue.
    if (until < nanoseconds::zero() && shift_ > nanoseconds::zero()) {
      shift_ -= std::max(until, shift_ - (nanoseconds::max)());
      overdue_since_ = *wall_;
    }
  }

  std::optional<Wait> wait_from(time_point now) const {
    if (!wall_ || !known_) return Wait{std::nullopt, kPiece};
    if (!occurrence_) return {};
    const nanoseconds wait = std::max(remaining(), nanoseconds::zero());
    return Wait{saturating_sum(now, wait), std::min<nanoseconds>(wait, kPiece)};
  }

  calendar::Rule rule_;
  const CatchUp catch_up_;
  Jitter jitter_;
  std::function<system_clock::time_point()> wall_clock_;
  std::optional<system_clock::time_point> wall_;  // the latest reading; empty: the clock threw
  std::optional<WallTime> last_run_;              // the occurrence that ran last, not the time at which it ran
  std::optional<WallTime> occurrence_;            // the awaited occurrence: the first after after_
  WallTime after_;
  WallTime begun_;       // the time of the latest run
  WallTime ended_;       // the time at which it ended; begun_ if the clock threw then
  nanoseconds shift_{};  // what jitter adds to the wait for occurrence_
  // If shift_ is for an overdue occurrence, the time of the wall clock from which it counts.
  system_clock::time_point overdue_since_ = (system_clock::time_point::min)();
  bool known_ = false;  // occurrence_ is up to date: neither the rule nor, after a run, the clock threw
};

}  // namespace

void add_current_exception(std::exception_ptr& all) noexcept {
  const std::exception_ptr error = caught_exception("a schedule");
  if (!all) {
    all = error;
    return;
  }
  try {
    const std::string text = with_text_of(error, [](const char* what) { return std::string(what); });
    try {
      std::rethrow_exception(all);
    } catch (...) {
      std::throw_with_nested(std::runtime_error(text));
    }
  } catch (...) {
    all = std::current_exception();
  }
}

std::unique_ptr<Timetable> make_timetable(const detail::SchedulePlan& plan) {
  if (plan.rule) return std::make_unique<CalendarTimetable>(plan);
  return std::make_unique<PlanTimetable>(plan);
}

}  // namespace hwt::internal
