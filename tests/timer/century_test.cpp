// A hundred years in one run: no timeout is early, late or lost. tests/wheel walks through all ages of each wheel.

#include <bit>

#include "hashed_wheel_timer/passive_wheel.h"
#include "tests/support/any_timer.h"

namespace hwt::test {
namespace {

using std::chrono::nanoseconds;
using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::size_t kTimeouts = 50;
constexpr nanoseconds kCentury = 24h * 36'525;
constexpr TimePoint kStart(123'456'789ns);

/// Is called with the number of a timeout that expires, and with the present time.
using Expired = std::function<void(std::size_t, TimePoint)>;

class OfManualTimer {
 public:
  OfManualTimer(nanoseconds tick, Expired expired) : expired_(std::move(expired)), timer_(tick, kStart) {}

  void set(std::size_t i, TimePoint deadline) {
    if (timeouts_[i].reschedule(deadline)) return;
    timeouts_[i] = timer_.new_timeout([this, i] { expired_(i, timer_.now()); }, deadline);
  }
  void pass(nanoseconds time) { timer_.advance(time); }

 private:
  const Expired expired_;
  ManualTimer timer_;
  std::vector<Timeout> timeouts_{kTimeouts};
};

class OfPassiveWheel {
 public:
  OfPassiveWheel(nanoseconds tick, Expired expired) : expired_(std::move(expired)), wheel_(tick, kStart) {
    for (Node& node : nodes_) node.owner = this;
  }

  void set(std::size_t i, TimePoint deadline) { wheel_.schedule(nodes_[i], deadline); }
  void pass(nanoseconds time) {
    for (const TimePoint end = kStart + time; *wheel_.next_wakeup() <= end;) {
      ASSERT_GT(*wheel_.next_wakeup(), now_) << "does not sleep";
      now_ = *wheel_.next_wakeup();
      wheel_.advance(now_);
    }
  }

 private:
  struct Node : WheelNode {
    void on_timeout() override { owner->expired_(static_cast<std::size_t>(this - owner->nodes_.data()), owner->now_); }
    OfPassiveWheel* owner = nullptr;
  };

  const Expired expired_;
  TimePoint now_ = kStart;
  PassiveWheel wheel_;
  std::vector<Node> nodes_{kTimeouts};
};

/// Each timeout that expires is set again. The first one is periodic, the others have delays of all sizes, up to the
/// century. Some that are pending are moved, too.
template <class Kind>
class Life {
 public:
  explicit Life(nanoseconds tick)
      : tick_(tick), kind_(tick, [this](std::size_t i, TimePoint now) { expired(i, now); }) {
    for (std::size_t i = 0; i < kTimeouts; ++i) set(i, kStart);
  }

  void pass_a_century() {
    kind_.pass(kCentury);
    EXPECT_EQ(periods_, kCentury / kPeriod);
    EXPECT_GT(expired_, 1'000) << "the delays are too long";
    for (const TimePoint due : due_) EXPECT_GT(due, kStart + kCentury / tick_ * tick_) << "lost";
  }

 private:
  static constexpr nanoseconds kPeriod = 24h * 7;

  void set(std::size_t i, TimePoint now) {
    const auto bits =
        random_() % static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(kCentury / tick_)));
    const auto ticks = static_cast<std::int64_t>(random_() % (std::uint64_t{1} << bits)) + 1;
    // The first grid point at or after the deadline.
    due_[i] = i == 0 ? now + kPeriod : now + ticks * tick_;
    kind_.set(i,
              due_[i] - nanoseconds(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(tick_.count()))));
  }
  void expired(std::size_t i, TimePoint now) {
    ASSERT_EQ(now, due_[i]) << "timeout " << i << " is early or late";
    ++(i == 0 ? periods_ : expired_);
    set(i, now);
    if (random_() % 4 == 0) set(1 + random_() % (kTimeouts - 1), now);
  }

  const nanoseconds tick_;
  std::mt19937_64 random_{1};
  std::vector<TimePoint> due_{kTimeouts};
  std::int64_t periods_ = 0;
  std::int64_t expired_ = 0;
  Kind kind_;
};

/// A century in one of these costs 15 seconds under a sanitizer.
const std::vector<nanoseconds> kTicks =
    kSanitized ? std::vector<nanoseconds>{1us} : std::vector<nanoseconds>{1ns, 1us, 1ms};

TEST(Century, OfAManualTimer) {
  for (const nanoseconds tick : kTicks) Life<OfManualTimer>(tick).pass_a_century();
}

TEST(Century, OfAPassiveWheel) {
  for (const nanoseconds tick : kTicks) Life<OfPassiveWheel>(tick).pass_a_century();
}

}  // namespace
}  // namespace hwt::test
