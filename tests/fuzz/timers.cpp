// ManualTimer with all of the family on it against one multimap: timeouts with every kind of task, a KeyedTimer, a
// RepeatedTimer, schedules, sleeping coroutines, a StopAfter and a TimeoutScope. They call each other from inside their
// tasks.

#include "hashed_wheel_timer/errors.h"
#include "tests/fuzz/family.h"
#include "tests/fuzz/scoped.h"
#include "tests/fuzz/targets.h"
#include "tests/support/ages.h"

namespace hwt::fuzz {

using std::chrono::nanoseconds;

namespace {

class Walk final : public Alarms {
 public:
  explicit Walk(Input& input)
      : Alarms(input, nanoseconds(input.one_of<std::int64_t>({1'000'000, 1, 7, 10'000'001, 3'600'000'000'000})),
               TimePoint(nanoseconds(input.one_of<std::int64_t>({0, 5'000'000'123, -4'000'000'000'000'000'000}))),
               [this](std::exception_ptr, const Timeout&) { ++errors_; }) {}

  void run() {
    if (input().patient() && input().one_in(2)) grow_old();
    while (!input().ended()) {
      input().one_in(4) ? advance() : operate();
      check_pending(timeouts_.pending_by_line());
      timeouts_.check_held();
      if (input().one_in(8)) check_wakeup();
    }
    if (end_ == 1) stop();
    if (end_ == 2) destroy_in_task();
    end_all();
    check_end();
  }

 private:
  void operate() override {
    switch (is_old_ ? 7 : input().below(8)) {
      case 0:
        return keyed_.operate();
      case 1:
        return repeated_.operate();
      case 2:
        return scheduled_[input().below(2)].operate();
      case 3:
        return sleepers_.operate();
      case 4:
        return limit_.operate();
      case 5:
        end_ = input().below(3);
        advance();  // refuses inside a task
        return check_wakeup();
      case 6:
        return scoped_.operate();
      default:
        return timeouts_.operate();
    }
  }

  /// The timer gets an age just before a carry of its arithmetic. Timeouts around the carry wait from the start on.
  /// There is no family: with it, time would pass one by one over many occurrences.
  void grow_old() {
    is_old_ = true;
    constexpr int kDigitBits = 6;
    const auto each = static_cast<std::uint64_t>(tick().count());
    const TimePoint start = now();
    const auto last = static_cast<std::int64_t>(std::min(distance(start, TimePoint::max()), kFarthest) / each) - 1;
    const std::vector<std::int64_t> carries = test::carries(kDigitBits, last, tick());
    const std::int64_t carry = carries[input().below(carries.size())];
    const auto at = [&](std::int64_t point) {
      return later_by(start, static_cast<std::uint64_t>(std::clamp<std::int64_t>(point, 0, last)) * each);
    };
    std::size_t slot = 0;
    for (const std::int64_t after : {2, 1, 0, -1, 300, 70'000})
      timeouts_.schedule(slot++, after < last - carry ? at(carry + after) : TimePoint::max());
    jump_to(at(carry - input().one_of<std::int64_t>({2, 100, 20'000})));
  }

  void stop() {
    timeouts_.end();
    const std::size_t pending = end();
    require(timer().stop().size() == pending, "stop() returns all that is pending");
    require_equal(timer().pending_timeouts(), 0, "after it nothing is");
    require(timer().stop().empty() && !timer().try_new_timeout([] {}, nanoseconds(1)), "a stopped timer refuses");
    keyed_.check_stopped();
    repeated_.check_stopped();
    for (const Scheduled& each : scheduled_) each.check_stopped();
    scoped_.check_stopped();
    sleepers_.check_end();
  }

  /// Ends all inside the next task of timeouts_, if this advance() runs one.
  void destroy_in_task() {
    timeouts_.at_next([this] { end_all(); });
    advance();
  }

  void end_family() {
    keyed_.destroy();
    repeated_.destroy();
    for (Scheduled& each : scheduled_) each.destroy();
    limit_.destroy();
    scoped_.destroy();
  }

  void end_all() {
    end_family();
    if (!ended()) {
      timeouts_.end();
      end();
    }
    destroy_timer();
  }
  void check_end() const {
    sleepers_.check_end();
    timeouts_.check_end();
    require_equal(errors_, timeouts_.thrown(), "each exception is reported once");
  }

  static constexpr std::uint64_t kFarthest = std::numeric_limits<std::int64_t>::max();

  std::int64_t errors_ = 0;
  std::uint64_t end_ = 0;  // how it ends
  bool is_old_ = false;
  Timeouts timeouts_{*this};
  Keyed keyed_{*this};
  Repeated repeated_{*this};
  Scheduled scheduled_[2] = {Scheduled(*this), Scheduled(*this)};
  Sleepers sleepers_{*this};
  Limit limit_{*this};
  Scoped scoped_{*this};
};

}  // namespace

void timers(Input& input) { Walk(input).run(); }

}  // namespace hwt::fuzz
