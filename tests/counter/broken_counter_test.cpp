// Promise 1 of README.md, never early, with a cycle counter that breaks while a timer uses it.

#include <cstdio>

#include "hashed_wheel_timer/hierarchical_wheel_timer.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/time/cycle_counter.h"
#include "hashed_wheel_timer/loop_timer.h"
#include "tests/support/test_support.h"

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

enum class Fault { None, Fast, Slow, Slewed, Still, Back, FarBack };

std::atomic<Fault> fault{Fault::None};
std::atomic<std::uint64_t> broken_at{0};  // cycles

/// A counter of two cycles in a nanosecond.
std::uint64_t unbroken_counter() { return 2 * static_cast<std::uint64_t>(hwt::internal::true_steady_now()); }

void break_it(Fault how) {
  broken_at = unbroken_counter();
  fault = how;
}

}  // namespace

std::int64_t hwt::internal::steady_now() noexcept { return true_steady_now(); }

bool hwt::internal::cycle_counter::is_the_clock() noexcept { return true; }

std::uint64_t hwt::internal::cycle_counter::read() noexcept {
  const std::uint64_t real = unbroken_counter();
  const std::uint64_t since = real - broken_at;
  switch (fault) {
    case Fault::Fast:
      return real + since;
    case Fault::Slow:
      return real - since / 2;
    case Fault::Slewed:
      return real - since / 13;  // as if the clock were slewed by 83,333 millionths
    case Fault::Still:
      return real - since;
    case Fault::Back:
      return real - 600'000;  // 300 us, less than CycleRate::kWindow: a thread may not notice it
    case Fault::FarBack:
      return real / 2;
    case Fault::None:
      break;
  }
  return real;
}

namespace {

/// Uses the timer until it uses the counter.
template <class T>
void await_counter(T& timer) {
  while (!timer.stats().counts_cycles) {
    timer.cancel(timer.add([] {}, 1h));
    std::this_thread::sleep_for(1ms);
  }
}

/// Calls `schedule` with a task. Waits until the task has run, and calls `turn` meanwhile. Returns by how much the task
/// was later than `delay` after the call; a negative time: it was early.
template <class Schedule, class Turn>
nanoseconds lateness_of(nanoseconds delay, Schedule schedule, Turn turn) {
  const auto due = steady_clock::now() + delay;
  std::atomic<std::int64_t> late{0};
  std::atomic<bool> ran{false};
  schedule([&] {
    late = (steady_clock::now() - due) / 1ns;
    ran = true;
  });
  while (!ran) turn();
  return nanoseconds(late);
}
/// Of a timer with a worker.
nanoseconds lateness_of(hwt::Timer& timer, nanoseconds delay) {
  return lateness_of(delay, [&](auto task) { timer.add(task, delay); }, [] { std::this_thread::sleep_for(1ms); });
}

/// Two threads schedule, one of them few timeouts and one many. Returns how late the earliest task was: a negative time
/// if it was early, and 0 otherwise.
template <class T>
nanoseconds earliest(T& timer) {
  std::atomic<std::int64_t> least{0};
  std::atomic<int> left{0};
  const auto schedule = [&](std::chrono::microseconds delay) {
    ++left;
    const auto due = steady_clock::now() + delay;
    timer.add(
        [&, due] {
          const std::int64_t late = (steady_clock::now() - due) / 1ns;
          std::int64_t seen = least.load();
          while (late < seen && !least.compare_exchange_weak(seen, late)) {
          }
          --left;
        },
        delay);
  };
  std::thread much([&] {
    for (int i = 0; i < 20'000; ++i) schedule(std::chrono::microseconds(i % 3000));
  });
  for (int i = 0; i < 60; ++i) {
    schedule(std::chrono::microseconds(100 * (i % 30)));
    std::this_thread::sleep_for(500us);
  }
  much.join();
  while (left.load() != 0) std::this_thread::sleep_for(1ms);
  return nanoseconds(least.load());
}

class BrokenCounter : public testing::TestWithParam<Fault> {
 protected:
  void SetUp() override { break_it(Fault::None); }
  void TearDown() override { break_it(Fault::None); }

  /// Uses the timer before and after its counter breaks.
  template <class T>
  void expect_nothing_early(T& timer) {
    await_counter(timer);
    EXPECT_GE(earliest(timer), 0ns);
    break_it(GetParam());
    EXPECT_GE(earliest(timer), 0ns);
    EXPECT_EQ(timer.stats().counts_cycles, GetParam() == Fault::None);
  }
};

TEST_P(BrokenCounter, NothingIsEarlyInATimerWithAWorker) {
  hwt::HashedWheelTimer hashed{{.tick_duration = 1ms}};
  expect_nothing_early(hashed);
  break_it(Fault::None);
  hwt::HierarchicalWheelTimer hierarchical{{.tick_duration = 100us}};
  expect_nothing_early(hierarchical);
}

TEST_P(BrokenCounter, NothingIsEarlyInALoopThatSleepsAsLongAsItsTimerSays) {
  hwt::LoopTimer timer{{.tick_duration = 1ms}};
  await_counter(timer);
  timer.cancel(timer.add([] {}, 1h));  // from now on this thread relies on the counter for a millisecond
  break_it(GetParam());
  std::this_thread::sleep_for(7ms);
  int turns = 0;
  const auto schedule = [&](auto task) { timer.add(task, 5ms); };
  const auto late = lateness_of(5ms, schedule, [&] {
    const auto next = timer.run_due();
    if (next) std::this_thread::sleep_until(*next);
    ++turns;
  });
  EXPECT_GE(late, 0ns);
  EXPECT_LE(turns, 5) << "the loop is called too early";
}

/// Each comparison of the clocks allows an error of a microsecond, and such a loop makes many.
TEST_P(BrokenCounter, NothingIsEarlyInALoopThatNeverSleeps) {
  for (int round = 0; round < 20; ++round) {
    break_it(Fault::None);
    hwt::LoopTimer timer{{.tick_duration = 100us}};
    await_counter(timer);
    timer.run_due();
    timer.cancel(timer.add([] {}, 1h));  // from now on this thread relies on the counter for a millisecond
    break_it(GetParam());
    const auto broken = steady_clock::now();
    while (steady_clock::now() - broken < 900us) {
      timer.run_due();
      if (round % 2 == 0) std::this_thread::sleep_for(1us);
    }
    EXPECT_GE(lateness_of(1ms, [&](auto task) { timer.add(task, 1ms); }, [&] { timer.run_due(); }), 0ns);
  }
}

/// Breaks the counter in its cancelled(), and lets another thread schedule meanwhile.
class Breaking final : public hwt::TimerTask {
 public:
  explicit Breaking(Fault fault) : fault_(fault) {}
  void run(hwt::Timeout&) override {}
  void cancelled(hwt::Timeout&) override {
    break_it(fault_);
    is_broken = true;
    while (!is_scheduled) std::this_thread::yield();
  }

  std::atomic<bool> is_broken{false}, is_scheduled{false};

 private:
  const Fault fault_;
};

/// Runs a timer whose counter goes back during a pass. turn() drives the timer, or does nothing.
template <class T>
void expect_nothing_early_in_a_pass(void (*turn)(T&)) {
  for (int round = 0; round < 50; ++round) {
    break_it(Fault::None);
    T timer{{.tick_duration = 100us}};
    await_counter(timer);
    const auto breaking = std::make_shared<Breaking>(Fault::Back);
    hwt::Timeout timeout = timer.new_timeout(breaking, 1h);
    timer.add([] {}, 0us);  // the entries of this thread have the first turn
    std::atomic<bool> ran{false};
    std::thread other([&] {
      // This thread relies on the counter, and its place is due.
      while (!breaking->is_broken) {
        timer.add([] {}, 0us);
        const auto soon = steady_clock::now() + 5us;  // few tasks, which run first
        while (steady_clock::now() < soon) {
        }
      }
      const auto due = steady_clock::now() + 100us;
      timer.add(
          [&ran, due] {
            EXPECT_GE(steady_clock::now(), due);
            ran = true;
          },
          100us);
      breaking->is_scheduled = true;
    });
    std::this_thread::sleep_for(2ms);
    EXPECT_TRUE(timeout.cancel());
    while (!ran) turn(timer);
    other.join();
  }
  break_it(Fault::None);
}

/// A pass also takes timeouts that come after it has read the clock.
TEST(CycleCounter, ThatGoesBackDuringAPassMakesNothingEarly) {
  expect_nothing_early_in_a_pass<hwt::LoopTimer>([](hwt::LoopTimer& timer) { timer.run_due(); });
  expect_nothing_early_in_a_pass<hwt::HierarchicalWheelTimer>(
      [](hwt::HierarchicalWheelTimer&) { std::this_thread::sleep_for(50us); });
}

TEST_P(BrokenCounter, ATimeoutThatIsNewOrMovedIsNotEarlyIfItsThreadNeverComesBack) {
  for (int round = 0; round < 20; ++round) {
    break_it(Fault::None);
    hwt::HashedWheelTimer timer{{.tick_duration = 1ms}};
    await_counter(timer);
    std::function<void()> task;
    hwt::Timeout timeout = timer.new_timeout([&] { task(); }, 1h);
    const auto move = [&](auto to_run) {
      task = to_run;
      EXPECT_TRUE(timeout.reschedule(5ms));
    };
    break_it(GetParam());
    std::this_thread::sleep_for(7ms);
    const auto rest = [] { std::this_thread::sleep_for(1ms); };
    EXPECT_GE(round % 2 == 0 ? lateness_of(timer, 5ms) : lateness_of(5ms, move, rest), 0ns);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, BrokenCounter,
                         testing::Values(Fault::None, Fault::Fast, Fault::Slow, Fault::Slewed, Fault::Still,
                                         Fault::Back, Fault::FarBack));

void expect_no_use_of_the_counter(hwt::Timer& timer) {
  for (int i = 0; i < 20; ++i) {
    timer.cancel(timer.add([] {}, 1h));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(timer.stats().counts_cycles);
}

TEST(CycleCounter, IsNotUsedWhenTheUserWantsTheExactClockOrBelowATickOf100Microseconds) {
  hwt::HashedWheelTimer exact{{.tick_duration = 1ms, .exact_clock = true}};
  expect_no_use_of_the_counter(exact);
  hwt::HierarchicalWheelTimer short_ticks{{.tick_duration = 99us}};
  expect_no_use_of_the_counter(short_ticks);
}

/// Breaks the counter of a timer that rests. Returns by how many milliseconds it runs all tasks later, as it tells on
/// stderr in one line.
double tells_delay_after_rest(hwt::HashedWheelTimer& timer, Fault fault, std::chrono::milliseconds rest) {
  await_counter(timer);
  timer.add([] {}, 1h);  // the worker has nothing else to do
  testing::internal::CaptureStderr();
  break_it(fault);
  std::this_thread::sleep_for(rest);
  EXPECT_GE(earliest(timer), 0ns);
  break_it(Fault::None);
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  const char* const told = "the cycle counter and steady_clock disagree";
  const std::size_t begin = line.find(told);
  double delay = -1;  // ms
  if (begin == line.npos || std::sscanf(line.c_str() + begin, "%*[^,], and runs all tasks %lf ms later", &delay) != 1) {
    ADD_FAILURE() << line;
  }
  return delay;
}

/// Not by the lack of the counter in half a second, which is 38 ms, if the clock was slewed.
TEST(CycleCounter, AFaultIsToldAndTasksAreLaterByAtMostAMillisecondAfterTheClockWasSlewed) {
  for (const auto& [how, rest, most] : {std::tuple{Fault::FarBack, 0ms, 1000.0}, {Fault::Slewed, 500ms, 1.049}}) {
    hwt::HashedWheelTimer timer{{.tick_duration = 1ms}};
    const double delay = tells_delay_after_rest(timer, how, rest);
    EXPECT_GT(delay, 0);
    EXPECT_LE(delay, most);
  }
}

TEST(CycleCounter, LatenessIncludesByWhatTasksAreLater) {
  // On a busy machine the worker may still take the last timeout when the rest has begun, and compares the clocks.
  std::optional<hwt::HashedWheelTimer> resting;
  double delay = 0;
  for (int i = 0; i < 20 && delay < 90; ++i) {
    resting.emplace(hwt::Options{.tick_duration = 1ms});
    delay = tells_delay_after_rest(*resting, Fault::Still, 100ms);
  }
  ASSERT_GE(delay, 90) << "the worker has looked at the counter during each rest";
  hwt::HashedWheelTimer& timer = *resting;
  const auto before = timer.lateness();
  lateness_of(timer, 1ms);
  const auto after = timer.lateness();
  const std::chrono::duration<double, std::milli> late = after.sum() - before.sum();
  EXPECT_EQ(after.count() - before.count(), 1u);
  EXPECT_GE(late.count(), delay - 0.001);
  // The worker stores the lag after the task.
  for (int i = 0; i < 10'000 && timer.stats().last_lag < 90ms; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_GE(timer.stats().last_lag, 90ms);
}

}  // namespace
