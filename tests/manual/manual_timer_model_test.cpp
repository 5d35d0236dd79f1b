// ManualTimer against a multimap: random schedules and moves by delay and by deadline, in the past, equal, far and for
// ever. Some come from inside tasks. There are cancellations, a clock that passes and one that jumps. The timer is new,
// or just before a carry.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/ages.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

class Model {
 public:
  Model(std::uint64_t seed, nanoseconds tick, TimePoint start)
      : random_(seed), tick_(tick), start_(start), timer_(tick, start) {}

  void step() {
    const std::uint64_t dice = below(10);
    if (dice < 3) {
      advance(dice == 0);
    } else {
      operate();
    }
    ASSERT_EQ(timer_.pending_timeouts(), static_cast<std::int64_t>(by_due_.size()));
    if (below(4) == 0) check_wakeup();
  }
  /// Lets the clock jump until `before` ticks before `carry`. Timeouts around the carry wait from the start on.
  void grow_old(std::int64_t carry, std::int64_t before) {
    for (const std::int64_t after : {2, 1, 0, -1, 300, 70'000}) {
      schedule(after < latest() - carry ? start_ + (carry + after) * tick_ : TimePoint::max());
    }
    timer_.advance_to(start_ + std::max<std::int64_t>(carry - before, 0) * tick_);
    ASSERT_TRUE(timer_.pending_timeouts() == 6 || carry <= before);
  }
  /// Advances to next_wakeup() each time, as an event loop does, until the next time is far away. Each task then runs
  /// at its grid point.
  void sleep_until_wakeups() {
    const TimePoint far = std::min(after(10'000'000 * tick_), start_ + latest() * tick_);
    passing_ = true;
    while (!::testing::Test::HasFailure()) {
      check_wakeup();
      const auto wakeup = timer_.next_wakeup();
      if (!wakeup || *wakeup > far) break;
      timer_.advance_to(*wakeup);
      ASSERT_EQ(timer_.now(), *wakeup);
      ASSERT_EQ(timer_.pending_timeouts(), static_cast<std::int64_t>(by_due_.size()));
    }
  }
  /// The latest tick that ends before the clock does.
  std::int64_t latest() const { return (TimePoint::max() - start_) / tick_ - 1; }

  std::int64_t ran() const { return ran_; }
  std::int64_t inside() const { return inside_; }

 private:
  struct Entry {
    Timeout timeout;
    std::int64_t due = 0;  // the number of a grid point
    TimePoint deadline;
    bool pending = true;
    bool moved = false;        // then it has no place in an order
    bool may_run_now = false;  // a task moved it to now or before, so it may still run in the tick of that task
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  /// Returns the number of the first grid point after now.
  std::int64_t next_point() const { return (timer_.now() - start_) / tick_ + 1; }
  /// Returns the number of the first grid point at or after the deadline, and after now.
  std::int64_t due_of(TimePoint deadline) const {
    if (deadline <= start_) return next_point();
    const nanoseconds since = deadline - start_;
    return std::max(next_point(), since / tick_ + (since % tick_ != 0ns ? 1 : 0));
  }
  TimePoint after(nanoseconds delay) const {
    return delay < TimePoint::max() - timer_.now() ? timer_.now() + std::max(delay, 0ns) : TimePoint::max();
  }

  nanoseconds random_delay() {
    switch (below(6)) {
      case 0:
        return nanoseconds(static_cast<std::int64_t>(below(3)) - 1);
      case 1:
        return below(2) == 0 ? nanoseconds::max() : nanoseconds::min();
      case 2:
        return tick_ * static_cast<std::int64_t>(below(below(2) == 0 ? 100'000U : 5'000'000U));
      default:
        return tick_ * static_cast<std::int64_t>(below(600)) / 4;
    }
  }
  TimePoint random_deadline() {
    switch (below(6)) {
      case 0:
        return timer_.now() - tick_ * static_cast<std::int64_t>(below(600)) / 4;
      case 1:
        return entries_.empty() ? timer_.now() : entries_[below(entries_.size())].deadline;
      case 2:
        return below(2) == 0 ? TimePoint::max() : TimePoint::min();
      case 3:
        return TimePoint(nanoseconds(static_cast<std::int64_t>(random_())));
      default:
        return after(random_delay());
    }
  }

  void expect(std::size_t index, TimePoint deadline) {
    Entry& entry = entries_[index];
    entry.deadline = deadline;
    entry.due = due_of(deadline);
    by_due_.emplace(entry.due, index);
    ASSERT_EQ(entry.timeout.deadline(), deadline);
  }
  void forget(std::size_t index) {
    const auto [first, end] = by_due_.equal_range(entries_[index].due);
    by_due_.erase(std::find_if(first, end, [&](const auto& entry) { return entry.second == index; }));
  }

  void schedule(TimePoint deadline) {
    const std::size_t index = entries_.size();
    entries_.emplace_back();
    entries_[index].timeout = timer_.new_timeout([this, index] { on_run(index); }, deadline);
    expect(index, deadline);
  }

  void operate() {
    const bool by_deadline = below(2) == 0;
    const nanoseconds delay = random_delay();
    const TimePoint deadline = by_deadline ? random_deadline() : after(delay);
    if (entries_.empty() || below(3) != 0) {
      if (by_deadline) return schedule(deadline);
      const std::size_t index = entries_.size();
      entries_.emplace_back();
      entries_[index].timeout = timer_.new_timeout([this, index] { on_run(index); }, delay);
      return expect(index, deadline);
    }
    // One of the latest, so that many are still there.
    const std::size_t index = entries_.size() - 1 - below(std::min<std::size_t>(entries_.size(), 300));
    Entry& entry = entries_[index];
    if (below(3) == 0) {
      ASSERT_EQ(entry.timeout.cancel(), entry.pending);
      if (entry.pending) forget(index);
      entry.pending = false;
      return;
    }
    ASSERT_EQ(entry.timeout.reschedule(by_deadline ? When(deadline) : When(delay)), entry.pending);
    if (!entry.pending) return;
    forget(index);
    entry.moved = true;
    entry.may_run_now = in_task_ && deadline <= timer_.now();
    expect(index, deadline);
  }

  void on_run(std::size_t index) {
    ++ran_;
    const Entry ran = entries_[index];
    ASSERT_TRUE(ran.pending);
    EXPECT_LE(ran.deadline, timer_.now()) << "early";
    if (!ran.may_run_now || timer_.now() != start_ + (ran.due - 1) * tick_) {
      if (passing_) {
        EXPECT_EQ(timer_.now(), start_ + ran.due * tick_) << "late";
      }
      EXPECT_EQ(ran.due, by_due_.begin()->first) << "not in the order of ticks";
    }
    if (!ran.moved) {
      for (auto [it, end] = by_due_.equal_range(ran.due); it != end; ++it) {
        if (!entries_[it->second].moved) {
          EXPECT_GE(it->second, index) << "not in the order of scheduling";
        }
      }
    }
    forget(index);
    entries_[index].pending = false;
    // Not after a jump, because the model does not know when an overdue timeout runs that a task moves.
    in_task_ = true;
    for (std::uint64_t operations = passing_ ? below(3) : 0; operations > 0; --operations) {
      ++inside_;
      operate();
    }
    in_task_ = false;
  }

  void advance(bool jumps) {
    const std::int64_t quarters = below(4) == 0 ? below_ticks(100'000) : below_ticks(300);
    const TimePoint to = std::min(after(tick_ * quarters / 4), start_ + latest() * tick_);
    passing_ = !jumps;
    jumps ? timer_.advance_to(to) : timer_.advance(to - timer_.now());
    ASSERT_EQ(timer_.now(), to);
    if (!by_due_.empty()) {
      ASSERT_GE(by_due_.begin()->first, next_point()) << "left over";
    }
  }
  std::int64_t below_ticks(std::uint64_t limit) { return static_cast<std::int64_t>(below(limit)); }

  void check_wakeup() {
    const auto wakeup = timer_.next_wakeup();
    const auto first = by_due_.begin();
    if (first == by_due_.end() || entries_[first->second].deadline > TimePoint::max() - tick_) return;
    ASSERT_TRUE(wakeup);
    ASSERT_LE(*wakeup, start_ + first->first * tick_) << "would wake too late";
    ASSERT_GT(*wakeup, timer_.now());
  }

  std::mt19937_64 random_;
  const nanoseconds tick_;
  const TimePoint start_;
  std::vector<Entry> entries_;
  std::multimap<std::int64_t, std::size_t> by_due_;
  bool passing_ = false;
  bool in_task_ = false;
  std::int64_t ran_ = 0;
  std::int64_t inside_ = 0;
  ManualTimer timer_;
};

constexpr std::uint64_t kSeeds = test::kSanitized ? 2 : 20;

class ManualModel : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(ManualModel, DoesAsTheModel) {
  std::uint64_t ran = 0;
  std::uint64_t inside = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed, nanoseconds(GetParam()), TimePoint(nanoseconds(seed * 123'456'789)));
    for (int i = 0; i < 2'000; ++i) {
      model.step();
      if (HasFailure()) return;
    }
    model.sleep_until_wakeups();
    ran += static_cast<std::uint64_t>(model.ran());
    inside += static_cast<std::uint64_t>(model.inside());
  }
  EXPECT_GT(ran, kSeeds * 300) << "the walk does not reach what it is for";
  EXPECT_GT(inside, kSeeds * 100);
}

TEST_P(ManualModel, DoesAsTheModelJustBeforeEachCarry) {
  constexpr int kDigitBits = 6;
  const nanoseconds tick(GetParam());
  const TimePoint start(123'456'789ns);
  std::uint64_t seed = 1;
  for (const std::int64_t carry : test::carries(kDigitBits, Model(0, tick, start).latest(), tick)) {
    for (const std::int64_t before : {2, 100, 20'000}) {
      SCOPED_TRACE(std::to_string(before) + " ticks before " + std::to_string(carry));
      Model model(++seed, tick, start);
      model.grow_old(carry, before);
      for (int i = 0; i < (test::kSanitized ? 50 : 400) && !HasFailure(); ++i) model.step();
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ticks, ManualModel, ::testing::Values(1, 7, 1'000'000, 10'000'001));

}  // namespace
}  // namespace hwt
