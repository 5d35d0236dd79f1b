// The promises of kj::Timer, kept by the timer of docs/examples/kj_http. The tests also run on kj's own timer, which
// has no tick.

#include <gtest/gtest.h>
#include <kj/async-io.h>
#include <kj/async.h>
#include <kj/common.h>
#include <kj/function.h>
#include <kj/time.h>
#include <kj/timer.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "docs/examples/kj_http/wheel_timer.h"

namespace kj_http {
namespace {

constexpr kj::Duration kTick = kj::MILLISECONDS;
const kj::TimePoint kStart = kj::origin<kj::TimePoint>() + 5 * kj::SECONDS + 123'456 * kj::NANOSECONDS;

/// A timer in a simulated loop: time passes only in advance().
class KjTimer : public testing::TestWithParam<bool> {
 protected:
  ~KjTimer() noexcept override = default;

  bool on_wheel() const { return GetParam(); }
  kj::Timer& timer() { return on_wheel() ? static_cast<kj::Timer&>(wheel_timer_) : loop_timer_; }

  void advance(kj::Duration duration) {
    const kj::TimePoint end = loop_timer_.now() + duration;
    // As an event port does: it wakes up for each event.
    for (bool more = true; more;) {
      more = false;
      KJ_IF_MAYBE (time, loop_timer_.nextEvent()) {
        if (*time > end) break;
        loop_timer_.advanceTo(std::max(*time, loop_timer_.now()));
        scope_.poll();
        more = true;
      }
    }
    loop_timer_.advanceTo(end);
    scope_.poll();
  }

  /// Notes in `times` when the promise resolves.
  kj::Promise<void> note(kj::Promise<void> promise, std::vector<kj::TimePoint>& times) {
    return promise.then([this, &times] { times.push_back(timer().now()); }).eagerlyEvaluate(nullptr);
  }

  kj::EventLoop loop_;
  kj::WaitScope scope_{loop_};
  kj::TimerImpl loop_timer_{kStart};
  WheelTimer wheel_timer_{loop_timer_, kTick};
  std::vector<kj::TimePoint> times_;
};

INSTANTIATE_TEST_SUITE_P(Of, KjTimer, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Wheel" : "Kj"; });

TEST_P(KjTimer, ResolvesATimeThatHasPassedWithTheNextTick) {
  const auto past = note(timer().atTime(kStart - 1 * kj::SECONDS), times_);
  const auto present = note(timer().atTime(kStart), times_);
  const auto none = note(timer().afterDelay(0 * kj::SECONDS), times_);
  scope_.poll();
  EXPECT_TRUE(times_.empty());  // the loop looks at its other events first
  advance(kTick);
  EXPECT_EQ(times_.size(), 3U);
}

TEST_P(KjTimer, ForgetsAPromiseThatIsDropped) {
  bool resolved = false;
  {
    const auto dropped =
        timer().afterDelay(10 * kj::MILLISECONDS).then([&] { resolved = true; }).eagerlyEvaluate(nullptr);
    const auto kept = note(timer().afterDelay(10 * kj::MILLISECONDS), times_);
    advance(5 * kj::MILLISECONDS);
  }
  advance(1 * kj::SECONDS);
  EXPECT_FALSE(resolved);
  EXPECT_TRUE(times_.empty());
  EXPECT_TRUE(loop_timer_.nextEvent() == nullptr);
}

/// Of WheelTimer alone: kj's own timer adds the longest delay to the time, and overflows.
class KjTimerOnWheel : public KjTimer {};

INSTANTIATE_TEST_SUITE_P(Of, KjTimerOnWheel, testing::Values(true), [](const auto&) { return "Wheel"; });

TEST_P(KjTimerOnWheel, NeverResolvesTheLongestDelay) {
  const auto never = note(timer().afterDelay(std::numeric_limits<std::int64_t>::max() * kj::NANOSECONDS), times_);
  const auto soon = note(timer().afterDelay(1 * kj::SECONDS), times_);
  advance(1000 * kj::DAYS);
  EXPECT_EQ(times_.size(), 1U);
}

TEST_P(KjTimer, SchedulesAgainInsideAContinuation) {
  int turns = 0;
  kj::Function<kj::Promise<void>()> turn = [&]() -> kj::Promise<void> {
    return timer().afterDelay(10 * kj::MILLISECONDS).then([&]() -> kj::Promise<void> {
      if (++turns == 50) return kj::READY_NOW;
      return turn();
    });
  };
  const auto running = turn().eagerlyEvaluate(nullptr);
  advance(499 * kj::MILLISECONDS);
  EXPECT_LT(turns, 50);
  advance(50 * kTick + 1 * kj::MILLISECONDS);
  EXPECT_EQ(turns, 50);
}

// Random promises, made and dropped, against a list of their times.
TEST_P(KjTimer, ResolvesEachPromiseOfManyInItsTick) {
  std::mt19937 random(1);
  struct Waiting {
    kj::TimePoint time;
    kj::Promise<void> promise;
  };
  std::map<int, Waiting> waiting;
  int resolved = 0;
  const auto check_late = [&] {
    const kj::Duration slack = on_wheel() ? kTick : 0 * kTick;
    for (const auto& [number, one] : waiting) ASSERT_TRUE(one.time + slack > timer().now()) << number;
  };
  for (int i = 0; i < 5'000; ++i) {
    const kj::TimePoint time = timer().now() + random() % 3'000'000 * kj::MICROSECONDS;
    kj::Promise<void> made = i % 2 == 0 ? timer().atTime(time) : timer().afterDelay(time - timer().now());
    kj::Promise<void> promise = made.then([&, i] {
      const auto own = waiting.find(i);
      EXPECT_TRUE(timer().now() >= own->second.time) << "early";
      own->second.time = kStart + 10'000 * kj::DAYS;  // resolved
      ++resolved;
    });
    waiting.insert({i, Waiting{time, promise.eagerlyEvaluate(nullptr)}});
    if (random() % 2 == 0)
      waiting.erase(waiting.lower_bound(static_cast<int>(random() % static_cast<unsigned>(i + 1))));
    if (random() % 8 == 0) {
      advance(random() % 50'000 * kj::MICROSECONDS);
      check_late();
    }
  }
  advance(4 * kj::SECONDS);
  check_late();
  EXPECT_GT(resolved, 100);
}

// The promise of a timer that was destroyed never resolves. The other tests destroy the promises first.
TEST(KjWheelTimer, ThatWasDestroyedResolvesNoPromise) {
  kj::EventLoop loop;
  kj::WaitScope scope(loop);
  kj::TimerImpl loop_timer(kStart);
  kj::Promise<void> left = nullptr;
  {
    WheelTimer timer(loop_timer);
    left = timer.afterDelay(1 * kj::SECONDS);
  }
  loop_timer.advanceTo(kStart + 2 * kj::SECONDS);
  EXPECT_FALSE(left.poll(scope));
  EXPECT_TRUE(loop_timer.nextEvent() == nullptr);
}

// In the loop of kj::setupAsyncIo(), which sleeps in epoll.
TEST(KjWheelTimer, RunsInTheLoopOfKj) {
  auto io = kj::setupAsyncIo();
  WheelTimer timer(io.provider->getTimer());
  const auto& clock = kj::systemPreciseMonotonicClock();
  const kj::TimePoint start = clock.now();
  timer.atTime(start + 20 * kj::MILLISECONDS).wait(io.waitScope);
  EXPECT_TRUE(clock.now() - start >= 20 * kj::MILLISECONDS);
}

}  // namespace
}  // namespace kj_http
