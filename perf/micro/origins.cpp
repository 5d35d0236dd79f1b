// Options::trace_origins: the cost for each timeout, and the search for a line that leaks.

#include <cstdint>

#include "hashed_wheel_timer/origin.h"
#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using namespace std::chrono_literals;

constexpr hwt::Origin kLeak{"leak"};

void pair_with_origins(benchmark::State& state, bool traced) {
  hwt::perf::ThreadlessTimer timer({.tick_duration = 1ms, .trace_origins = traced});
  hwt::perf::repeat(state, [&] { timer.cancel(timer.add([&state] { benchmark::DoNotOptimize(&state); }, 600s)); });
}
BENCHMARK_CAPTURE(pair_with_origins, off, false);
BENCHMARK_CAPTURE(pair_with_origins, on, true);

/// Of 101 timeouts in turn, the line that leaks has two and each of 99 other lines has one.
void pending_by_origin(benchmark::State& state) {
  hwt::perf::ThreadlessTimer timer({.tick_duration = 1ms, .trace_origins = true});
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    const std::uint32_t line = i % 101;
    timer.add([&state] { benchmark::DoNotOptimize(&state); }, 600s, line < 2 ? kLeak : hwt::Origin("server.cpp", line));
  }
  for (auto _ : state) {
    if (!(timer.pending_by_origin().front().origin == kLeak)) state.SkipWithError("another line has more");
  }
}
BENCHMARK(pending_by_origin)->Unit(benchmark::kMillisecond);

}  // namespace
