// TimeoutScope: the end of a thousand timeouts, before and after the worker has transferred them.

#include <optional>

#include "hashed_wheel_timer/timeout_scope.h"
#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kMembers = 1000;

void scope_add_and_cancel(benchmark::State& state) {
  hwt::perf::ThreadlessTimer timer;
  hwt::TimeoutScope scope(timer);
  hwt::perf::repeat(state, [&] { scope.cancel(scope.add([&state] { benchmark::DoNotOptimize(&state); }, 600s)); });
}
BENCHMARK(scope_add_and_cancel);

void scope_end(benchmark::State& state, bool transferred, bool by_destructor) {
  hwt::perf::ThreadlessTimer timer;
  for (auto _ : state) {
    state.PauseTiming();
    std::optional<hwt::TimeoutScope> scope(std::in_place, timer);
    for (std::int64_t i = 0; i < kMembers; ++i) scope->add([&state] { benchmark::DoNotOptimize(&state); }, 600s);
    if (transferred) timer.worker().transfer();
    state.ResumeTiming();
    if (by_destructor) {
      scope.reset();
    } else {
      benchmark::DoNotOptimize(scope->cancel_all());
    }
    state.PauseTiming();
    scope.reset();
    timer.worker().transfer();
    state.ResumeTiming();
  }
}
BENCHMARK_CAPTURE(scope_end, cancel_all_before_transfer, false, false);
BENCHMARK_CAPTURE(scope_end, cancel_all_after_transfer, true, false);
BENCHMARK_CAPTURE(scope_end, destructor_before_transfer, false, true);
BENCHMARK_CAPTURE(scope_end, destructor_after_transfer, true, true);

}  // namespace
