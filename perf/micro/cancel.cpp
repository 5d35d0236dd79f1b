// cancel() before and after the worker has transferred the timeout. There is no worker: all threads meet before each
// step, and the first one does the worker's part.

#include <barrier>

#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 5000;

std::unique_ptr<hwt::perf::ThreadlessTimer> timer;
std::unique_ptr<std::barrier<>> meeting;

void with_meeting(hwt::perf::Benchmark* benchmark) {
  benchmark->Apply(hwt::perf::with_threads)->Teardown([](const benchmark::State&) { timer.reset(); });
  benchmark->Setup([](const benchmark::State& state) {
    timer = std::make_unique<hwt::perf::ThreadlessTimer>();
    meeting = std::make_unique<std::barrier<>>(state.threads());
  });
}

// Runs on one thread, between two meetings of all threads.
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
      if (transferred) timer->transfer_all();
    });
    state.ResumeTiming();
    for (hwt::Timeout& timeout : timeouts) timeout.cancel();
    state.PauseTiming();
    for (hwt::Timeout& timeout : timeouts) timeout = {};
    first_thread(state, [] { timer->transfer_all(); });
    state.ResumeTiming();
  }
  hwt::perf::count(state, state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK_CAPTURE(cancel, before_transfer, false)->Apply(with_meeting);
BENCHMARK_CAPTURE(cancel, after_transfer, true)->Apply(with_meeting);

}  // namespace
