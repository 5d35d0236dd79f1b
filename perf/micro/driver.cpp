// What the worker does with each timeout, done by hand: no thread, no clock. The argument is how many there are at
// once: a thousand stay in the cache, a million do not.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "perf/micro/random.h"
#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using hwt::perf::ThreadlessTimer;
using std::chrono::milliseconds;

/// Timeouts spread evenly at random over a second of ticks of 1 ms, and the steps that one of them is measured of.
class Bench {
 public:
  explicit Bench(benchmark::State& state)
      : state_(state), timeouts_(static_cast<std::size_t>(state.range(0))), delays_(timeouts_.size()) {
    hwt::perf::Random random(1);
    for (milliseconds& delay : delays_) delay = milliseconds(random.between(1, 1000));
  }

  void schedule() {
    timer_.set_time(timer_.time() + 2'000'000'000);
    for (std::size_t i = 0; i < timeouts_.size(); ++i) {
      timeouts_[i] = timer_.new_timeout([this] { ++ran_; }, delays_[i]);
    }
  }
  void cancel() {
    for (hwt::Timeout& timeout : timeouts_) timeout.cancel();
    drop();
  }
  void drop() {
    for (hwt::Timeout& timeout : timeouts_) timeout = {};
  }
  void transfer() {
    while (timer_.driver().transfer(0).any) {
    }
  }
  void collect() { timer_.driver().collect_cancelled(); }
  void expire() { timer_.expire_all(); }

  template <class Before, class Step, class After>
  void measure(Before&& before, Step&& step, After&& after) {
    for (auto _ : state_) {
      before();
      const auto begin = std::chrono::steady_clock::now();
      step();
      const auto end = std::chrono::steady_clock::now();
      after();
      state_.SetIterationTime(std::chrono::duration<double>(end - begin).count());
    }
    benchmark::DoNotOptimize(ran_);
    hwt::perf::count(state_, state_.iterations() * state_.range(0));
  }

 private:
  benchmark::State& state_;
  std::vector<hwt::Timeout> timeouts_;
  std::vector<milliseconds> delays_;
  std::int64_t ran_ = 0;
  ThreadlessTimer timer_;
};

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1000)->Arg(20'000)->Arg(1'000'000)->UseManualTime();
}

void transfer(benchmark::State& state) {
  Bench bench(state);
  bench.measure(
      [&] {
        bench.schedule();
        bench.drop();
      },
      [&] { bench.transfer(); }, [&] { bench.expire(); });
}
BENCHMARK(transfer)->Name("driver/transfer")->Apply(sizes);

void transfer_cancelled(benchmark::State& state) {
  Bench bench(state);
  bench.measure(
      [&] {
        bench.schedule();
        bench.cancel();
      },
      [&] { bench.transfer(); }, [] {});
}
BENCHMARK(transfer_cancelled)->Name("driver/drop_cancelled_before_transfer")->Apply(sizes);

void collect(benchmark::State& state) {
  Bench bench(state);
  bench.measure(
      [&] {
        bench.schedule();
        bench.transfer();
        bench.cancel();
      },
      [&] { bench.collect(); }, [] {});
}
BENCHMARK(collect)->Name("driver/collect_cancelled")->Apply(sizes);

void expire(benchmark::State& state) {
  Bench bench(state);
  bench.measure(
      [&] {
        bench.schedule();
        bench.drop();
        bench.transfer();
      },
      [&] { bench.expire(); }, [] {});
}
BENCHMARK(expire)->Name("driver/expire")->Apply(sizes);

}  // namespace
