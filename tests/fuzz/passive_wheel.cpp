// PassiveWheel against a multimap. Two wheels share their nodes, which are scheduled, postponed, cancelled and
// destroyed at any time, half of them inside on_timeout(), which may also throw. With a patient input, a wheel may
// begin just before a carry of its arithmetic, or have more nodes than one advance() moves.

#include "hashed_wheel_timer/passive_wheel.h"

#include <map>

#include "hashed_wheel_timer/errors.h"
#include "tests/fuzz/targets.h"
#include "tests/support/ages.h"

namespace hwt::fuzz {

using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kNodes = 24;
constexpr std::size_t kCrowd = 10'000;
constexpr std::size_t kMany = 1'000'000;  // a max_tasks that bounds the moves, but is above the number of nodes
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

struct Thrown {};

class Walk {
 public:
  explicit Walk(Input& input)
      : input_(input),
        crowded_(input.patient() && input.one_in(32)),
        expected_(crowded_ ? kCrowd : kNodes),
        nodes_(expected_.size()) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i] = std::make_unique<Node>(*this, i);
    create(sides_[0]);
  }

  void run() {
    if (input_.patient() && input_.one_in(2)) grow_old(sides_[0]);
    while (!input_.ended()) {
      Side& side = any_side();
      if (crowded_ && input_.one_in(64)) crowd(side);
      if (input_.one_in(3)) {
        advance(side);
      } else {
        operate();
      }
      check(side);
    }
  }

 private:
  struct Node : WheelNode {
    Node(Walk& walk, std::size_t index) : walk(&walk), index(index) {}
    void on_timeout() override { walk->on_fire(index); }  // the node may be gone afterwards
    Walk* walk;
    std::size_t index;
  };

  /// A wheel, and its expected contents.
  struct Side {
    nanoseconds tick;
    TimePoint start, end, now;
    std::multimap<std::uint64_t, std::size_t> by_due;
    std::size_t fired = 0;
    bool running = false;
    bool left_over = false;  // the latest advance() may have left something over
    std::unique_ptr<PassiveWheel> wheel;

    std::uint64_t ticks_until(TimePoint time) const {
      const std::uint64_t since = distance(start, std::clamp(time, start, end));
      const auto each = static_cast<std::uint64_t>(tick.count());
      return since / each + (since % each != 0 ? 1 : 0);
    }
    std::uint64_t present() const { return distance(start, now) / static_cast<std::uint64_t>(tick.count()); }
    /// The time after so many ticks, or TimePoint::max() beyond the end.
    TimePoint time_of(std::uint64_t ticks) const {
      const auto each = static_cast<std::uint64_t>(tick.count());
      return ticks > distance(start, end) / each ? TimePoint::max() : later_by(start, ticks * each);
    }
    TimePoint after(nanoseconds delay) const { return fuzz::after(now, delay); }
  };

  /// The expected state of a node.
  struct Expected {
    Side* side = nullptr;  // null: it is not scheduled
    std::uint64_t due = 0;
    TimePoint deadline;  // the latest one
    std::uint64_t order = 0;
    bool postponed = false;
  };

  void create(Side& side) {
    side.tick = nanoseconds(input_.one_of<std::int64_t>({1, 7, 1'000, 1'000'000, 10'000'001, 1'000'000'000'000'000}));
    side.start = TimePoint(nanoseconds(input_.one_of<std::int64_t>(
        {0, 123'456'789, -5'000'000'000, std::numeric_limits<std::int64_t>::min(),
         std::numeric_limits<std::int64_t>::max() - 1'000'000'000'000, -4'611'686'018'427'387'904})));
    // The latest time, but less than 2^64 - 1 nanoseconds after the start.
    side.end = side.start == TimePoint::min() ? TimePoint::max() - nanoseconds(1) : TimePoint::max();
    side.now = side.start;
    side.left_over = false;
    side.wheel = std::make_unique<PassiveWheel>(side.tick, side.start);
  }

  /// The clock jumps until shortly before a carry. Nodes around the carry wait from the start on.
  void grow_old(Side& side) {
    constexpr int kDigitBits = 8;
    const std::uint64_t ticks = distance(side.start, side.end) / static_cast<std::uint64_t>(side.tick.count());
    const auto last = static_cast<std::int64_t>(std::min<std::uint64_t>(ticks, std::int64_t{1} << 62)) - 1;
    const std::vector<std::int64_t> carries = test::carries(kDigitBits, last, side.tick);
    const std::int64_t carry = carries[input_.below(carries.size())];
    const auto at = [&](std::int64_t tick) { return side.time_of(static_cast<std::uint64_t>(std::max(tick, {}))); };
    for (std::size_t index = 0; const std::int64_t after : {2, 1, 0, -1, 300, 70'000}) {
      const TimePoint deadline = after < last - carry ? at(carry + after) : TimePoint::max();
      side.wheel->schedule(*nodes_[index], deadline);
      scheduled(side, index++, deadline);
    }
    advance(side, at(carry - input_.one_of<std::int64_t>({2, 100, 20'000})), kAll);
  }

  /// Schedules most nodes within a few slots: more nodes than one advance(now, max_tasks) moves.
  void crowd(Side& side) {
    if (side.wheel == nullptr) return;
    const std::int64_t ticks = input_.one_of<std::int64_t>({300, 1'000, 70'000, 200'000});
    if (side.tick.count() > nanoseconds::max().count() / (ticks + 150)) return;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i % 8 == 7) continue;
      const nanoseconds delay = side.tick * (ticks + static_cast<std::int64_t>(i % 150));
      side.wheel->schedule(*nodes_[i], delay);
      scheduled(side, i, side.after(delay));
    }
  }

  Side& any_side() {
    Side& side = sides_[input_.one_in(6) ? 1 : 0];
    if (side.wheel == nullptr && !side.running) create(side);
    return side;
  }

  nanoseconds any_delay(const Side& side) {
    const std::int64_t tick = side.tick.count();
    const auto ticks = [&](std::int64_t number) {
      return nanoseconds(number > nanoseconds::max().count() / tick ? nanoseconds::max().count() : number * tick);
    };
    switch (input_.below(8)) {
      case 0:
        return nanoseconds(input_.up_to(2) - 1);
      case 1:
        return input_.one_of({nanoseconds::max(), nanoseconds::min(), nanoseconds::max() - nanoseconds(1)});
      case 2:
        return input_.number<nanoseconds>();
      case 3: {  // about where a digit of the wheel begins
        const std::int64_t begin = std::int64_t{1} << 8 * input_.below(8);
        return ticks(begin + input_.up_to(4) - 2);
      }
      case 4:
        return ticks(input_.up_to(65535));
      default: {
        const nanoseconds delay = ticks(input_.up_to(255));
        return delay / (1 + input_.up_to(2));
      }
    }
  }
  TimePoint any_deadline(const Side& side) {
    switch (input_.below(6)) {
      case 0:
        return expected_[input_.below(nodes_.size())].deadline;
      case 1:
        return TimePoint(nanoseconds(input_.number<std::int64_t>()));
      case 2:
        return input_.one_of({TimePoint::max(), TimePoint::min(), side.now, side.start});
      default:
        return fuzz::after(side.now, any_delay(side));
    }
  }

  void forget(std::size_t index) {
    Expected& expected = expected_[index];
    if (expected.side == nullptr) return;
    auto& by_due = expected.side->by_due;
    const auto [first, end] = by_due.equal_range(expected.due);
    by_due.erase(std::find_if(first, end, [&](const auto& entry) { return entry.second == index; }));
    expected.side = nullptr;
  }
  void expect(std::size_t index, const Expected& expected) {
    forget(index);
    expected_[index] = expected;
    expected.side->by_due.emplace(expected.due, index);
  }

  void operate() {
    Side& side = any_side();
    if (side.wheel == nullptr) return;
    const std::size_t index = input_.below(nodes_.size());
    Node& node = *nodes_[index];
    const Expected& expected = expected_[index];
    switch (input_.below(10)) {
      case 0:
        require(node.cancel() == (expected.side != nullptr), "cancel() tells whether it was scheduled");
        forget(index);
        break;
      case 1:
        forget(index);
        expected_[index].deadline = {};
        nodes_[index] = std::make_unique<Node>(*this, index);
        break;
      case 2:
        if (input_.one_in(8)) end_all(side);
        break;
      case 3:
      case 4: {
        const nanoseconds delay = any_delay(side);
        const bool at = input_.one_in(2);
        const TimePoint deadline = at ? any_deadline(side) : side.after(delay);
        side.wheel->postpone(node, at ? When(deadline) : When(delay));
        if (expected.side != &side || deadline <= expected.deadline) break;
        expect(index, {&side, std::max(expected.due, side.ticks_until(deadline)), deadline, expected.order, true});
        break;
      }
      case 5:
      case 6: {
        const TimePoint deadline = any_deadline(side);
        side.wheel->schedule(node, deadline);
        scheduled(side, index, deadline);
        break;
      }
      default: {
        const nanoseconds delay = any_delay(side);
        side.wheel->schedule(node, delay);
        scheduled(side, index, side.after(delay));
        break;
      }
    }
    require_equal(nodes_[index]->deadline().time_since_epoch().count(),
                  expected_[index].deadline.time_since_epoch().count(), "the deadline is what was asked for");
    require(nodes_[index]->scheduled() == (expected_[index].side != nullptr), "scheduled() tells");
  }

  void scheduled(Side& side, std::size_t index, TimePoint deadline) {
    expect(index, {&side, std::max(side.ticks_until(deadline), side.present() + 1), deadline, ++order_, false});
  }

  void end_all(Side& side) {
    const bool destroys = input_.one_in(2);
    if (destroys) {
      side.wheel.reset();
    } else {
      require(side.wheel->cancel_all() == side.by_due.size(), "cancel_all() counts what it takes out");
    }
    while (!side.by_due.empty()) forget(side.by_due.begin()->second);
  }

  void on_fire(std::size_t index) {
    const Expected fired = expected_[index];
    require(fired.side != nullptr, "only what is scheduled fires");
    Side& side = *fired.side;
    ++side.fired;
    require(side.running, "fires in an advance() of its wheel");
    require(!nodes_[index]->scheduled(), "what fires is not scheduled");
    require(std::min(fired.deadline, side.end) <= side.now && fired.due <= side.present(), "never early");
    require(fired.due == side.by_due.begin()->first, "in the order of ticks");
    for (auto [it, end] = side.by_due.equal_range(fired.due); it != end; ++it) {
      const Expected& other = expected_[it->second];
      require(fired.postponed || other.postponed || other.order >= fired.order, "in the order of scheduling");
    }
    forget(index);
    for (auto operations = input_.below(4); operations > 0; --operations) operate();
    if (side.wheel != nullptr && input_.one_in(16)) {
      require_throws<IllegalState>([&] { side.wheel->advance(TimePoint::max()); },
                                   "advance() is refused inside on_timeout()");
    }
    if (input_.one_in(16)) throw Thrown();
  }

  TimePoint any_time(Side& side) {
    TimePoint first = side.by_due.empty() ? side.now : side.time_of(side.by_due.begin()->first);
    if (first == TimePoint::max()) first = side.now;  // at the end of time there is nothing left to see
    switch (input_.below(8)) {
      case 0:
        return TimePoint::min();
      case 1:
        return std::max(first, side.start + nanoseconds(1)) - nanoseconds(1);
      case 2:
        return side.wheel->next_wakeup().value_or(side.now);
      case 3:
      case 4:
        return first;
      case 5:
        return input_.one_in(32) ? TimePoint::max() : fuzz::after(side.now, any_delay(side) / 2);
      default:
        return fuzz::after(side.now, side.tick / 4 * input_.up_to(255));
    }
  }

  void advance(Side& side) {
    if (side.wheel == nullptr || side.running) return;
    const TimePoint told = any_time(side);
    advance(side, told, any_max_tasks());
  }
  std::size_t any_max_tasks() {
    if (input_.one_in(3)) return input_.below(5);
    return crowded_ && !input_.one_in(4) ? kMany : kAll;
  }
  void advance(Side& side, TimePoint told, std::size_t max_tasks) {
    side.now = std::clamp(told, side.now, side.end);
    side.fired = 0;
    side.running = true;
    side.left_over = true;
    try {
      const std::size_t ran = side.wheel->advance(told, max_tasks);
      require(ran == side.fired && ran <= max_tasks, "advance() counts what it runs");
      // An advance() with max_tasks also ends when it has moved as many nodes as it may.
      const auto wakeup = side.wheel == nullptr ? std::nullopt : side.wheel->next_wakeup();
      side.left_over = ran == max_tasks || (crowded_ && max_tasks != kAll && wakeup && *wakeup <= side.now);
      require(side.left_over || side.by_due.empty() || side.by_due.begin()->first > side.present(),
              "nothing is left over");
    } catch (const Thrown&) {
    }
    side.running = false;
    if (side.wheel == nullptr) create(side);
  }

  void check(const Side& side) {
    if (side.wheel == nullptr) return;
    require(side.wheel->size() == side.by_due.size(), "size() counts what is scheduled");
    const std::optional<TimePoint> wakeup = side.wheel->next_wakeup();
    require(wakeup.has_value() != side.by_due.empty(), "next_wakeup() is there if something is");
    if (!wakeup) return;
    require(*wakeup <= side.time_of(side.by_due.begin()->first), "next_wakeup() is not too late");
    require(side.left_over || *wakeup > side.now || side.now == side.end, "next_wakeup() is in the future");
  }

  Input& input_;
  const bool crowded_;
  std::uint64_t order_ = 0;
  std::vector<Expected> expected_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::array<Side, 2> sides_;  // the wheels go before the nodes
};

}  // namespace

void passive_wheel(Input& input) { Walk(input).run(); }

}  // namespace hwt::fuzz
