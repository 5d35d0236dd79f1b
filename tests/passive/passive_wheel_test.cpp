// PassiveWheel beyond the walks of tests/fuzz/passive_wheel.cpp: the end of the clock, memory of a destroyed wheel, how
// much one call does, when a loop wakes up, and allocations. All time is made up.

#include "hashed_wheel_timer/passive_wheel.h"

#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)
using std::chrono::nanoseconds;
using TimePoint = steady_clock::time_point;

// Not a multiple of any tick.
constexpr TimePoint kStart{1'234'567'891ns};
constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

/// Calls a function in on_timeout(), and counts the calls.
class Node : public WheelNode {
 public:
  explicit Node(std::function<void()> body = nullptr) : body_(std::move(body)) {}

  int fired = 0;

 private:
  void on_timeout() override {
    ++fired;
    // A copy: the node may be destroyed in there.
    if (const std::function<void()> body = body_) body();
  }
  std::function<void()> body_;
};

/// A wheel with a tick of 1 ms, told the time in ticks.
struct Wheel : PassiveWheel {
  explicit Wheel(TimePoint start = kStart) : PassiveWheel(1ms, start) {}
  std::size_t advance_to(std::int64_t tick, std::size_t max_tasks = kAll) {
    return advance(kStart + tick * 1ms, max_tasks);
  }
  std::optional<std::int64_t> next_tick() const {
    const std::optional<TimePoint> time = next_wakeup();
    if (!time) return std::nullopt;
    EXPECT_EQ((*time - kStart) % 1ms, 0ns);
    return (*time - kStart) / 1ms;
  }
};

/// The node fires at this time and not a nanosecond earlier; the wheel holds nothing else that is due until then.
void expect_fires_at(PassiveWheel& wheel, Node& node, TimePoint time) {
  const int before = node.fired;
  const std::optional<TimePoint> wakeup = wheel.next_wakeup();
  ASSERT_TRUE(wakeup.has_value());
  EXPECT_LE(*wakeup, time);
  EXPECT_EQ(wheel.advance(time - 1ns), 0u);
  ASSERT_EQ(node.fired, before) << "early";
  EXPECT_EQ(wheel.advance(time, 1), 1u);
  ASSERT_EQ(node.fired, before + 1) << "late";
}

// In unsigned arithmetic, which is right for the earliest start as well.
TimePoint grid_point_at_or_after(TimePoint start, nanoseconds tick, TimePoint deadline) {
  const auto count = [](TimePoint time) { return static_cast<std::uint64_t>(time.time_since_epoch().count()); };
  const std::uint64_t into_tick = (count(deadline) - count(start)) % static_cast<std::uint64_t>(tick.count());
  return into_tick == 0 ? deadline : deadline + (tick - nanoseconds(static_cast<std::int64_t>(into_tick)));
}

TEST(PassiveWheel, RefusesATickThatIsNotPositive) {
  for (const nanoseconds tick : {0ns, -1ns, nanoseconds::min()}) {
    const std::string message = message_of<std::invalid_argument>([&] { PassiveWheel wheel(tick, kStart); });
    EXPECT_TRUE(contains(message, "tick_duration: " + std::to_string(tick.count()))) << message;
    EXPECT_TRUE(contains(message, " ns (expected: 1 ns or more)")) << message;
  }
}

TEST(PassiveWheel, ADelayBeyondTheClockMeansNever) {
  for (const TimePoint start : {kStart, TimePoint(-1h)}) {
    Wheel wheel(start);
    Node node, postponed;
    const auto schedule = [&](auto delay) {
      wheel.schedule(node, delay);
      EXPECT_EQ(node.deadline(), TimePoint::max());
      wheel.schedule(postponed, 1ms);
      wheel.postpone(postponed, delay);
      EXPECT_EQ(postponed.deadline(), TimePoint::max());
    };
    for (const auto delay : {std::chrono::hours::max(), std::chrono::hours(24 * 365 * 600)}) schedule(delay);
    schedule(nanoseconds::max());
    EXPECT_EQ(wheel.advance(TimePoint::max() - 10ms), 0u);
    wheel.schedule(node, 1h);
    EXPECT_EQ(node.deadline(), TimePoint::max());
    EXPECT_EQ(wheel.next_wakeup(), TimePoint::max());
    EXPECT_EQ(wheel.advance(TimePoint::max()), 0u);
    wheel.schedule(node, 1ns);
    wheel.schedule(postponed, -1ns);
    EXPECT_EQ(wheel.advance(TimePoint::max()), 0u);
    EXPECT_EQ(wheel.next_wakeup(), TimePoint::max());
    EXPECT_EQ(wheel.size(), 2u);
    PassiveWheel short_ticks(1ns, start);
    short_ticks.schedule(node, nanoseconds::max());
    EXPECT_EQ(node.deadline(), TimePoint::max());
  }
}

/// From the earliest start the clock's range is one nanosecond more than ticks are counted for.
TEST(PassiveWheel, TheEndOfTimeIsKeptAsADeadlineAndReached) {
  for (const TimePoint start : {TimePoint::min(), TimePoint::min() + 1ns, TimePoint(-5ns), TimePoint(), kStart}) {
    PassiveWheel wheel(1ns, start);
    Node node, postponed;
    wheel.schedule(node, TimePoint::max());
    wheel.schedule(postponed, TimePoint::max() - 2ns);
    wheel.postpone(postponed, TimePoint::max());
    EXPECT_EQ(node.deadline(), TimePoint::max());
    EXPECT_EQ(postponed.deadline(), TimePoint::max());
    std::size_t ran = wheel.advance(TimePoint::max() - 2ns);
    EXPECT_EQ(ran, 0u);
    EXPECT_EQ(wheel.advance(TimePoint::max()), 2u);
  }
}

TEST(PassiveWheel, PostponeDoesNotMoveTheNode) {
  Wheel wheel;
  Node node;
  wheel.schedule(node, 10ms);
  wheel.postpone(node, 1h);
  EXPECT_EQ(wheel.next_tick(), 10) << "the wheel meets it at its old tick";
  EXPECT_EQ(wheel.advance_to(10), 0u);
  EXPECT_GT(wheel.next_tick(), 10) << "and moves it then";
  expect_fires_at(wheel, node, kStart + 1h);
  static_assert(noexcept(wheel.postpone(node, kStart)));
}

TEST(PassiveWheel, AdvanceInsideOnTimeoutIsRefusedUnlessTheWheelIsAnother) {
  Wheel wheel, other;
  Node others;
  std::string message;
  Node node([&] {
    message = message_of<IllegalState>([&] { wheel.advance_to(1000); });
    EXPECT_EQ(other.advance_to(5), 1u);
  });
  wheel.schedule(node, 3ms);
  other.schedule(others, 5ms);
  EXPECT_EQ(wheel.advance_to(3), 1u);
  EXPECT_EQ(message, "PassiveWheel: advance() inside on_timeout() of the same wheel");
}

/// A wheel whose memory is overwritten after its destruction, so that a later write shows.
class DestroyedWheel {
 public:
  void destroy() {
    wheel->~Wheel();
    memory_.fill(kGone);
  }
  void expect_untouched() const {
    EXPECT_EQ(std::count(memory_.begin(), memory_.end(), kGone), std::ptrdiff_t{sizeof(Wheel)});
  }

 private:
  static constexpr std::byte kGone{0xff};
  alignas(Wheel) std::array<std::byte, sizeof(Wheel)> memory_;

 public:
  Wheel* const wheel = ::new (memory_.data()) Wheel;  // after memory_
};

TEST(PassiveWheel, TheWheelMayBeDestroyedInsideOnTimeoutThatThrowsOrNot) {
  for (const bool throws : {false, true}) {
    DestroyedWheel destroyed;
    Node same, later;
    Node node([&] {
      destroyed.destroy();
      if (throws) throw std::runtime_error("thrown inside");
    });
    for (Node* const each : {&node, &same}) destroyed.wheel->schedule(*each, 3ms);
    destroyed.wheel->schedule(later, 400ms);
    if (throws) {
      EXPECT_EQ(message_of<std::runtime_error>([&] { destroyed.wheel->advance_to(500); }), "thrown inside");
    } else {
      EXPECT_EQ(destroyed.wheel->advance_to(500), 1u);
    }
    destroyed.expect_untouched();
    for (const Node* const each : {&node, &same, &later}) EXPECT_FALSE(each->scheduled());
    EXPECT_EQ(same.fired + later.fired, 0);
  }
}

/// Without max_tasks they come nearer in one go, while other events wait. 200,000 nodes stand for a million.
TEST(PassiveWheel, WithMaxTasksAMillionNodesComeNearerAFewThousandAtATime) {
  constexpr int kNodes = 200'000;
  constexpr std::int64_t kFirst = 65'536;
  for (const std::int64_t now : {kFirst, kFirst + 200, kFirst + 10'000}) {
    Wheel wheel;
    std::vector<Node> nodes(kNodes);
    for (int i = 0; i < kNodes; ++i)
      wheel.schedule(nodes[static_cast<std::size_t>(i)], (kFirst + 250 + i % 4000) * 1ms);
    int calls = 0;
    std::size_t ran = 0;
    do {
      ran += wheel.advance_to(now, kNodes);
      ++calls;
      ASSERT_EQ(wheel.size(), kNodes - ran);
      ASSERT_TRUE(wheel.size() == 0 || wheel.next_tick() < kFirst + 4250);
    } while (wheel.size() != 0 && wheel.next_tick() <= now);
    EXPECT_GE(calls, kNodes / 10'000) << "too many at a time";
    EXPECT_LE(calls, kNodes / 2'000) << "too few at a time";
    for (int i = 0; i < kNodes; ++i) {
      ASSERT_EQ(nodes[static_cast<std::size_t>(i)].fired, kFirst + 250 + i % 4000 <= now ? 1 : 0);
    }
  }
}

TEST(PassiveWheel, NextWakeupIsAGridPointAndExactForNearNodes) {
  for (const std::int64_t from : {0, 1024, 65'536, 1'000'192, 1'000'448}) {
    Wheel wheel;
    Node node;
    if (from > 1'000'000) wheel.schedule(node, 1s);  // whether something fires on the way or not
    wheel.advance_to(from);
    for (int delay = 1; delay < 64; ++delay) {
      wheel.schedule(node, delay * 1ms - 1ns);
      EXPECT_EQ(wheel.next_tick(), from + delay);
    }
  }
}

// A loop that sleeps as it is told is never late, and wakes up no more often than there are levels.
TEST(PassiveWheel, ALoopThatSleepsUntilTheNextWakeupIsNeitherLateNorBusy) {
  std::mt19937_64 random(4);
  Wheel wheel;
  std::vector<Node> nodes(200);
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 3; ++i) {
      const auto delay = static_cast<std::int64_t>(random() >> (34 + random() % 30));
      wheel.schedule(nodes[random() % nodes.size()], delay * 1ms + 1ns);
    }
    std::multiset<TimePoint> due;
    for (const Node& node : nodes) {
      if (node.scheduled()) due.insert(grid_point_at_or_after(kStart, 1ms, node.deadline()));
    }
    int wakeups = 0;
    std::size_t ran = 0;
    while (ran == 0) {
      const std::optional<TimePoint> wakeup = wheel.next_wakeup();
      ASSERT_TRUE(wakeup.has_value());
      ASSERT_LE(*wakeup, *due.begin());
      ran = wheel.advance(*wakeup);
      ASSERT_LE(++wakeups, 8);
    }
    EXPECT_EQ(ran, due.count(*due.begin()));
  }
}

// The move of the last node uses up what one call may move, so the next call runs the nodes.
TEST(PassiveWheel, ACallThatHasMovedAllItMayRunsNothingAndLeavesNoSlotHalfMoved) {
  constexpr std::size_t kMoved = 8192;
  Wheel wheel;
  std::vector<Node> nodes(kMoved);
  for (Node& node : nodes) wheel.schedule(node, 1000ms);
  std::size_t ran = 0;
  int without = 0;
  for (int calls = 0; ran < kMoved; ++calls) {
    ASSERT_LT(calls, 100);
    const std::size_t ran_now = wheel.advance_to(1000, 1000);
    EXPECT_LE(ran_now, 1000u);
    without += ran_now == 0 ? 1 : 0;
    ran += ran_now;
  }
  EXPECT_GE(without, 1);
  for (const Node& node : nodes) ASSERT_EQ(node.fired, 1);
}

// --- Memory ---

/// Schedules itself whenever it fires.
struct Again : WheelNode {
  void on_timeout() override { wheel->schedule(*this, 77ms); }
  PassiveWheel* wheel = nullptr;
};

TEST(PassiveWheelMemory, NothingIsAllocated) {
  std::vector<Again> nodes(1000);
  {
    const Shortage shortage(0, Shortage::kAll);
    Wheel wheel;
    std::int64_t delay = 1;
    for (Again& node : nodes) {
      node.wheel = &wheel;
      wheel.schedule(node, (delay = delay * 7 % 100'003) * 1ms);
    }
    for (std::size_t turn = 0; turn < 2000; ++turn) {
      wheel.advance_to(static_cast<std::int64_t>(turn) * 100, 500);
      wheel.postpone(nodes[turn % 1000], 10s);
      nodes[turn % 999].cancel();
      (void)wheel.next_wakeup();
    }
    wheel.cancel_all();
    for (Again& node : nodes) wheel.schedule(node, 1h);
    EXPECT_EQ(shortage.failed(), 0);
  }
  EXPECT_FALSE(nodes[0].scheduled());
}

TEST(PassiveWheelMemory, ANodeTakes48BytesAndAWheel33KiB) {
  EXPECT_LE(sizeof(WheelNode), 6 * sizeof(std::uint64_t));
  EXPECT_LE(sizeof(PassiveWheel), 33u * 1024 + 512);
}

}  // namespace
}  // namespace hwt
