// The worker's part for each timeout, without threads and clock. The argument is the number of timeouts: a thousand
// stay in the cache, a million do not.

#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using hwt::perf::ThreadlessTimer;
using std::chrono::milliseconds;

/// Timeouts spread at random over a second of ticks of 1 ms.
struct Bench {
  explicit Bench(std::int64_t size)
      : timeouts(static_cast<std::size_t>(size)),
        delays(hwt::perf::random_delays<milliseconds>(1000, timeouts.size())) {}

  Bench& schedule() {
    timer.set_time(timer.time() + 2'000'000'000);
    for (std::size_t i = 0; i < timeouts.size(); ++i) timeouts[i] = timer.new_timeout([this] { ++ran; }, delays[i]);
    return *this;
  }
  Bench& cancel() {
    for (hwt::Timeout& timeout : timeouts) timeout.cancel();
    return drop();
  }
  Bench& drop() {
    for (hwt::Timeout& timeout : timeouts) timeout = {};
    return *this;
  }
  Bench& transfer() {
    timer.transfer_all();
    return *this;
  }

  std::vector<hwt::Timeout> timeouts;
  std::vector<milliseconds> delays;
  std::int64_t ran = 0;
  ThreadlessTimer timer;
};

/// Measures only `step`.
void driver(benchmark::State& state, auto before, auto step, auto... after) {
  Bench bench(state.range(0));
  for (auto _ : state) {
    before(bench);
    const auto begin = std::chrono::steady_clock::now();
    step(bench);
    const auto end = std::chrono::steady_clock::now();
    (after(bench), ...);
    state.SetIterationTime(std::chrono::duration<double>(end - begin).count());
  }
  benchmark::DoNotOptimize(bench.ran);
  hwt::perf::count(state, state.iterations() * state.range(0));
}

void transfer(Bench& bench) { bench.transfer(); }
void expire(Bench& bench) { bench.timer.expire_all(); }
void sizes(hwt::perf::Benchmark* benchmark) { benchmark->Arg(1000)->Arg(20'000)->Arg(1'000'000)->UseManualTime(); }

BENCHMARK_CAPTURE(driver, transfer, [](Bench& bench) { bench.schedule().drop(); }, transfer, expire)->Apply(sizes);
BENCHMARK_CAPTURE(
    driver, drop_cancelled_before_transfer, [](Bench& bench) { bench.schedule().cancel(); }, transfer)
    ->Apply(sizes);
BENCHMARK_CAPTURE(
    driver, collect_cancelled, [](Bench& bench) { bench.schedule().transfer().cancel(); }, transfer)
    ->Apply(sizes);
BENCHMARK_CAPTURE(driver, expire, [](Bench& bench) { bench.schedule().drop().transfer(); }, expire)->Apply(sizes);

}  // namespace
