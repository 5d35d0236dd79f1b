// The request clock in simulated time. A few threads turn delays into deadlines, and a worker runs due timeouts. The
// cycle counter gets every fault, at random times. No timeout is early, and none is later than the fault explains.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/internal/time/cycle_counter.h"
#include "hashed_wheel_timer/internal/time/request_clock.h"

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

struct NewMachine {
  explicit NewMachine(double cycles = Machine{}.cycles) {
    machine = Machine{};
    machine.cycles = cycles;
  }
};

std::int64_t preempted = 0;  // ns; the next reading of the clock takes so much longer

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kHour = 3'600'000 * kMillisecond;

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

/// Timeouts of one timer.
class Timeouts {
 public:
  /// Schedules a timeout of a thread with this clock.
  void add(RequestClock& clock, CycleRate& cycles, std::int64_t delay) {
    const std::int64_t called = machine.now;
    pending_.push_back({called + delay, clock.now(cycles) + delay});
  }
  /// Runs those that are due at this time of the worker.
  void run(std::int64_t present) {
    ran_ += std::erase_if(pending_, [&](const Timeout& timeout) {
      if (timeout.deadline > present) return false;
      const std::int64_t late = machine.now - timeout.not_before;
      earliest_ = std::min(earliest_, late);
      latest_ = std::max(latest_, late);
      return true;
    });
  }
  /// Returns when the worker has to look again, at `end` at the latest.
  std::int64_t next_look(const WorkerClock& worker, std::int64_t end) const {
    for (const Timeout& timeout : pending_) end = std::min(end, worker.steady(timeout.deadline));
    return end;
  }
  /// Returns the least (start of the task) - (call + delay). It is negative if a task was early, and 0 otherwise.
  std::int64_t earliest() const { return earliest_; }
  std::int64_t latest() const { return latest_; }
  std::size_t ran() const { return ran_; }
  bool all_ran() const { return pending_.empty(); }

 private:
  struct Timeout {
    std::int64_t not_before, deadline;
  };

  std::vector<Timeout> pending_;
  std::int64_t earliest_ = 0, latest_ = 0;
  std::size_t ran_ = 0;
};

struct Outcome {
  Timeouts timeouts;
  std::int64_t latest_before = 0;  // the largest lateness before the fault
  bool in_use_before = false, in_use_after = false;
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
    if (random() % 32 == 0) clocks[random() % clocks.size()] = RequestClock();  // a new thread
    if (!quiet) outcome.timeouts.add(clocks[random() % clocks.size()], cycles, below(15 * kMillisecond));
    if (machine.now < tick + kMillisecond) continue;
    tick = machine.now;
    outcome.timeouts.run(worker.now());
    if (!broken) outcome.latest_before = outcome.timeouts.latest();
  }
  outcome.in_use_after = cycles.window() != 0;
  return outcome;
}

/// Keeps the line that a worker writes about a fault off stderr.
class SimulatedCounter : public testing::TestWithParam<Fault> {
 protected:
  SimulatedCounter() { testing::internal::CaptureStderr(); }
  ~SimulatedCounter() override { EXPECT_EQ(testing::internal::GetCapturedStderr().empty(), GetParam() == Fault::None); }
};

TEST_P(SimulatedCounter, NothingIsEarlyOrLaterThanTheFaultExplainsAndAFaultAloneEndsTheUseOfTheCounter) {
  // A tick and a step of the simulation, and some microseconds of the estimate.
  constexpr std::int64_t kLatestBefore = kMillisecond + 410'000;
  // The counter may have stood still between two looks of the worker. A thread may have been ahead by its window.
  constexpr std::int64_t kLatestAfter = 2 * kLatestBefore + 2 * kMillisecond;
  int judged = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    const Outcome outcome = simulate(GetParam(), seed);
    ASSERT_GE(outcome.timeouts.earliest(), 0);
    ASSERT_GT(outcome.timeouts.ran(), 10U);
    ASSERT_LE(outcome.latest_before, kLatestBefore);
    ASSERT_LE(outcome.timeouts.latest(), kLatestAfter);
    if (!outcome.in_use_before) continue;  // its threads had nothing to do so far
    ++judged;
    ASSERT_EQ(outcome.in_use_after, GetParam() == Fault::None);
  }
  EXPECT_GT(judged, 400);
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

/// The clock of a thread, on a machine that has just started.
class RequestClockTest : public testing::Test, NewMachine {
 protected:
  void use_until_measured() {
    while (cycles.window() == 0) {
      machine.pass(1000);
      clock.now(cycles);
    }
  }

  CycleRate cycles{true};
  RequestClock clock;
};

TEST_F(RequestClockTest, ReadsTheClockOnceInAMillisecond) {
  use_until_measured();
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

/// No real counter is so slow or so fast as those. The product of cycles and rate could overflow.
TEST(RequestClock, LeavesACounterAloneThatIsNotTheClockOrWhoseRateIsThatOfNone) {
  for (const auto& [is_clock, frequency] : {std::pair{false, 2.6}, {true, 0.01}, {true, 20.0}}) {
    machine = Machine{};
    machine.counter_is_clock = is_clock;
    machine.frequency = frequency;
    CycleRate cycles(true);
    RequestClock clock;
    EXPECT_EQ(cycles.wanted(), is_clock);
    for (int i = 0; i < 100; ++i) {
      machine.pass(kMillisecond);
      const std::int64_t before = machine.now;
      ASSERT_GE(clock.now(cycles), before);
      ASSERT_LE(clock.now(cycles), machine.now);
    }
    EXPECT_FALSE(cycles.wanted()) << frequency;
    EXPECT_EQ(cycles.behind(), 0);
    cycles.measure(hwt::internal::ClockReading::take());
    EXPECT_EQ(cycles.window(), 0) << "measured by a thread that has not noticed yet";
  }
}

TEST_F(RequestClockTest, IsAheadByLessThanThreeMicrosecondsAndAThreadThatIsPreemptedWhileItComparesIsNotAFault) {
  WorkerClock worker(cycles);
  const auto expect_near = [&] {
    const std::int64_t before = machine.now;
    const std::int64_t now = clock.now(cycles);
    ASSERT_GE(now, before);
    ASSERT_LE(now, machine.now + 3000);
  };
  for (int i = 0; i < 200'000; ++i) {
    machine.pass(777);
    ASSERT_NO_FATAL_FAILURE(expect_near());
  }
  for (int i = 0; i < 1000; ++i) {
    machine.pass(100'000);
    preempted = i % 7 == 0 ? 5 * kMillisecond : 0;
    ASSERT_NO_FATAL_FAILURE(expect_near());
    preempted = i % 5 == 0 ? 3 * kMillisecond : 0;
    worker.now();
    preempted = 0;
  }
  EXPECT_TRUE(cycles.wanted());
  EXPECT_NE(cycles.window(), 0);
}

TEST_F(RequestClockTest, AThreadThatIsPreemptedDoesNotMeasureTheRate) {
  machine.pass(11 * kMillisecond);
  preempted = 5 * kMillisecond;
  clock.now(cycles);
  EXPECT_EQ(cycles.window(), 0);
  clock.now(cycles);
  EXPECT_NE(cycles.window(), 0);
}

/// The system was suspended between the start of a timer and its first request. The counter went on, and the clock
/// stood still, so the rate is too low. A loop may look for due timeouts only some time later.
TEST_F(RequestClockTest, ComparesWithTheReadingThatHasSetTheRate) {
  WorkerClock worker(cycles);
  machine.factor = 4;
  machine.pass(20'000 * kMillisecond);
  use_until_measured();
  machine.factor = 1;
  clock.now(cycles);
  machine.pass(3 * kMillisecond);
  const std::int64_t due = machine.now + 2 * kMillisecond;
  const std::int64_t deadline = clock.now(cycles) + 2 * kMillisecond;
  EXPECT_LT(deadline, due) << "the test needs a deadline that is too early";
  EXPECT_LT(worker.now(), deadline);
  EXPECT_FALSE(cycles.wanted());
  EXPECT_GE(worker.steady(deadline), due);
}

/// A thread that schedules compares the clocks itself, because the worker may sleep for long.
TEST_F(RequestClockTest, NoticesAFaultWithoutTheWorker) {
  use_until_measured();
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

/// Two thousandths are no fault: the rate is raised by one, and the clock may run slower by another one.
TEST_F(RequestClockTest, GivesUpACounterThatIsFastByTwoAndAHalfThousandthsForEver) {
  use_until_measured();
  for (const double factor : {1.001, 1.0025, 1.0}) {
    machine.factor = factor;
    for (int i = 0; i < 40; ++i) {
      machine.pass(500'000);
      clock.now(cycles);
    }
    EXPECT_EQ(cycles.wanted(), factor == 1.001) << factor;
    EXPECT_EQ(cycles.window() != 0, factor == 1.001) << factor;
    EXPECT_EQ(cycles.behind(), 0);
  }
}

/// Threads and a worker that rest for long between their uses of a timer. The worker is asleep meanwhile, and wakes up
/// for due timeouts only.
class Resting : NewMachine {
 public:
  static constexpr std::int64_t kTick = kMillisecond;

  /// Uses the timer of a new machine until the counter is in use.
  explicit Resting(double cycles = Machine{}.cycles) : NewMachine(cycles) {
    while (cycles_.window() == 0) {
      rest(100'000);
      for (std::size_t thread = 0; thread < kThreads; ++thread) schedule(thread, 0);
    }
    rest(5 * kTick);
    look();
  }

  CycleRate& cycles() { return cycles_; }
  std::int64_t latest() const { return timeouts_.latest(); }

  void schedule(std::size_t thread, std::int64_t delay) { timeouts_.add(clocks_.at(thread), cycles_, delay); }
  /// A look of the worker, at the beginning of a tick.
  void look() { timeouts_.run(worker_.now()); }
  /// Lets time pass. The worker wakes up at the end of each tick in which a timeout is due.
  void rest(std::int64_t ns) {
    const std::int64_t end = machine.now + ns;
    for (;;) {
      const std::int64_t due = timeouts_.next_look(worker_, end);
      if (due >= end) break;
      machine.pass(std::max<std::int64_t>(due - machine.now, 0) + kTick / 2);
      look();
    }
    machine.pass(std::max<std::int64_t>(end - machine.now, 0));
  }
  /// Lets time pass, after which all timeouts have run and none was early.
  void rest_until_all_ran(std::int64_t ns) {
    rest(ns);
    EXPECT_TRUE(timeouts_.all_ran());
    EXPECT_GE(timeouts_.earliest(), 0);
  }

  /// Uses the timer again after a rest: first the worker or a thread. All timeouts run in the end.
  void use(bool worker_first) {
    if (worker_first) look();
    for (int i = 0; i < 1000; ++i) {
      schedule(static_cast<std::size_t>(i) % kThreads, i % 7 * kMillisecond);
      rest(i % 11 * 100'000);
    }
    rest_until_all_ran(2 * kHour);
  }

  static constexpr std::size_t kThreads = 3;

 private:
  CycleRate cycles_{true};
  std::array<RequestClock, kThreads> clocks_;
  WorkerClock worker_{cycles_};
  Timeouts timeouts_;
};

// A window, half a tick until the worker looks, and the time that the readings take.
constexpr std::int64_t kLatest = CycleRate::kWindow + Resting::kTick / 2 + 50'000;
// When the timer gives up, the time of a thread may stand still for a window.
constexpr std::int64_t kLatestMeanwhile = kLatest + CycleRate::kWindow;

/// The clock is slewed by `ppm` millionths for `slewed` ns, while all threads rest for `ns`. After that the worker or a
/// thread is the first that uses the timer. Returns by how much the worker's time stays behind.
std::int64_t rest_with_slewed_clock(int ppm, std::int64_t slewed, std::int64_t ns, bool worker_first) {
  Resting timer;
  for (std::size_t thread = 0; thread < Resting::kThreads; ++thread) timer.schedule(thread, 2 * kHour);
  machine.factor = 1 / (1 + ppm / 1e6);
  for (std::size_t thread = 0; thread < Resting::kThreads; ++thread) {
    timer.schedule(thread, ns / 2);
    timer.rest(200'000);
    timer.schedule(thread, ns + 3 * kMillisecond);
  }
  timer.rest(slewed);
  if (slewed < ns) machine.factor = 1;
  timer.rest(ns - slewed);
  timer.use(worker_first);
  EXPECT_LE(timer.latest(), kLatest);
  EXPECT_EQ(timer.cycles().window() == 0, timer.cycles().behind() != 0);
  return timer.cycles().behind();
}

TEST(RestingTimer, IsLateByAtMostAWindowAfterTheClockWasSlewed) {
  for (const bool worker_first : {false, true}) {
    for (const int ppm : {83'333, 500'000, 900'000}) {
      SCOPED_TRACE(ppm);
      for (const int seconds : {3, 12, 3600}) {
        const std::int64_t slewed = seconds * 1000 * kMillisecond;
        EXPECT_EQ(rest_with_slewed_clock(ppm, slewed, slewed + kMillisecond, worker_first), CycleRate::kWindow);
        EXPECT_EQ(rest_with_slewed_clock(ppm, slewed, slewed * 2, worker_first), CycleRate::kWindow);
      }
    }
    EXPECT_EQ(rest_with_slewed_clock(500, kHour, kHour, worker_first), 0) << "NTP corrects every clock by that much";
  }
}

TEST(RestingTimer, IsLateByAtMostAWindowAfterTheCounterWentBackToZero) {
  // An hour after it the counter has passed all anchors from before.
  for (const std::int64_t after : {kMillisecond, 7000 * kMillisecond, kHour})
    for (const bool worker_first : {false, true}) {
      Resting timer(10'000 * kMillisecond * Machine{}.frequency);
      timer.schedule(0, 2 * kHour + kMillisecond);
      timer.rest(kHour);
      machine.cycles = 0;
      timer.rest(after);
      timer.use(worker_first);
      EXPECT_FALSE(timer.cycles().wanted());
      EXPECT_LE(timer.latest(), kLatest) << after;
      EXPECT_LE(timer.cycles().behind(), CycleRate::kWindow) << after;
    }
}

/// Threads and worker rest for any time. The counter becomes slower, down to half its rate, or goes back.
TEST(RestingTimer, IsNeverEarlyAndLateByAtMostAWindow) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::int64_t end) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    Resting timer;
    const std::int64_t breaks_at = below(200);
    std::int64_t missed = 0;
    for (std::int64_t i = 0; i < 400; ++i) {
      if (i == breaks_at && seed % 3 == 0) machine.factor = 1 / (1 + static_cast<double>(below(990'000)) / 1e6);
      if (i == breaks_at && seed % 3 == 1)
        machine.cycles -= static_cast<double>(below(kMillisecond)) * machine.frequency;
      if (i == breaks_at && seed % 3 == 2) machine.cycles = 0;
      if (i == breaks_at + 100 && random() % 2 == 0) machine.factor = 1;
      if (timer.cycles().behind() > CycleRate::kWindow) ++missed;
      timer.schedule(static_cast<std::size_t>(below(Resting::kThreads)), below(std::int64_t{1} << below(36)) + 1);
      timer.rest(below(std::int64_t{1} << (1 + below(random() % 8 == 0 ? 40 : 21))));
    }
    timer.rest_until_all_ran(kHour);
    ASSERT_LE(timer.latest(), kLatestMeanwhile) << "seed " << seed;
    ASSERT_EQ(missed, 0) << "seed " << seed;
  }
}

/// No window bounds the error then. So all tasks are later, by the time for which the counter has stood still.
TEST(RestingTimer, IsNotEarlyIfTheCounterStandsStillForAnHour) {
  Resting timer;
  timer.schedule(0, 3 * kHour);
  machine.factor = 0;
  timer.rest(kHour);
  timer.schedule(0, 5 * kMillisecond);
  timer.rest_until_all_ran(8 * kHour);
  EXPECT_GE(timer.cycles().behind(), kHour - kMillisecond);
}

/// The thread that gives up has used the timer for a short time only, and knows of a short time in which the counter
/// was slow.
TEST(RestingTimer, ComparesOnceMoreAfterAnotherThreadHasGivenUp) {
  Resting timer;
  CycleRate& cycles = timer.cycles();
  timer.schedule(0, kHour);
  machine.factor = 0;
  machine.pass(20 * kMillisecond);
  timer.schedule(0, 25 * kMillisecond);
  machine.factor = 0.3;
  RequestClock young;
  for (int i = 0; i < 100 && cycles.wanted(); ++i) {
    machine.pass(100'000);
    young.now(cycles);
  }
  EXPECT_FALSE(cycles.wanted());
  EXPECT_LT(cycles.behind(), 10 * kMillisecond);
  timer.rest_until_all_ran(2 * kHour);
}

TEST(RestingTimer, IsNotEarlyIfTheWorkerIsPreemptedWhileItCompares) {
  Resting timer;
  machine.pass(2 * kMillisecond);
  preempted = 5 * kMillisecond;
  timer.look();
  EXPECT_TRUE(timer.cycles().wanted());
  timer.schedule(0, kHour);
  machine.factor = 0;
  machine.pass(3 * kMillisecond);
  timer.schedule(0, kMillisecond / 2);
  timer.rest_until_all_ran(3 * kHour);
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
