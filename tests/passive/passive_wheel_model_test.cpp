// PassiveWheel against a set: random schedules, cancellations, postponements, deaths, exceptions and jumps of the
// clock, half of them from inside on_timeout(). The test checks each firing and each answer at once. The wheel is new,
// or just before a carry.

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "tests/support/ages.h"
#include "tests/support/build_kind.h"

namespace hwt {
namespace {

using std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::size_t kNodes = 60;
constexpr std::size_t kMany = 1'000'000;  // a max_tasks that bounds the moves, but is above the number of nodes
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

struct Thrown {};

class Model {
 public:
  Model(std::uint64_t seed, nanoseconds tick, TimePoint start, std::size_t nodes = kNodes)
      : random_(seed), tick_(tick), start_(start), now_(start), nodes_(nodes), expected_(nodes), wheel_(tick, start) {
    for (std::size_t i = 0; i < nodes; ++i) create(i);
  }

  void step() {
    if (nodes_.size() > kNodes && below(100) == 0) {
      crowd();
    } else if (below(3) == 0) {
      advance();
    } else {
      operate();
    }
    check();
  }
  /// Lets the clock jump until `before` ticks before `carry`. Nodes around the carry wait from the start on.
  void grow_old(std::int64_t carry, std::int64_t before) {
    for (std::size_t index = 0; const std::int64_t after : {2, 1, 0, -1, 300, 70'000}) {
      schedule(index++, after < latest() - carry ? time_of(carry + after) : TimePoint::max());
    }
    now_ = time_of(std::max<std::int64_t>(carry - before, 0));
    wheel_.advance(now_);
    ASSERT_TRUE(wheel_.size() == 6 || carry <= before);
  }
  /// The latest tick that ends before the clock does.
  std::int64_t latest() const { return (TimePoint::max() - start_) / tick_ - 1; }

  std::int64_t fired() const { return fired_; }
  std::int64_t operations_inside() const { return operations_inside_; }
  std::int64_t exceptions() const { return exceptions_; }
  std::int64_t ends_of_moving() const { return ends_of_moving_; }

 private:
  struct Node : WheelNode {
    Node(Model& model, std::size_t index) : model(&model), index(index) {}
    void on_timeout() override { model->on_fire(index); }  // the node may be gone afterwards
    Model* model;
    std::size_t index;
  };

  /// The state of one node that the wheel should have.
  struct Expected {
    std::int64_t due;  // the number of a tick
    TimePoint deadline;
    std::int64_t order;  // rises with each schedule
    bool postponed;
  };
  struct Key {
    std::int64_t due;
    bool postponed;  // nodes that were not postponed come first here, because their order is known
    std::int64_t order;
    std::size_t index;
    auto operator<=>(const Key&) const = default;
  };

  /// Call it at most once in an expression. Compilers evaluate calls in different orders, and the walks would differ.
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::int64_t present() const { return (now_ - start_) / tick_; }
  TimePoint time_of(std::int64_t tick) const { return start_ + tick * tick_; }
  bool is_out_of_reach(TimePoint time) const { return time > TimePoint::max() - tick_; }
  std::int64_t first_tick_at_or_after(TimePoint time) const {
    if (time <= start_) return 0;
    const nanoseconds since = time - start_;
    return since / tick_ + (since % tick_ != nanoseconds::zero() ? 1 : 0);
  }
  TimePoint deadline_after(nanoseconds delay) const {
    delay = std::max(delay, nanoseconds::zero());
    return delay < TimePoint::max() - now_ ? now_ + delay : TimePoint::max();
  }

  /// Of every size: zero, parts of a tick, around the edges of the wheel's digits, for ever.
  nanoseconds random_delay() {
    switch (below(8)) {
      case 0:
        return nanoseconds(static_cast<std::int64_t>(below(3)) - 1);
      case 1:
        return nanoseconds(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(tick_.count()) + 1)));
      case 2:
        return below(2) == 0 ? nanoseconds::max() : nanoseconds::min();
      case 3: {
        const std::uint64_t digit = below(4);
        return tick_ * ((std::int64_t{1} << digit * 8) + static_cast<std::int64_t>(below(5)) - 2);
      }
      case 4:
        return tick_ * static_cast<std::int64_t>(below(below(2) == 0 ? 100'000U : 1U << 20));
      default: {
        const std::uint64_t ticks = below(600);
        return tick_ * static_cast<std::int64_t>(ticks) / (1 + static_cast<std::int64_t>(below(3)));
      }
    }
  }

  /// In the past as well, and as far as the clock goes; often one that another node has.
  TimePoint random_deadline() {
    const std::size_t other = below(nodes_.size());
    switch (below(6)) {
      case 0:
        return expected_[other] ? expected_[other]->deadline : now_;
      case 1:
        return now_ - random_past();
      case 2:
        return below(2) == 0 ? TimePoint::max() : TimePoint::min();
      case 3:
        return TimePoint(nanoseconds(static_cast<std::int64_t>(random_())));
      default:
        return deadline_after(random_delay());
    }
  }
  nanoseconds random_past() {
    return below(2) == 0 ? nanoseconds(static_cast<std::int64_t>(below(3)))
                         : tick_ * static_cast<std::int64_t>(below(600));
  }

  void create(std::size_t index) {
    nodes_[index] = std::make_unique<Node>(*this, index);
    EXPECT_FALSE(nodes_[index]->scheduled());
  }

  void expect(std::size_t index, const Expected& expected) {
    expected_[index] = expected;
    by_due_.insert(key(index));
  }
  void forget(std::size_t index) {
    by_due_.erase(key(index));
    expected_[index].reset();
  }
  Key key(std::size_t index) const {
    const Expected& expected = *expected_[index];
    return {expected.due, expected.postponed, expected.order, index};
  }

  void operate() {
    const std::size_t index = below(nodes_.size());
    Node& node = *nodes_[index];
    const bool scheduled = expected_[index].has_value();
    switch (below(20)) {
      case 0:
      case 1:
        EXPECT_EQ(node.cancel(), scheduled);
        if (scheduled) forget(index);
        break;
      case 2:
        if (scheduled) forget(index);
        create(index);
        break;
      case 3:
      case 4:
      case 5:
      case 6:
      case 7: {
        const nanoseconds delay = random_delay();
        const bool at = below(2) == 0;
        const TimePoint deadline = at ? random_deadline() : deadline_after(delay);
        wheel_.postpone(node, at ? When(deadline) : When(delay));
        if (!scheduled) break;
        Expected later = *expected_[index];
        if (deadline <= later.deadline) break;
        later.deadline = deadline;
        later.due = std::max(later.due, first_tick_at_or_after(later.deadline));
        later.postponed = true;
        forget(index);
        expect(index, later);
        break;
      }
      case 8:
        if (below(20) != 0) break;
        EXPECT_EQ(wheel_.cancel_all(), by_due_.size());
        while (!by_due_.empty()) forget(by_due_.begin()->index);
        break;
      case 9:
      case 10:
      case 11:
      case 12:
      case 13:
        schedule(index, random_deadline());
        break;
      default:
        schedule(index, random_delay());
        break;
    }
  }

  void schedule(std::size_t index, nanoseconds delay) {
    wheel_.schedule(*nodes_[index], delay);
    scheduled(index, deadline_after(delay));
  }
  void schedule(std::size_t index, TimePoint deadline) {
    wheel_.schedule(*nodes_[index], deadline);
    scheduled(index, deadline);
  }
  void scheduled(std::size_t index, TimePoint deadline) {
    if (expected_[index]) forget(index);
    const std::int64_t due = std::max(first_tick_at_or_after(deadline), present() + 1);
    expect(index, {due, deadline, ++order_, false});
  }

  /// Schedules most nodes within a few slots: more nodes than one advance(now, max_tasks) moves.
  void crowd() {
    const std::int64_t spans[] = {300, 1000, 70'000, 200'000};
    const std::int64_t ticks = spans[below(4)];
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (below(8) != 0) schedule(i, tick_ * (ticks + static_cast<std::int64_t>(i % 150)));
    }
  }

  void on_fire(std::size_t index) {
    ++fired_;
    ++fired_in_advance_;
    ASSERT_TRUE(expected_[index].has_value()) << "not scheduled";
    const Expected fired = *expected_[index];
    EXPECT_FALSE(nodes_[index]->scheduled());
    EXPECT_EQ(nodes_[index]->deadline(), fired.deadline);
    EXPECT_LE(fired.deadline, now_) << "early";
    EXPECT_LE(fired.due, present()) << "early";
    EXPECT_EQ(fired.due, by_due_.begin()->due) << "not in the order of ticks";
    if (!fired.postponed) {
      EXPECT_EQ(fired.order, by_due_.begin()->order) << "not in the order of scheduling";
    }
    forget(index);
    check();
    for (std::uint64_t operations = below(4); operations > 0; --operations) {
      ++operations_inside_;
      operate();
      check();
    }
    if (below(20) == 0) {  // itself
      if (expected_[index]) forget(index);
      create(index);
    }
    if (below(50) == 0) {
      ++exceptions_;
      throw Thrown();
    }
  }

  TimePoint later(nanoseconds by) const { return std::min(deadline_after(by), time_of(latest())); }

  TimePoint random_time() {
    const std::optional<TimePoint> wakeup = wheel_.next_wakeup();
    switch (below(8)) {
      case 0:
        return now_ - tick_ * static_cast<std::int64_t>(below(10));
      case 1:
        return by_due_.empty() ? now_ : std::min(earliest(), later(tick_ * 1'000'000)) - nanoseconds(1);
      case 2:
        return by_due_.empty() ? now_ : std::min(earliest(), later(tick_ * 1'000'000));
      case 3:
      case 4:
        return wakeup ? std::min(*wakeup, later(tick_ * 1'000'000)) : now_;
      case 5:
        return later(tick_ * static_cast<std::int64_t>(below(100'000)));
      default:
        return later(tick_ * static_cast<std::int64_t>(below(300)) / 4);
    }
  }

  void advance() {
    const TimePoint told = random_time();
    const bool in_a_crowd = nodes_.size() > kNodes;
    const std::size_t max_tasks = below(3) == 0 ? below(5) : in_a_crowd && below(4) != 0 ? kMany : kAll;
    now_ = std::max(now_, told);
    fired_in_advance_ = 0;
    left_over_ = true;
    try {
      const std::size_t ran = wheel_.advance(told, max_tasks);
      EXPECT_EQ(ran, fired_in_advance_);
      EXPECT_LE(ran, max_tasks);
      const std::optional<TimePoint> wakeup = wheel_.next_wakeup();
      const bool end_of_moving = ran < max_tasks && max_tasks != kAll && wakeup && *wakeup <= now_;
      ends_of_moving_ += end_of_moving ? 1 : 0;
      left_over_ = ran == max_tasks || end_of_moving;
      if (!left_over_ && !by_due_.empty()) {
        EXPECT_GT(by_due_.begin()->due, present()) << "left over";
      }
    } catch (const Thrown&) {
      EXPECT_LE(fired_in_advance_, max_tasks);
    }
  }

  TimePoint earliest() const {
    const Expected& first = *expected_[by_due_.begin()->index];
    return is_out_of_reach(first.deadline) ? TimePoint::max() : time_of(first.due);
  }

  void check() {
    ASSERT_EQ(wheel_.size(), by_due_.size());
    const std::optional<TimePoint> wakeup = wheel_.next_wakeup();
    ASSERT_EQ(wakeup.has_value(), !by_due_.empty());
    if (wakeup) {
      ASSERT_LE(*wakeup, earliest()) << "would wake too late";
      if (!left_over_) {
        ASSERT_GT(*wakeup, now_) << "would not sleep";
      }
    }
    const std::size_t index = below(nodes_.size());
    ASSERT_EQ(nodes_[index]->scheduled(), expected_[index].has_value());
    if (expected_[index]) {
      ASSERT_EQ(nodes_[index]->deadline(), expected_[index]->deadline);
    }
  }

  std::mt19937_64 random_;
  const nanoseconds tick_;
  const TimePoint start_;
  TimePoint now_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::optional<Expected>> expected_;
  std::set<Key> by_due_;
  std::int64_t order_ = 0;
  std::int64_t fired_ = 0;
  std::size_t fired_in_advance_ = 0;
  bool left_over_ = false;  // the latest advance() may have left something over
  std::int64_t operations_inside_ = 0;
  std::int64_t exceptions_ = 0;
  std::int64_t ends_of_moving_ = 0;  // advance() calls that have left something over although fewer than max_tasks ran
  PassiveWheel wheel_;               // goes before the nodes
};

class PassiveWheelModel : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(PassiveWheelModel, DoesAsTheModel) {
  std::int64_t fired = 0;
  std::int64_t inside = 0;
  std::int64_t exceptions = 0;
  for (std::uint64_t seed = 1; seed <= (test::kSanitized ? 10 : 20); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed, nanoseconds(GetParam()), TimePoint(nanoseconds(seed * 123'456'789)));
    for (int i = 0; i < 3'000; ++i) {
      model.step();
      if (HasFailure()) return;
    }
    fired += model.fired();
    inside += model.operations_inside();
    exceptions += model.exceptions();
  }
  EXPECT_GT(fired, 10'000) << "the walk does not reach what it is for";
  EXPECT_GT(inside, 10'000);
  EXPECT_GT(exceptions, 100);
}

TEST_P(PassiveWheelModel, DoesAsTheModelInACrowd) {
  std::int64_t fired = 0;
  std::int64_t ends_of_moving = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Model model(seed, nanoseconds(GetParam()), TimePoint(nanoseconds(seed * 123'456'789)), 20'000);
    for (int i = 0; i < 4'000; ++i) {
      model.step();
      if (HasFailure()) return;
    }
    fired += model.fired();
    ends_of_moving += model.ends_of_moving();
  }
  EXPECT_GT(fired, 10'000) << "the walk does not reach what it is for";
  EXPECT_GT(ends_of_moving, 5);
}

TEST_P(PassiveWheelModel, DoesAsTheModelJustBeforeEachCarry) {
  constexpr int kDigitBits = 8;
  const nanoseconds tick(GetParam());
  const TimePoint start(nanoseconds(123'456'789));
  std::uint64_t seed = 1;
  for (const std::int64_t carry : test::carries(kDigitBits, Model(0, tick, start).latest(), tick)) {
    for (const std::int64_t before : {2, 100, 20'000}) {
      SCOPED_TRACE(std::to_string(before) + " ticks before " + std::to_string(carry));
      Model model(++seed, tick, start);
      model.grow_old(carry, before);
      for (int i = 0; i < 300 && !HasFailure(); ++i) model.step();
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ticks, PassiveWheelModel,
                         ::testing::Values(1, 7, 1'000, 1'000'000, 10'000'001, 1'000'000'000));

}  // namespace
}  // namespace hwt
