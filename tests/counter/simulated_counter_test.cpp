// The request clock in simulated time. A few threads turn delays into deadlines, and a worker runs due timeouts. The
// cycle counter gets every fault, at random times. No timeout is early, and none is later than the fault explains.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/platform/cycle_counter.h"
#include "hashed_wheel_timer/internal/platform/request_clock.h"

namespace {

using hwt::internal::CycleRate;
using hwt::internal::RequestClock;
using hwt::internal::WorkerClock;

/// The clock and the cycle counter of a machine. Reading one of them takes time, as it does in reality.
struct Machine {
  std::int64_t now = 1'000'000'000;  // ns
  double cycles = 123e9;
  double frequency = 2.6;  // cycles in a nanosecond
  double factor = 1;       // 1: the counter works
  bool counter_is_clock = true;

  void pass(std::int64_t ns) {
    now += ns;
    cycles += static_cast<double>(ns) * frequency * factor;
  }
};

Machine machine;
std::int64_t preempted = 0;  // ns; the next reading of the clock takes so much longer

constexpr std::int64_t kMillisecond = 1'000'000;

enum class Fault { None, Fast, Slow, Still, Back, FarBack, StillForAMoment };

constexpr std::array kFaults{Fault::None, Fault::Fast,    Fault::Slow,           Fault::Still,
                             Fault::Back, Fault::FarBack, Fault::StillForAMoment};

void break_counter(Fault fault) {
  switch (fault) {
    case Fault::None:
      break;
    case Fault::Fast:
      machine.factor = 1.7;
      break;
    case Fault::Slow:
      machine.factor = 0.4;
      break;
    case Fault::Still:
    case Fault::StillForAMoment:
      machine.factor = 0;
      break;
    case Fault::Back:
      machine.cycles -= 400'000 * machine.frequency;
      break;
    case Fault::FarBack:
      machine.cycles = 1000;
      break;
  }
}

struct Timeout {
  std::int64_t not_before;
  std::int64_t deadline;
};

struct Outcome {
  std::int64_t earliest = 0;       // the least (start of the task) - (call + delay); negative: early
  std::int64_t latest_before = 0;  // the largest, of timeouts that ran before the fault
  std::int64_t latest = 0;
  std::int64_t ran = 0;
  bool in_use_before = false;
  bool in_use_after = false;
};

/// The worker looks every millisecond, threads every 50 us or so.
Outcome simulate(Fault fault, std::uint64_t seed) {
  machine = Machine{};
  std::mt19937_64 random(seed);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
  };
  machine.frequency = std::array{0.025, 1.0, 2.6, 5.0}[random() % 4];
  CycleRate cycles(true);
  std::array<RequestClock, 3> clocks;
  WorkerClock worker(cycles);
  std::vector<Timeout> pending;
  Outcome outcome;
  const std::int64_t begin = machine.now;
  const std::int64_t breaks_at = begin + 20 * kMillisecond + below(20 * kMillisecond);
  const std::int64_t moment = 50'000 + below(5 * kMillisecond);
  std::int64_t works_again_at = begin + 1000 * kMillisecond;
  bool broken = false;
  bool quiet = false;  // the threads of a server have nothing to do for some time
  std::int64_t tick = begin;
  while (machine.now < begin + 100 * kMillisecond) {
    machine.pass(below(random() % 16 == 0 ? 400'000 : 40'000));
    if (!broken && machine.now >= breaks_at) {
      outcome.in_use_before = cycles.window() != 0;
      break_counter(fault);
      broken = true;
      if (fault == Fault::StillForAMoment) works_again_at = machine.now + moment;
    }
    if (machine.now >= works_again_at) machine.factor = 1;
    if (random() % 128 == 0) quiet = !quiet;
    if (!quiet) {
      const std::int64_t delay = below(15 * kMillisecond);
      const std::int64_t called = machine.now;
      pending.push_back({called + delay, clocks[random() % clocks.size()].now(cycles) + delay});
    }
    if (machine.now < tick + kMillisecond) continue;
    tick = machine.now;
    const std::int64_t present = worker.now();
    std::erase_if(pending, [&](const Timeout& timeout) {
      if (timeout.deadline > present) return false;
      const std::int64_t late = machine.now - timeout.not_before;
      outcome.earliest = std::min(outcome.earliest, late);
      outcome.latest = std::max(outcome.latest, late);
      if (!broken) outcome.latest_before = std::max(outcome.latest_before, late);
      ++outcome.ran;
      return true;
    });
  }
  outcome.in_use_after = cycles.window() != 0;
  return outcome;
}

class SimulatedCounter : public testing::TestWithParam<Fault> {};

TEST_P(SimulatedCounter, NothingIsEarlyWithAnyFaultOfTheCounter) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Outcome outcome = simulate(GetParam(), seed);
    ASSERT_GE(outcome.earliest, 0) << "seed " << seed;
    ASSERT_GT(outcome.ran, 10) << "seed " << seed;
    // A tick and a step of the simulation, and some microseconds of the estimate.
    ASSERT_LE(outcome.latest_before, kMillisecond + 410'000) << "seed " << seed;
  }
}

TEST_P(SimulatedCounter, AFaultEndsTheUseOfTheCounterAndNothingElseDoes) {
  int judged = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const Outcome outcome = simulate(GetParam(), seed);
    if (!outcome.in_use_before) continue;  // its threads had nothing to do so far
    ++judged;
    ASSERT_EQ(outcome.in_use_after, GetParam() == Fault::None) << "seed " << seed;
  }
  EXPECT_GT(judged, 400);
}

TEST_P(SimulatedCounter, NothingIsLaterThanTheFaultExplains) {
  // The counter may have stood still between two looks of the worker. A thread may have been ahead by its window.
  const std::int64_t most = 2 * (kMillisecond + 410'000) + 2 * kMillisecond;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    ASSERT_LE(simulate(GetParam(), seed).latest, most) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, SimulatedCounter, testing::ValuesIn(kFaults));

TEST(RequestClock, DoesNotGoBackUnlessTheCounterDoes) {
  for (const Fault fault : kFaults) {
    if (fault == Fault::Back) continue;  // FarBack is noticed at once, because it goes back beyond the thread's anchor
    machine = Machine{};
    CycleRate cycles(true);
    RequestClock clock;
    std::int64_t latest = 0;
    for (int i = 0; i < 20'000; ++i) {
      machine.pass(i % 97 == 0 ? 30'000 : 2'000);
      if (i == 15'000) break_counter(fault);
      const std::int64_t now = clock.now(cycles);
      ASSERT_GE(now, latest) << "step " << i;
      latest = now;
    }
  }
}

void use_until_measured(RequestClock& clock, CycleRate& cycles) {
  while (cycles.window() == 0) {
    machine.pass(1000);
    clock.now(cycles);
  }
}

TEST(RequestClock, ReadsTheClockOnceInAMillisecond) {
  machine = Machine{};
  CycleRate cycles(true);
  RequestClock clock;
  use_until_measured(clock, cycles);
  std::int64_t slow = 0;
  for (int i = 0; i < 10'000; ++i) {
    machine.pass(1000);
    const std::int64_t before = machine.now;
    clock.now(cycles);
    slow += machine.now - before > 10 ? 1 : 0;  // reading the counter alone takes 8 ns
  }
  // 10 ms pass. At the end of each window the estimate is some 2 us ahead of the clock. Until the clock has caught up,
  // the thread reads it each time.
  EXPECT_GE(slow, 9);
  EXPECT_LE(slow, 30);
}

TEST(RequestClock, IsAheadByLessThanThreeMicroseconds) {
  machine = Machine{};
  CycleRate cycles(true);
  RequestClock clock;
  for (int i = 0; i < 200'000; ++i) {
    machine.pass(777);
    const std::int64_t before = machine.now;
    const std::int64_t now = clock.now(cycles);
    ASSERT_GE(now, before);
    ASSERT_LE(now, machine.now + 3000);
  }
}

TEST(RequestClock, LeavesACounterAloneThatIsNotTheClock) {
  machine = Machine{};
  machine.counter_is_clock = false;
  CycleRate cycles(true);
  RequestClock clock;
  EXPECT_FALSE(cycles.wanted());
  for (int i = 0; i < 100; ++i) {
    machine.pass(kMillisecond);
    const std::int64_t before = machine.now;
    ASSERT_GE(clock.now(cycles), before);
    ASSERT_LE(clock.now(cycles), machine.now);
  }
  EXPECT_EQ(cycles.window(), 0);
}

/// No real counter is so slow or so fast. The product of cycles and rate could overflow.
TEST(RequestClock, LeavesACounterAloneWhoseRateIsThatOfNone) {
  for (const double frequency : {0.01, 20.0}) {
    machine = Machine{};
    machine.frequency = frequency;
    CycleRate cycles(true);
    RequestClock clock;
    for (int i = 0; i < 100 && cycles.wanted(); ++i) {
      machine.pass(kMillisecond);
      const std::int64_t before = machine.now;
      ASSERT_GE(clock.now(cycles), before);
    }
    EXPECT_FALSE(cycles.wanted()) << frequency;
    EXPECT_EQ(cycles.window(), 0);
    EXPECT_EQ(cycles.behind(), 0);
    cycles.measure(hwt::internal::ClockReading::take());
    EXPECT_EQ(cycles.window(), 0) << "measured by a thread that has not noticed yet";
  }
}

TEST(RequestClock, AThreadThatIsPreemptedWhileItComparesIsNotAFault) {
  machine = Machine{};
  CycleRate cycles(true);
  RequestClock clock;
  WorkerClock worker(cycles);
  for (int i = 0; i < 1000; ++i) {
    machine.pass(100'000);
    preempted = i % 7 == 0 ? 5 * kMillisecond : 0;
    const std::int64_t before = machine.now;
    const std::int64_t now = clock.now(cycles);
    ASSERT_GE(now, before);
    ASSERT_LE(now, machine.now + 3000);
    preempted = i % 5 == 0 ? 3 * kMillisecond : 0;
    worker.now();
    preempted = 0;
  }
  EXPECT_TRUE(cycles.wanted());
  EXPECT_NE(cycles.window(), 0);
}

TEST(RequestClock, AThreadThatIsPreemptedDoesNotMeasureTheRate) {
  machine = Machine{};
  CycleRate cycles(true);
  RequestClock clock;
  machine.pass(11 * kMillisecond);
  preempted = 5 * kMillisecond;
  clock.now(cycles);
  EXPECT_EQ(cycles.window(), 0);
  clock.now(cycles);
  EXPECT_NE(cycles.window(), 0);
}

/// A thread that schedules compares the clocks itself, because the worker may sleep for long.
TEST(RequestClock, NoticesAFaultWithoutTheWorker) {
  machine = Machine{};
  CycleRate cycles(true);
  RequestClock clock;
  use_until_measured(clock, cycles);
  WorkerClock(cycles).now();
  EXPECT_TRUE(cycles.wanted()) << "the first look of a worker compares nothing";
  EXPECT_EQ(cycles.behind(), 0);
  break_counter(Fault::Fast);
  for (int i = 0; i < 400; ++i) {
    machine.pass(10'000);
    clock.now(cycles);
  }
  EXPECT_FALSE(cycles.wanted());
}

}  // namespace

bool hwt::internal::cycle_counter::is_the_clock() noexcept { return machine.counter_is_clock; }

std::uint64_t hwt::internal::cycle_counter::read() noexcept {
  machine.pass(8);
  return static_cast<std::uint64_t>(machine.cycles);
}

std::int64_t hwt::internal::steady_now() noexcept {
  machine.pass(12 + std::exchange(preempted, 0));
  const std::int64_t now = machine.now;
  machine.pass(12);
  return now;
}
