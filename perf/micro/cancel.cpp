// cancel() by itself, as its callers pay for it, before and after the worker has taken the timeout over. No worker runs
// here: all threads meet before each step, and the first one does the worker's part.

#include <benchmark/benchmark.h>

#include <barrier>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 5000;

std::unique_ptr<hwt::perf::ThreadlessTimer> timer;
std::unique_ptr<std::barrier<>> meeting;

void make_timer(const benchmark::State& state) {
  timer = std::make_unique<hwt::perf::ThreadlessTimer>();
  meeting = std::make_unique<std::barrier<>>(state.threads());
}
void drop_timer(const benchmark::State&) { timer.reset(); }

// Alone: between two meetings of all threads.
template <class Work>
void first_thread(benchmark::State& state, Work&& work) {
  meeting->arrive_and_wait();
  if (state.thread_index() == 0) work();
  meeting->arrive_and_wait();
}

void cancel(benchmark::State& state, bool transferred) {
  std::vector<hwt::Timeout> timeouts(kBatch);
  for (auto _ : state) {
    state.PauseTiming();
    for (hwt::Timeout& timeout : timeouts) {
      timeout = timer->new_timeout([&state] { benchmark::DoNotOptimize(&state); }, 600s);
    }
    first_thread(state, [&] {
      if (transferred) timer->driver().transfer(0);
    });
    state.ResumeTiming();
    for (hwt::Timeout& timeout : timeouts) timeout.cancel();
    state.PauseTiming();
    for (hwt::Timeout& timeout : timeouts) timeout = {};
    first_thread(state, [] {
      timer->driver().collect_cancelled();
      timer->driver().transfer(0);
    });
    state.ResumeTiming();
  }
  hwt::perf::count(state, state.iterations() * static_cast<std::int64_t>(kBatch));
}

void cancel_queued(benchmark::State& state) { cancel(state, false); }
BENCHMARK(cancel_queued)
    ->Name("cancel/before_transfer")
    ->Setup(make_timer)
    ->Teardown(drop_timer)
    ->Threads(1)
    ->Threads(2)
    ->Threads(4);

void cancel_in_wheel(benchmark::State& state) { cancel(state, true); }
BENCHMARK(cancel_in_wheel)
    ->Name("cancel/after_transfer")
    ->Setup(make_timer)
    ->Teardown(drop_timer)
    ->Threads(1)
    ->Threads(2)
    ->Threads(4);

}  // namespace
