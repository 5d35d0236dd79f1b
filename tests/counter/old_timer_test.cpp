// Timers that have run for days or centuries: their clock is set back while they start.

#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/time/cycle_counter.h"
#include "tests/support/ages.h"
#include "tests/support/any_timer.h"

namespace hwt {
namespace {

thread_local std::int64_t set_back_by = 0;  // ns

}  // namespace

namespace internal {

std::int64_t steady_now() noexcept { return true_steady_now() - set_back_by; }
bool cycle_counter::is_the_clock() noexcept { return false; }
std::uint64_t cycle_counter::read() noexcept { return 0; }

}  // namespace internal

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

template <class T, std::int64_t kTick>
struct Kind {
  using Type = T;
  static constexpr nanoseconds tick{kTick};
};

/// Makes and starts a timer that has run for this time.
template <class T>
std::unique_ptr<T> make_old(nanoseconds tick, nanoseconds age) {
  constexpr std::int64_t kSlots = 64;
  const Options options{.tick_duration = tick, .ticks_per_wheel = kSlots};
  std::unique_ptr<T> timer;
  if constexpr (std::is_same_v<T, ManualTimer>) {
    const std::chrono::steady_clock::time_point now(5s);
    timer = std::make_unique<T>(options, now - age);
    timer->advance_to(now);
  } else if constexpr (test::kDriven<T>) {
    set_back_by = age.count();
    timer = std::make_unique<T>(options);
  } else {
    timer = std::make_unique<T>(options);
    set_back_by = age.count();
    timer->start();
  }
  set_back_by = 0;
  return timer;
}

/// Timeouts of one timer. A quarter stays where it is. Others are moved earlier, moved later, and cancelled.
template <class T>
class Life {
 public:
  Life(nanoseconds tick, nanoseconds age) : timer_(make_old<T>(tick, age)) {
    timer_->new_timeout([this] { ++cancelled_ran_; }, nanoseconds::max());
    const auto now = timer_->now();
    for (int i = 0; i < kTimeouts; ++i) {
      const auto task = [this, i](Timeout& self) {
        if (timer_->now() < self.deadline()) ++early_;
        if (i % 4 == 0) order_.push_back(i);
        ++(i % 4 == 3 ? cancelled_ran_ : ran_);
      };
      const auto due = now + i * 1ms;
      Timeout timeout = timer_->new_timeout(task, i % 2 == 0 ? due : now + 1h);
      // Moving later fails if this thread was held up.
      const bool done = i % 4 == 3 ? timeout.cancel() : i % 4 != 0 && timeout.reschedule(i % 4 == 1 ? due : due + 40ms);
      EXPECT_TRUE(done || i % 2 == 0);
    }
  }

  void expect_all_ran() {
    EXPECT_TRUE(test::passes_until(*timer_, [this] { return timer_->pending_timeouts() == 1; })) << "late or lost";
    EXPECT_EQ(timer_->stop().size(), 1u);
    EXPECT_EQ(ran_, kTimeouts / 4 * 3);
    EXPECT_EQ(cancelled_ran_, 0);
    EXPECT_EQ(early_, 0);
    EXPECT_TRUE(std::is_sorted(order_.begin(), order_.end()));
  }

 private:
  static constexpr int kTimeouts = 40;

  std::atomic<int> ran_ = 0, cancelled_ran_ = 0, early_ = 0;
  std::vector<int> order_;
  const std::unique_ptr<T> timer_;
};

template <class Kind>
class OldTimer : public ::testing::Test {};

// Not with ticks of a nanosecond, because a timer can count only 2^63 ticks. Tests of ManualTimer have such ticks.
using Kinds = ::testing::Types<Kind<HashedWheelTimer, 1'000'000>, Kind<HierarchicalWheelTimer, 1'000'000>,
                               Kind<HierarchicalWheelTimer, 1'000>, Kind<ManualTimer, 7>, Kind<ManualTimer, 1'000'000>,
                               Kind<LoopTimer, 7>, Kind<LoopTimer, 1'000'000>>;
TYPED_TEST_SUITE(OldTimer, Kinds);

TYPED_TEST(OldTimer, NothingIsEarlyOrLostAtACarry) {
  using T = typename TypeParam::Type;
  constexpr int kDigitBits = 6;
  const nanoseconds tick = TypeParam::tick;
  std::vector<nanoseconds> ages;
  std::vector<std::unique_ptr<Life<T>>> lives;
  for (const std::int64_t carry : test::carries(kDigitBits, nanoseconds::max() / tick, tick)) {
    ages.push_back(std::max(carry * tick - 15ms, nanoseconds(0)));
    lives.push_back(std::make_unique<Life<T>>(tick, ages.back()));
  }
  for (std::size_t i = 0; i < lives.size(); ++i) {
    SCOPED_TRACE("age in ns: " + std::to_string(ages[i].count()));
    lives[i]->expect_all_ran();
  }
}

}  // namespace
}  // namespace hwt
