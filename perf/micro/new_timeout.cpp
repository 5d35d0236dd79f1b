// new_timeout() by itself, as its callers pay for it: their CPU time, not the worker's.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 5000;

std::unique_ptr<hwt::HashedWheelTimer> timer;

void drop_timer(const benchmark::State&) { timer.reset(); }
void make_timer(const benchmark::State&) { timer = std::make_unique<hwt::HashedWheelTimer>(1ms); }
void make_limited_timer(const benchmark::State&) {
  timer = std::make_unique<hwt::HashedWheelTimer>(
      hwt::Options{.tick_duration = 1ms, .max_pending_timeouts = std::int64_t{1} << 40});
}

// Schedules in batches, and between them cancels them and gives the worker time to hand the memory back, unmeasured.
template <class MakeTask>
void schedule(benchmark::State& state, MakeTask&& make_task) {
  std::vector<hwt::Timeout> timeouts(kBatch);
  for (auto _ : state) {
    for (hwt::Timeout& timeout : timeouts) timeout = timer->new_timeout(make_task(), 600s);
    state.PauseTiming();
    for (hwt::Timeout& timeout : timeouts) {
      timeout.cancel();
      timeout = {};
    }
    std::this_thread::sleep_for(2ms);
    state.ResumeTiming();
  }
  hwt::perf::count(state, state.iterations() * static_cast<std::int64_t>(kBatch));
}

void small_task(benchmark::State& state) {
  schedule(state, [&state] { return [&state] { benchmark::DoNotOptimize(&state); }; });
}
BENCHMARK(small_task)->Name("new_timeout")->Setup(make_timer)->Teardown(drop_timer)->Threads(1)->Threads(2)->Threads(4);
BENCHMARK(small_task)
    ->Name("new_timeout/with_limit")
    ->Setup(make_limited_timer)
    ->Teardown(drop_timer)
    ->Threads(1)
    ->Threads(2);

// A task that is destroyed, not just forgotten.
void owning_task(benchmark::State& state) {
  const auto owned = std::make_shared<int>(1);
  schedule(state, [&owned] { return [owned] { benchmark::DoNotOptimize(owned.get()); }; });
}
BENCHMARK(owning_task)->Name("new_timeout/shared_ptr")->Setup(make_timer)->Teardown(drop_timer);

// More captures than a node has room for.
void large_task(benchmark::State& state) {
  struct Large {
    std::byte bytes[64];
  };
  schedule(state, [] { return [large = Large{}] { benchmark::DoNotOptimize(&large); }; });
}
BENCHMARK(large_task)->Name("new_timeout/64_bytes")->Setup(make_timer)->Teardown(drop_timer);

void timer_task(benchmark::State& state) {
  struct Task final : hwt::TimerTask {
    void run(hwt::Timeout&) override {}
  };
  const std::shared_ptr<hwt::TimerTask> task = std::make_shared<Task>();
  schedule(state, [&task] { return task; });
}
BENCHMARK(timer_task)->Name("new_timeout/timer_task")->Setup(make_timer)->Teardown(drop_timer);

}  // namespace
