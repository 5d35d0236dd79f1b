// The parts of a timer, one by one. Figures are CPU time of the whole process, worker included, so that no work hides
// on another core; the last column of --benchmark_counters_tabular is timeouts per second.

#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/internal/hashed_wheel.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRing = 1000;  // timeouts that a thread keeps pending

// One timer for all threads of a run.
std::unique_ptr<hwt::HashedWheelTimer> shared_timer;

void make_timer(const benchmark::State& state) {
  shared_timer = std::make_unique<hwt::HashedWheelTimer>(std::chrono::milliseconds(state.range(0)));
}
void drop_timer(const benchmark::State&) { shared_timer.reset(); }

// The request path: cancel the oldest of a ring of timeouts, schedule a new one.
void churn(benchmark::State& state) {
  std::vector<hwt::Timeout> ring(kRing);
  std::size_t next = 0;
  for (auto _ : state) {
    ring[next].cancel();
    ring[next] = shared_timer->new_timeout([&state] { benchmark::DoNotOptimize(&state); }, 5s);
    next = next + 1 == kRing ? 0 : next + 1;
  }
  for (hwt::Timeout& timeout : ring) timeout.cancel();
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(churn)
    ->Setup(make_timer)
    ->Teardown(drop_timer)
    ->ArgName("tick_ms")
    ->Arg(1)
    ->Arg(100)
    ->Threads(1)
    ->Threads(2)
    ->Threads(4)
    ->MeasureProcessCPUTime();

// Schedule in batches and wait until all have run.
void expire(benchmark::State& state) {
  constexpr std::int64_t kBatch = 100'000;
  for (auto _ : state) {
    std::atomic<std::int64_t> ran{0};
    for (std::int64_t i = 0; i < kBatch; ++i) {
      shared_timer->new_timeout([&ran] { ran.fetch_add(1, std::memory_order_release); }, 0ms);
    }
    while (ran.load(std::memory_order_acquire) != kBatch) std::this_thread::sleep_for(100us);
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(expire)
    ->Setup(make_timer)
    ->Teardown(drop_timer)
    ->ArgName("tick_ms")
    ->Arg(1)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

// The sum over the producers' counters, and the one exact counter when there is a limit.
void pending_timeouts(benchmark::State& state) {
  hwt::HashedWheelTimer timer{{.tick_duration = 10ms, .max_pending_timeouts = state.range(0)}};
  timer.new_timeout([] {}, 1h);
  for (auto _ : state) benchmark::DoNotOptimize(timer.pending_timeouts());
}
BENCHMARK(pending_timeouts)->ArgName("limit")->Arg(-1)->Arg(1'000'000);

// The wheel by itself: no threads, no clock.
void wheel_insert_remove(benchmark::State& state) {
  hwt::internal::HashedWheel wheel(512);
  struct alignas(hwt::internal::kCacheLine) Item : hwt::internal::WheelItem {};
  std::vector<Item> items(kRing);
  std::size_t next = 0;
  std::int64_t tick = 0;
  for (auto _ : state) {
    if (items[next].position != nullptr) wheel.remove(items[next]);
    wheel.insert(items[next], ++tick & 255);
    next = next + 1 == kRing ? 0 : next + 1;
  }
  wheel.clear([](hwt::internal::WheelItem&) {});
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(wheel_insert_remove);

}  // namespace

BENCHMARK_MAIN();
