// reschedule() by itself, as its callers pay for it: of timeouts that are in the wheel, and each thread its own.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kTimeouts = 1000;

std::unique_ptr<hwt::HashedWheelTimer> timer;

void make_timer(const benchmark::State&) { timer = std::make_unique<hwt::HashedWheelTimer>(1ms); }
void drop_timer(const benchmark::State&) { timer.reset(); }

void reschedule(benchmark::State& state, std::chrono::nanoseconds first, std::chrono::nanoseconds step) {
  std::vector<hwt::Timeout> timeouts(kTimeouts);
  for (hwt::Timeout& timeout : timeouts) timeout = timer->new_timeout([] {}, first);
  std::chrono::nanoseconds delay = first;
  std::size_t next = 0;
  for (auto _ : state) {
    timeouts[next].reschedule(delay);
    delay += step;
    next = next + 1 == kTimeouts ? 0 : next + 1;
  }
  for (hwt::Timeout& timeout : timeouts) timeout.cancel();
  hwt::perf::count(state, state.iterations());
}

// A keep-alive.
void later(benchmark::State& state) { reschedule(state, 600s, 1ns); }
BENCHMARK(later)->Name("reschedule/later")->Setup(make_timer)->Teardown(drop_timer)->Threads(1)->Threads(2)->Threads(4);

// The worker has to be told, and takes part.
void earlier(benchmark::State& state) { reschedule(state, 10'000h, -1us); }
BENCHMARK(earlier)->Name("reschedule/earlier")->Setup(make_timer)->Teardown(drop_timer)->MeasureProcessCPUTime();

}  // namespace
