// The promises of PassiveWheel, one by one. All time is made up.

#include "hashed_wheel_timer/passive_wheel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "hashed_wheel_timer/errors.h"
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

/// Nodes that note their numbers when they fire.
struct Numbered {
  Node& add() {
    nodes.push_back(std::make_unique<Node>([this, number = static_cast<int>(nodes.size())] { ran.push_back(number); }));
    return *nodes.back();
  }

  std::vector<int> ran;
  std::vector<std::unique_ptr<Node>> nodes;
};

/// A wheel with a tick of 1 ms, told the time in ticks.
struct Wheel : PassiveWheel {
  Wheel() : PassiveWheel(1ms, kStart) {}
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
  EXPECT_EQ(wheel.advance(time), 1u);
  ASSERT_EQ(node.fired, before + 1) << "late";
}

// In unsigned arithmetic, which is right for the earliest start as well.
TimePoint grid_point_at_or_after(TimePoint start, nanoseconds tick, TimePoint deadline) {
  const auto count = [](TimePoint time) { return static_cast<std::uint64_t>(time.time_since_epoch().count()); };
  const std::uint64_t into_tick = (count(deadline) - count(start)) % static_cast<std::uint64_t>(tick.count());
  return into_tick == 0 ? deadline : deadline + (tick - nanoseconds(static_cast<std::int64_t>(into_tick)));
}

// --- Construction ---

TEST(PassiveWheel, RefusesATickThatIsNotPositive) {
  for (const nanoseconds tick : {0ns, -1ns, nanoseconds::min()}) {
    const std::string message = message_of<std::invalid_argument>([&] { PassiveWheel wheel(tick, kStart); });
    EXPECT_TRUE(contains(message, "tick_duration: " + std::to_string(tick.count()))) << message;
    EXPECT_TRUE(contains(message, " ns (expected: 1 ns or more)")) << message;
  }
}

TEST(PassiveWheel, TakesAnyPositiveTick) {
  for (const nanoseconds tick : {1ns, 2ns, 3ns, 999'999'937ns, nanoseconds(24h), nanoseconds::max() / 2}) {
    PassiveWheel wheel(tick, kStart);
    Node node;
    wheel.schedule(node, 1ns);
    expect_fires_at(wheel, node, kStart + tick);
  }
}

// --- The grid ---

TEST(PassiveWheel, FiresAtTheFirstGridPointAtOrAfterTheDeadline) {
  for (const nanoseconds tick : {1ns, 7ns, nanoseconds(1ms), 10'000'001ns, nanoseconds(1s)}) {
    for (const nanoseconds phase : {0ns, 1ns, tick / 2, tick - 1ns, tick, 1000 * tick + 3ns}) {
      for (const nanoseconds delay : {1ns, tick / 3 + 1ns, tick, tick + 1ns, 3 * tick, 300 * tick, 300 * tick + 1ns}) {
        PassiveWheel wheel(tick, kStart);
        wheel.advance(kStart + phase);
        Node node;
        wheel.schedule(node, delay);
        const TimePoint deadline = kStart + phase + delay;
        EXPECT_EQ(node.deadline(), deadline);
        expect_fires_at(wheel, node, grid_point_at_or_after(kStart, tick, deadline));
      }
    }
  }
}

// Where digits of the wheel change, and one beside; from several places of the cursor.
TEST(PassiveWheel, IsExactAtTheEdgesOfSlotsAndLevels) {
  std::vector<std::int64_t> spans = {1, 2, 1019, 1029, 1LL << 31};
  for (const std::int64_t edge : {64LL, 256LL, 512LL, 1024LL, 65'280LL, 65'536LL, 1LL << 24, 1LL << 32}) {
    for (const std::int64_t off : {-1, 0, 1}) spans.push_back(edge + off);
  }
  for (const std::int64_t from : {0, 1, 254, 255, 256, 257, 65'534, 65'535, 65'536, 1'000'000}) {
    for (const std::int64_t span : spans) {
      Wheel wheel;
      wheel.advance_to(from);
      Node node;
      wheel.schedule(node, span * 1ms);
      expect_fires_at(wheel, node, kStart + (from + span) * 1ms);
    }
  }
}

// The grid of a wheel is 64 bits wide: the highest digit changes as well, and nothing wraps.
TEST(PassiveWheel, IsExactOverAllOfTheClock) {
  for (const TimePoint start : {TimePoint::min(), TimePoint(-5ns), TimePoint(), kStart}) {
    for (const nanoseconds tick : {1ns, 3ns, nanoseconds(1ms)}) {
      PassiveWheel wheel(tick, start);
      TimePoint now = start;
      for (const std::int64_t share : {1'000'000, 1000, 100, 10, 7, 5, 4, 3, 2, 2, 2, 3, 10, 1000}) {
        const std::int64_t room = now < TimePoint() ? nanoseconds::max().count() : (TimePoint::max() - now).count();
        Node node, near;
        wheel.schedule(node, nanoseconds(room / share));
        const TimePoint due = grid_point_at_or_after(start, tick, node.deadline());
        wheel.advance(due - 300 * tick);
        wheel.schedule(near, 299 * tick);
        EXPECT_EQ(wheel.advance(due - tick), 1u);
        EXPECT_EQ(near.fired, 1);
        expect_fires_at(wheel, node, due);
        now = due;
        if (HasFailure()) return;
      }
    }
  }
}

TEST(PassiveWheel, ADelayOfNothingOrLessEndsWithTheNextTick) {
  for (const nanoseconds delay : {0ns, -1ns, nanoseconds(-1h), nanoseconds::min()}) {
    for (const nanoseconds into_tick : {0ns, 1ns, 999'999ns}) {
      for (const std::int64_t tick : {0, 1, 255, 256, 65'535}) {
        Wheel wheel;
        wheel.advance(kStart + tick * 1ms + into_tick);
        Node node;
        wheel.schedule(node, delay);
        EXPECT_EQ(node.deadline(), kStart + tick * 1ms + into_tick);
        expect_fires_at(wheel, node, kStart + (tick + 1) * 1ms);
      }
    }
  }
}

TEST(PassiveWheel, ADelayOfNothingInOnTimeoutDoesNotRunInTheSameAdvance) {
  for (const nanoseconds delay : {0ns, -1ns, 1ns}) {
    Wheel wheel;
    Node node([&] { wheel.schedule(node, delay); });
    wheel.schedule(node, 1ms);
    // Seen from a tick of the past, the present one is in another slot of a higher level.
    EXPECT_EQ(wheel.advance_to(1000), 1u);
    EXPECT_EQ(wheel.advance_to(1000), 0u);
    EXPECT_EQ(wheel.advance(kStart + 1001ms - 1ns), 0u);
    EXPECT_EQ(wheel.advance_to(1001), 1u);
    EXPECT_EQ(wheel.advance_to(70'000), 1u);
    EXPECT_EQ(node.fired, 3);
  }
}

TEST(PassiveWheel, ADelayBeyondTheClockMeansNever) {
  Wheel wheel;
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
}

TEST(PassiveWheel, TheEndOfTheClockIsReachedWhenItIsOnTheGrid) {
  for (const TimePoint start : {TimePoint(), kStart, TimePoint(-5ns)}) {
    PassiveWheel wheel(1ns, start);
    Node node;
    wheel.advance(TimePoint::max() - 1000ns);
    wheel.schedule(node, nanoseconds::max());
    expect_fires_at(wheel, node, TimePoint::max());
  }
}

// --- By deadline ---

TEST(PassiveWheel, ADeadlineIsTheSameAsTheDelayThatComesToIt) {
  for (const nanoseconds delay : {0ns, 1ns, 999'999ns, nanoseconds(1ms), nanoseconds(256ms), nanoseconds(1h)}) {
    for (const nanoseconds into_tick : {0ns, 1ns, 999'999ns}) {
      Wheel wheel;
      wheel.advance(kStart + 300ms + into_tick);
      Numbered numbered;
      Node& first = numbered.add();
      Node& second = numbered.add();
      wheel.schedule(first, delay);
      wheel.schedule(second, kStart + 300ms + into_tick + delay);
      wheel.schedule(numbered.add(), delay);
      EXPECT_EQ(second.deadline(), first.deadline());
      const TimePoint due =
          delay == 0ns ? kStart + 301ms : grid_point_at_or_after(kStart, 1ms, kStart + 300ms + into_tick + delay);
      EXPECT_EQ(wheel.advance(due - 1ns), 0u);
      EXPECT_EQ(wheel.advance(due), 3u);
      EXPECT_EQ(numbered.ran, (std::vector<int>{0, 1, 2}));
    }
  }
}

TEST(PassiveWheel, APastDeadlineIsKeptAndDueAtTheNextTick) {
  for (const std::int64_t tick : {0, 1, 255, 256, 65'535}) {
    for (const nanoseconds into_tick : {0ns, 1ns, 999'999ns}) {
      const TimePoint now = kStart + tick * 1ms + into_tick;
      for (const TimePoint deadline :
           {now, now - 1ns, now - 1ms, kStart, kStart - 1ns, TimePoint(), TimePoint::min()}) {
        Wheel wheel;
        wheel.advance(now);
        Node node;
        wheel.schedule(node, deadline);
        EXPECT_EQ(node.deadline(), deadline);
        expect_fires_at(wheel, node, kStart + (tick + 1) * 1ms);
        EXPECT_EQ(node.deadline(), deadline);
      }
    }
  }
}

TEST(PassiveWheel, APastDeadlineInOnTimeoutDoesNotRunInTheSameAdvance) {
  Wheel wheel;
  Node node([&] { wheel.schedule(node, TimePoint::min()); });
  wheel.schedule(node, 1ms);
  EXPECT_EQ(wheel.advance_to(1000), 1u);
  EXPECT_EQ(wheel.advance_to(1000), 0u);
  EXPECT_EQ(wheel.advance_to(1001), 1u);
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

TEST(PassiveWheel, EveryDeadlineIsReachedFromEveryStart) {
  const TimePoint times[] = {TimePoint::min(), TimePoint::min() + 1ns, TimePoint(-7ns),       TimePoint(),
                             kStart,           TimePoint::max() - 7ns, TimePoint::max() - 3ns};
  for (const TimePoint start : times) {
    for (const TimePoint now : times) {
      for (const TimePoint deadline : times) {
        PassiveWheel wheel(3ns, start);
        wheel.advance(now);
        Node node;
        wheel.schedule(node, deadline);
        EXPECT_EQ(node.deadline(), deadline);
        const TimePoint due = grid_point_at_or_after(start, 3ns, std::max({deadline, now + 1ns, start + 1ns}));
        if (start == TimePoint::min() && due == TimePoint::max()) continue;  // the one nanosecond that is not counted
        expect_fires_at(wheel, node, due);
      }
    }
  }
}

TEST(PassiveWheel, PostponeAtMovesTheDeadlineOnlyLater) {
  Wheel wheel;
  Wheel other;
  Node node;
  wheel.postpone(node, kStart + 1h);
  EXPECT_EQ(node.deadline(), TimePoint());
  wheel.schedule(node, kStart + 10ms);
  wheel.postpone(node, kStart + 10ms - 1ns);
  wheel.postpone(node, TimePoint::min());
  other.postpone(node, kStart + 1h);
  EXPECT_EQ(node.deadline(), kStart + 10ms);
  wheel.postpone(node, kStart + 18ms - 1ns);
  EXPECT_EQ(node.deadline(), kStart + 18ms - 1ns);
  EXPECT_EQ(wheel.next_tick(), 10) << "the wheel meets it at its old tick";
  expect_fires_at(wheel, node, kStart + 18ms);
  static_assert(noexcept(wheel.postpone(node, kStart)));
}

TEST(PassiveWheel, PostponeAtWithinThePastLeavesItDueAtTheNextTick) {
  Wheel wheel;
  wheel.advance_to(10);
  Node node;
  wheel.schedule(node, TimePoint::min());
  wheel.postpone(node, kStart - 1ns);
  wheel.postpone(node, kStart + 3ms);
  EXPECT_EQ(node.deadline(), kStart + 3ms);
  expect_fires_at(wheel, node, kStart + 11ms);
}

// --- schedule, cancel, deadline ---

TEST(PassiveWheel, SchedulingAgainReplacesTheDeadline) {
  Wheel wheel;
  Node node;
  for (const std::int64_t delay : {5, 300, 2, 2, 70'000, 1, 100}) wheel.schedule(node, delay * 1ms);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(node.deadline(), kStart + 100ms);
  expect_fires_at(wheel, node, kStart + 100ms);
  EXPECT_EQ(wheel.advance_to(100'000), 0u);
}

TEST(PassiveWheel, SchedulingInAnotherWheelMovesTheNode) {
  Wheel first, second;
  Node node;
  first.schedule(node, 5ms);
  second.schedule(node, 7ms);
  EXPECT_EQ(first.size(), 0u);
  EXPECT_EQ(first.next_wakeup(), std::nullopt);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_EQ(first.advance_to(100), 0u);
  expect_fires_at(second, node, kStart + 7ms);
}

TEST(PassiveWheel, CancelTellsWhetherItWasScheduled) {
  Wheel wheel;
  Node node;
  EXPECT_FALSE(node.cancel()) << "never scheduled";
  wheel.schedule(node, 5ms);
  EXPECT_TRUE(node.scheduled());
  EXPECT_TRUE(node.cancel());
  EXPECT_FALSE(node.scheduled());
  EXPECT_FALSE(node.cancel()) << "twice";
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  EXPECT_EQ(wheel.advance_to(100), 0u);
  wheel.schedule(node, 5ms);
  EXPECT_EQ(wheel.advance_to(200), 1u);
  EXPECT_FALSE(node.cancel()) << "it has fired";
}

TEST(PassiveWheel, CancelTakesOnlyItsNodeOutOfASlot) {
  for (int cancelled = 0; cancelled < 3; ++cancelled) {
    for (const nanoseconds delay : {nanoseconds(5ms), nanoseconds(5s)}) {
      Wheel wheel;
      Node nodes[3];
      for (Node& node : nodes) wheel.schedule(node, delay);
      EXPECT_TRUE(nodes[cancelled].cancel());
      EXPECT_EQ(wheel.size(), 2u);
      EXPECT_EQ(wheel.advance(kStart + delay), 2u);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(nodes[i].fired, i == cancelled ? 0 : 1);
    }
  }
}

TEST(PassiveWheel, TheDeadlineStaysAfterTheNodeHasFired) {
  Wheel wheel;
  std::optional<TimePoint> inside;
  Node node([&] { inside = node.deadline(); });
  EXPECT_EQ(node.deadline(), TimePoint());
  wheel.schedule(node, 1234us);
  EXPECT_EQ(node.deadline(), kStart + 1234us);
  wheel.advance_to(10);
  EXPECT_EQ(inside, kStart + 1234us);
  EXPECT_EQ(node.deadline(), kStart + 1234us);
}

TEST(PassiveWheel, SizeCountsScheduledNodes) {
  Wheel wheel;
  std::vector<Node> nodes(100);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    wheel.schedule(nodes[i], static_cast<std::int64_t>(i * i) * 1ms);
    EXPECT_EQ(wheel.size(), i + 1);
  }
  nodes[50].cancel();
  EXPECT_EQ(wheel.size(), 99u);
  EXPECT_EQ(wheel.advance_to(50 * 50), 50u);
  EXPECT_EQ(wheel.size(), 49u);
}

// --- postpone ---

TEST(PassiveWheel, PostponeMovesTheDeadlineOnlyLater) {
  Wheel wheel;
  Node node;
  wheel.schedule(node, 10ms);
  wheel.postpone(node, 3ms);
  wheel.postpone(node, 10ms);
  wheel.postpone(node, -1h);
  EXPECT_EQ(node.deadline(), kStart + 10ms);
  wheel.advance_to(8);
  wheel.postpone(node, 10ms);
  EXPECT_EQ(node.deadline(), kStart + 18ms);
  wheel.postpone(node, 5ms);
  EXPECT_EQ(node.deadline(), kStart + 18ms);
  EXPECT_EQ(wheel.size(), 1u);
  expect_fires_at(wheel, node, kStart + 18ms);
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
}

TEST(PassiveWheel, PostponeIsNothingForANodeThatIsNotScheduledHere) {
  Wheel wheel, other;
  Node node;
  wheel.postpone(node, 1ms);
  EXPECT_FALSE(node.scheduled());
  EXPECT_EQ(node.deadline(), TimePoint());
  other.schedule(node, 5ms);
  wheel.postpone(node, 1h);
  EXPECT_EQ(node.deadline(), kStart + 5ms);
  node.cancel();
  other.postpone(node, 1h);
  EXPECT_FALSE(node.scheduled());
  EXPECT_EQ(node.deadline(), kStart + 5ms);
  other.schedule(node, 5ms);
  EXPECT_EQ(other.advance_to(5), 1u);
  other.postpone(node, 1h);
  EXPECT_EQ(other.size(), 0u);
}

// Over any span, from any place: to a later slot of the same level, of a higher one, again and again.
TEST(PassiveWheel, APostponedNodeFiresAtTheExactTick) {
  for (const std::int64_t first : {1, 10, 255, 256, 300, 65'536, 70'000}) {
    for (const std::int64_t wait : {0, 1, 9, 254, 299}) {
      if (wait >= first) continue;
      for (const std::int64_t later : {1, 245, 246, 247, 255, 256, 300, 1024, 65'535, 65'536, 100'000, 20'000'000}) {
        Wheel wheel;
        Node node;
        wheel.schedule(node, first * 1ms);
        wheel.advance_to(wait);
        wheel.postpone(node, later * 1ms);
        expect_fires_at(wheel, node, kStart + std::max(first, wait + later) * 1ms);
      }
    }
  }
}

TEST(PassiveWheel, AKeepAliveNeverFires) {
  Wheel wheel;
  Node node;
  wheel.schedule(node, 30s);
  std::int64_t now = 0;
  for (int i = 0; i < 1000; ++i) {
    now += 5000;
    EXPECT_EQ(wheel.advance_to(now), 0u);
    wheel.postpone(node, 30s);
  }
  expect_fires_at(wheel, node, kStart + now * 1ms + 30s);
}

TEST(PassiveWheel, SchedulingAgainForgetsAPostponement) {
  Wheel wheel;
  Node node;
  wheel.schedule(node, 10ms);
  wheel.postpone(node, 1h);
  wheel.schedule(node, 20ms);
  EXPECT_EQ(node.deadline(), kStart + 20ms);
  expect_fires_at(wheel, node, kStart + 20ms);
}

TEST(PassiveWheel, ANodePostponedByAnotherOfTheSameTickDoesNotFire) {
  Wheel wheel;
  Node second;
  Node first([&] { wheel.postpone(second, 5ms); });
  wheel.schedule(first, 3ms);
  wheel.schedule(second, 3ms);
  EXPECT_EQ(wheel.advance_to(3), 1u);
  EXPECT_EQ(second.fired, 0);
  expect_fires_at(wheel, second, kStart + 8ms);
}

// --- Inside on_timeout ---

TEST(PassiveWheel, ANodeIsOutOfTheWheelWhenItIsCalled) {
  Wheel wheel;
  Node node([&] {
    EXPECT_FALSE(node.scheduled());
    EXPECT_EQ(wheel.size(), 0u);
    EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
    EXPECT_FALSE(node.cancel());
    wheel.postpone(node, 1h);
    EXPECT_FALSE(node.scheduled());
  });
  wheel.schedule(node, 3ms);
  EXPECT_EQ(wheel.advance_to(3), 1u);
}

TEST(PassiveWheel, ANodeMayScheduleItself) {
  Wheel wheel;
  Node node([&] { wheel.schedule(node, 10ms); });
  wheel.schedule(node, 10ms);
  for (std::int64_t i = 1; i <= 100; ++i) expect_fires_at(wheel, node, kStart + i * 10ms);
}

// ratas: rescheduling from every slot.
TEST(PassiveWheel, ANodeMayScheduleItselfFromEverySlot) {
  for (const std::int64_t delay : {1, 2, 255, 256, 257, 65'536}) {
    Wheel wheel;
    Node node([&] { wheel.schedule(node, delay * 1ms); });
    wheel.schedule(node, delay * 1ms);
    for (std::int64_t i = 1; i <= 600; ++i) ASSERT_EQ(wheel.advance_to(i * delay), 1u) << i;
  }
}

TEST(PassiveWheel, ANodeMayDestroyItself) {
  Wheel wheel;
  std::unique_ptr<Node> node;
  node = std::make_unique<Node>([&] { node.reset(); });
  Node after;
  wheel.schedule(*node, 3ms);
  wheel.schedule(after, 3ms);
  EXPECT_EQ(wheel.advance_to(3), 2u);
  EXPECT_EQ(node, nullptr);
  EXPECT_EQ(after.fired, 1);
}

TEST(PassiveWheel, ANodeMayDestroyAnyOther) {
  for (const nanoseconds other_delay : {nanoseconds(3ms), nanoseconds(4ms), nanoseconds(300ms), nanoseconds(1h)}) {
    Wheel wheel;
    std::vector<std::unique_ptr<Node>> others;
    Node node([&] { others.clear(); });
    wheel.schedule(node, 3ms);
    for (int i = 0; i < 3; ++i) {
      others.push_back(std::make_unique<Node>());
      wheel.schedule(*others.back(), other_delay);
    }
    EXPECT_EQ(wheel.advance(kStart + 2h), 1u);
    EXPECT_EQ(wheel.size(), 0u);
  }
}

// All are due in the same tick. Each destroys one when it runs: itself, one before, or one after.
TEST(PassiveWheel, SiblingsMayDestroyEachOther) {
  constexpr std::size_t kSiblings = 7;
  for (std::size_t killer = 0; killer < kSiblings; ++killer) {
    for (std::size_t victim = 0; victim < kSiblings; ++victim) {
      Wheel wheel;
      std::vector<std::unique_ptr<Node>> siblings;
      for (std::size_t i = 0; i < kSiblings; ++i) {
        siblings.push_back(std::make_unique<Node>([&, i] {
          if (i == killer) siblings[victim].reset();
        }));
      }
      for (const auto& sibling : siblings) wheel.schedule(*sibling, 300ms);
      EXPECT_EQ(wheel.advance_to(300), victim > killer ? kSiblings - 1 : kSiblings);
      for (std::size_t i = 0; i < kSiblings; ++i) EXPECT_TRUE(i == victim || siblings[i]->fired == 1);
    }
  }
}

TEST(PassiveWheel, ANodeMayCancelOrMoveOneThatIsDueAsWell) {
  Wheel wheel;
  Node cancelled, moved;
  Node node([&] {
    EXPECT_TRUE(cancelled.cancel());
    wheel.schedule(moved, 5ms);
  });
  wheel.schedule(node, 3ms);
  wheel.schedule(cancelled, 3ms);
  wheel.schedule(moved, 4ms);
  EXPECT_EQ(wheel.advance_to(10), 1u);
  EXPECT_EQ(cancelled.fired, 0);
  expect_fires_at(wheel, moved, kStart + 15ms);
}

// A delay that is added from inside counts from the time of advance(), not from the tick that runs. Such a node never
// joins that tick.
TEST(PassiveWheel, TheTimeInsideACallbackIsTheArgumentOfAdvance) {
  for (const std::int64_t present : {3, 4, 100, 256, 70'000}) {
    for (const nanoseconds delay : {1ns, nanoseconds(1ms), nanoseconds(253ms), nanoseconds(256ms), nanoseconds(1s)}) {
      Wheel wheel;
      Node added;
      Node node([&] {
        wheel.schedule(added, delay);
        EXPECT_EQ(added.deadline(), kStart + present * 1ms + delay);
      });
      wheel.schedule(node, 3ms);
      EXPECT_EQ(wheel.advance_to(present), 1u);
      expect_fires_at(wheel, added, grid_point_at_or_after(kStart, 1ms, kStart + present * 1ms + delay));
    }
  }
}

TEST(PassiveWheel, AnExceptionLeavesAdvanceAndTheRestFiresOnTheNextCall) {
  Wheel wheel;
  Node before, after, later;
  Node node([] { throw std::runtime_error("thrown inside"); });
  for (Node* const each : {&before, &node, &after}) wheel.schedule(*each, 3ms);
  wheel.schedule(later, 400ms);
  EXPECT_EQ(message_of<std::runtime_error>([&] { wheel.advance_to(500); }), "thrown inside");
  EXPECT_EQ(before.fired, 1);
  EXPECT_EQ(node.fired, 1);
  EXPECT_EQ(after.fired, 0);
  EXPECT_FALSE(node.scheduled());
  EXPECT_EQ(wheel.size(), 2u);
  EXPECT_EQ(wheel.next_tick(), 3);
  EXPECT_EQ(wheel.advance_to(500), 2u);
  EXPECT_EQ(after.fired, 1);
  EXPECT_EQ(later.fired, 1);
}

TEST(PassiveWheel, AdvanceInsideOnTimeoutIsRefused) {
  Wheel wheel, other;
  Node late, others;
  std::string message;
  Node node([&] {
    message = message_of<IllegalState>([&] { wheel.advance_to(1000); });
    EXPECT_EQ(late.fired, 0);
    wheel.schedule(late, 1ms);
    EXPECT_EQ(late.deadline(), kStart + 4ms) << "the refused call did not change the time";
    EXPECT_EQ(other.advance_to(5), 1u) << "another wheel is free";
  });
  wheel.schedule(node, 3ms);
  wheel.schedule(late, 500ms);
  other.schedule(others, 5ms);
  EXPECT_EQ(wheel.advance_to(3), 1u);
  EXPECT_TRUE(contains(message, "advance()")) << message;
  EXPECT_TRUE(contains(message, "on_timeout()")) << message;
  EXPECT_EQ(wheel.advance_to(4), 1u) << "afterwards it is allowed again";
}

TEST(PassiveWheel, CancelAllInsideOnTimeoutEndsTheAdvance) {
  Wheel wheel;
  Node same, later, added;
  Node node([&] {
    EXPECT_EQ(wheel.cancel_all(), 2u);
    EXPECT_EQ(wheel.size(), 0u);
    wheel.schedule(added, 1ms);
  });
  for (Node* const each : {&node, &same}) wheel.schedule(*each, 3ms);
  wheel.schedule(later, 400ms);
  EXPECT_EQ(wheel.advance_to(500), 1u);
  EXPECT_EQ(wheel.size(), 1u);
  expect_fires_at(wheel, added, kStart + 501ms);
  EXPECT_EQ(same.fired + later.fired, 0);
}

/// A wheel in memory that is overwritten after its destruction, so that a later access shows.
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

TEST(PassiveWheel, TheWheelMayBeDestroyedInsideOnTimeout) {
  DestroyedWheel destroyed;
  Node same, later;
  Node node([&] { destroyed.destroy(); });
  for (Node* const each : {&node, &same}) destroyed.wheel->schedule(*each, 3ms);
  destroyed.wheel->schedule(later, 400ms);
  EXPECT_EQ(destroyed.wheel->advance_to(500), 1u);
  destroyed.expect_untouched();
  for (const Node* const each : {&node, &same, &later}) EXPECT_FALSE(each->scheduled());
  EXPECT_EQ(same.fired + later.fired, 0);
}

TEST(PassiveWheel, TheWheelMayBeDestroyedInsideOnTimeoutThatThrows) {
  DestroyedWheel destroyed;
  Node node([&] {
    destroyed.destroy();
    throw std::runtime_error("thrown inside");
  });
  destroyed.wheel->schedule(node, 3ms);
  EXPECT_EQ(message_of<std::runtime_error>([&] { destroyed.wheel->advance_to(500); }), "thrown inside");
  destroyed.expect_untouched();
}

// --- Lifetime ---

TEST(PassiveWheel, ANodeThatGoesLeavesTheWheel) {
  Wheel wheel;
  {
    Node near, far;
    wheel.schedule(near, 3ms);
    wheel.schedule(far, 1h);
  }
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  EXPECT_EQ(wheel.advance(kStart + 2h), 0u);
}

TEST(PassiveWheel, AWheelThatGoesUnlinksItsNodes) {
  Node near, far;
  {
    Wheel wheel;
    wheel.schedule(near, 3ms);
    wheel.schedule(far, 1h);
  }
  EXPECT_FALSE(near.scheduled());
  EXPECT_FALSE(far.cancel());
  Wheel next;
  next.schedule(near, 3ms);
  expect_fires_at(next, near, kStart + 3ms);
}

TEST(PassiveWheel, CancelAllTellsHowManyAndLeavesTheWheelUsable) {
  Wheel wheel;
  EXPECT_EQ(wheel.cancel_all(), 0u);
  std::vector<Node> nodes(1000);
  std::mt19937_64 random(1);
  for (Node& node : nodes) wheel.schedule(node, nanoseconds(static_cast<std::int64_t>(random() >> 1)));
  EXPECT_EQ(wheel.cancel_all(), 1000u);
  for (const Node& node : nodes) EXPECT_FALSE(node.scheduled());
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.schedule(nodes[0], 3ms);
  expect_fires_at(wheel, nodes[0], kStart + 3ms);
}

// --- Order, jumps, time ---

TEST(PassiveWheel, AJumpRunsEverythingOnceInTheOrderOfTicks) {
  Wheel wheel;
  std::vector<std::int64_t> ran;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::int64_t> due;
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) {
    due.push_back(static_cast<std::int64_t>(random() >> (30 + random() % 30)) + 1);
    nodes.push_back(std::make_unique<Node>([&ran, tick = due.back()] { ran.push_back(tick); }));
    wheel.schedule(*nodes.back(), due.back() * 1ms);
  }
  std::sort(due.begin(), due.end());
  EXPECT_EQ(wheel.advance_to(due.back()), due.size());
  EXPECT_EQ(ran, due);
}

TEST(PassiveWheel, NodesOfOneTickRunInTheOrderOfTheirScheduling) {
  for (const std::int64_t due : {3, 300, 70'000}) {
    Wheel wheel;
    Numbered numbered;
    for (int i = 0; i < 20; ++i) {
      // Each node comes from nearer than the one before. The earlier nodes must be moved down before it is linked.
      const std::int64_t now = due * i / 20;
      wheel.advance_to(now);
      wheel.schedule(numbered.add(), (due - now) * 1ms);
    }
    EXPECT_EQ(wheel.advance_to(due), 20u);
    EXPECT_TRUE(std::is_sorted(numbered.ran.begin(), numbered.ran.end()));
  }
}

// 292 years of nanoseconds: counting them off would take years.
TEST(PassiveWheel, EmptyTicksCostNothing) {
  PassiveWheel wheel(1ns, TimePoint());
  Node first, last;
  wheel.schedule(first, 1ns);
  wheel.schedule(last, nanoseconds::max());
  EXPECT_EQ(wheel.advance(TimePoint::max() - 1ns), 1u);
  EXPECT_EQ(wheel.advance(TimePoint::max()), 1u);
}

TEST(PassiveWheel, ANodeAddedAfterAnOversleptWakeUpIsNotEarly) {
  Wheel wheel;
  Node overslept, added;
  wheel.schedule(overslept, 10ms);
  EXPECT_EQ(wheel.advance_to(5000), 1u);
  wheel.schedule(added, 10ms);
  expect_fires_at(wheel, added, kStart + 5010ms);
}

TEST(PassiveWheel, TimeNeverGoesBack) {
  Wheel wheel;
  Node node, second;
  wheel.advance_to(100);
  wheel.schedule(node, 10ms);
  EXPECT_EQ(wheel.advance(kStart - 1h), 0u);
  EXPECT_EQ(wheel.advance(TimePoint::min()), 0u);
  EXPECT_EQ(wheel.advance_to(99), 0u);
  wheel.schedule(second, 5ms);
  EXPECT_EQ(second.deadline(), kStart + 105ms);
  expect_fires_at(wheel, second, kStart + 105ms);
  expect_fires_at(wheel, node, kStart + 110ms);
}

TEST(PassiveWheel, ATimeBeforeTheStartCountsAsTheStart) {
  Wheel wheel;
  Node node;
  EXPECT_EQ(wheel.advance(kStart - 1s), 0u);
  wheel.schedule(node, 1ms);
  EXPECT_EQ(node.deadline(), kStart + 1ms);
  expect_fires_at(wheel, node, kStart + 1ms);
}

// --- max_tasks ---

TEST(PassiveWheel, MaxTasksBoundsAnAdvanceAndTheNextOneGoesOn) {
  Wheel wheel;
  Numbered numbered;
  for (int i = 0; i < 10; ++i) wheel.schedule(numbered.add(), (i / 4) * 200ms + 100ms);  // four of a tick, two levels
  EXPECT_EQ(wheel.advance_to(1000, 0), 0u);
  EXPECT_EQ(wheel.advance_to(1000, 3), 3u);
  EXPECT_EQ(wheel.next_tick(), 100) << "a loop that asks does not sleep";
  EXPECT_EQ(wheel.advance_to(1000, 3), 3u);
  EXPECT_EQ(wheel.advance_to(0, 3), 3u);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(wheel.advance_to(1000, 3), 1u);
  EXPECT_EQ(wheel.advance_to(1000, 3), 0u);
  EXPECT_EQ(numbered.ran, std::vector<int>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(PassiveWheel, ANodeScheduledBetweenTwoPartsComesAfterOverdueNodes) {
  Wheel wheel;
  Numbered numbered;
  for (const auto delay : {100ms, 100ms, 300ms}) wheel.schedule(numbered.add(), delay);
  EXPECT_EQ(wheel.advance_to(1000, 1), 1u);
  wheel.schedule(numbered.add(), 0ns);
  EXPECT_EQ(wheel.advance_to(1001, 1), 1u);
  EXPECT_EQ(wheel.advance_to(1001), 2u);
  EXPECT_EQ(numbered.ran, std::vector<int>({0, 1, 2, 3}));
}

TEST(PassiveWheel, MaxTasksCountsOnlyTasksThatRun) {
  Wheel wheel;
  std::vector<Node> postponed(100);
  for (Node& node : postponed) {
    wheel.schedule(node, 10ms);
    wheel.postpone(node, 1h);
  }
  Node node;
  wheel.schedule(node, 20ms);
  EXPECT_EQ(wheel.advance_to(20, 1), 1u);
  EXPECT_EQ(node.fired, 1);
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

TEST(PassiveWheel, ANodeScheduledWhileOthersComeNearerQueuesUpBehindThem) {
  constexpr int kNodes = 50'000;
  constexpr std::int64_t kDue = 65'536 + 700;
  Wheel wheel;
  Numbered numbered;
  const auto schedule = [&](std::int64_t after) { wheel.schedule(numbered.add(), after * 1ms); };
  for (int i = 0; i < kNodes; ++i) schedule(kDue);
  const std::int64_t now = 65'536 + 3;
  std::size_t calls = 0;
  for (; wheel.advance_to(now, 100) == 0 && wheel.next_tick() <= now; ++calls) schedule(kDue - now);
  EXPECT_GT(calls, 3u);
  EXPECT_EQ(wheel.advance_to(kDue - 1), 0u);
  EXPECT_EQ(wheel.advance_to(kDue), kNodes + calls);
  EXPECT_TRUE(std::is_sorted(numbered.ran.begin(), numbered.ran.end()));
}

TEST(PassiveWheel, NodesThatComeNearerMayBeCancelledOnTheWay) {
  constexpr int kNodes = 50'000;
  Wheel wheel;
  std::vector<Node> nodes(kNodes);
  for (Node& node : nodes) wheel.schedule(node, 70'000ms);
  EXPECT_EQ(wheel.advance_to(69'999, 1), 0u);
  EXPECT_LE(wheel.next_tick(), 69'999);
  EXPECT_EQ(wheel.cancel_all(), nodes.size());
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  wheel.schedule(nodes[0], 10ms);
  EXPECT_EQ(wheel.advance_to(70'008, 1), 0u);
  EXPECT_EQ(wheel.advance_to(70'009, 1), 1u);
  EXPECT_EQ(nodes[0].fired, 1);
}

// --- next_wakeup ---

TEST(PassiveWheel, NextWakeupIsNothingWhenTheWheelIsEmpty) {
  Wheel wheel;
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
  Node node;
  wheel.schedule(node, 5ms);
  EXPECT_EQ(wheel.next_wakeup(), kStart + 5ms);
  wheel.advance_to(5);
  EXPECT_EQ(wheel.next_wakeup(), std::nullopt);
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

TEST(PassiveWheel, NextWakeupIsInTheFutureUnlessSomethingIsLeftOver) {
  for (std::int64_t from = 0; from < 600; from += 7) {
    for (const std::int64_t delay : {0, 1, 2, 50, 255, 256, 300, 65'536, 70'000}) {
      Wheel wheel;
      wheel.advance_to(from);
      Node node;
      wheel.schedule(node, delay * 1ms);
      ASSERT_GT(wheel.next_tick(), from);
      ASSERT_LE(wheel.next_tick(), from + std::max<std::int64_t>(delay, 1));
    }
  }
}

// The later one is at a lower level than the earlier one. Taking the first level with an item would be late.
TEST(PassiveWheel, NextWakeupIsNeverLateWithMixedLevels) {
  Wheel wheel;
  Node early, late;
  wheel.schedule(early, 300ms);
  EXPECT_EQ(wheel.advance_to(250), 0u);
  wheel.schedule(late, 150ms);  // 400
  ASSERT_LE(wheel.next_tick(), 300);
  expect_fires_at(wheel, early, kStart + 300ms);
  ASSERT_LE(wheel.next_tick(), 400);
  expect_fires_at(wheel, late, kStart + 400ms);
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

TEST(PassiveWheel, NextWakeupOfAPostponedNodeIsNeverLate) {
  Wheel wheel;
  Node node, other;
  wheel.schedule(node, 10ms);
  wheel.postpone(node, 500ms);
  wheel.schedule(other, 400ms);
  int wakeups = 0;
  while (node.fired == 0) {
    const std::optional<TimePoint> wakeup = wheel.next_wakeup();
    ASSERT_TRUE(wakeup.has_value());
    ASSERT_LE(*wakeup, kStart + (other.fired == 0 ? 400ms : 500ms));
    wheel.advance(*wakeup);
    ASSERT_LE(++wakeups, 6);
  }
  EXPECT_EQ(other.fired, 1);
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
    const std::size_t now = wheel.advance_to(1000, 1000);
    EXPECT_LE(now, 1000u);
    without += now == 0 ? 1 : 0;
    ran += now;
  }
  EXPECT_GE(without, 1);
  for (const Node& node : nodes) ASSERT_EQ(node.fired, 1);
}

}  // namespace
}  // namespace hwt
