// The whole timer, its worker included: CPU time of the process.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRing = 1000;  // timeouts that a thread keeps pending

// One timer for all threads of a run.
std::unique_ptr<hwt::HashedWheelTimer> timer;

void make_timer(const benchmark::State& state) {
  timer = std::make_unique<hwt::HashedWheelTimer>(std::chrono::milliseconds(state.range(0)));
}
void drop_timer(const benchmark::State&) { timer.reset(); }

// The request path: cancel the oldest of a ring of timeouts, schedule a new one. To be compared with
// floor/schedule_cancel_threads.
void churn(benchmark::State& state) {
  std::vector<hwt::Timeout> ring(kRing);
  std::size_t next = 0;
  for (auto _ : state) {
    ring[next].cancel();
    ring[next] = timer->new_timeout([&state] { benchmark::DoNotOptimize(&state); }, 5s);
    next = next + 1 == kRing ? 0 : next + 1;
  }
  for (hwt::Timeout& timeout : ring) timeout.cancel();
  hwt::perf::count(state, state.iterations());
}
BENCHMARK(churn)
    ->Name("timer/churn")
    ->Setup(make_timer)
    ->Teardown(drop_timer)
    ->ArgName("tick_ms")
    ->Arg(1)
    ->Arg(100)
    ->Threads(1)
    ->Threads(2)
    ->Threads(4)
    ->MeasureProcessCPUTime();

// Schedule, and wait until all have run.
void schedule_expire(benchmark::State& state) {
  constexpr std::int64_t kBatch = 100'000;
  for (auto _ : state) {
    std::atomic<std::int64_t> ran{0};
    for (std::int64_t i = 0; i < kBatch; ++i) {
      timer->new_timeout([&ran] { ran.store(ran.load(std::memory_order_relaxed) + 1, std::memory_order_release); },
                         1ms + (i % 16) * 1ms);
    }
    while (ran.load(std::memory_order_acquire) != kBatch) std::this_thread::sleep_for(100us);
  }
  hwt::perf::count(state, state.iterations() * kBatch);
}
BENCHMARK(schedule_expire)
    ->Name("timer/schedule_expire")
    ->Setup(make_timer)
    ->Teardown(drop_timer)
    ->ArgName("tick_ms")
    ->Arg(1)
    ->MeasureProcessCPUTime();

// The sum over the threads' counters, and the one exact counter when there is a limit.
void pending_timeouts(benchmark::State& state) {
  hwt::HashedWheelTimer limited{{.tick_duration = 10ms, .max_pending_timeouts = state.range(0)}};
  limited.new_timeout([] {}, 1h);
  for (auto _ : state) benchmark::DoNotOptimize(limited.pending_timeouts());
  hwt::perf::count(state, state.iterations());
}
BENCHMARK(pending_timeouts)->Name("timer/pending_timeouts")->ArgName("limit")->Arg(-1)->Arg(1'000'000);

}  // namespace
