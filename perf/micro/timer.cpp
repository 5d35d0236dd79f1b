// new_timeout() and reschedule() alone, and the whole timer with its worker.

#include <array>
#include <atomic>
#include <cstddef>
#include <thread>
#include <utility>

#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using namespace std::chrono_literals;
using hwt::perf::Benchmark;
using hwt::perf::drop_timer;
using hwt::perf::repeat;
using hwt::perf::timer;
using hwt::perf::with_threads;
using hwt::perf::with_timer;

constexpr std::size_t kRing = 1000;  // pending timeouts of a thread

void with_limit(Benchmark* benchmark) {
  benchmark->Teardown(drop_timer)->Setup([](const benchmark::State&) {
    timer = std::make_unique<hwt::HashedWheelTimer>(
        hwt::Options{.tick_duration = 1ms, .max_pending_timeouts = std::int64_t{1} << 40});
  });
}

void with_tick(Benchmark* benchmark) {
  benchmark->ArgName("tick_ms")
      ->MeasureProcessCPUTime()
      ->Teardown(drop_timer)
      ->Setup([](const benchmark::State& state) {
        timer = std::make_unique<hwt::HashedWheelTimer>(std::chrono::milliseconds(state.range(0)));
      });
}

// Schedules in batches. Between them, unmeasured, it cancels them and lets the worker return the memory.
void new_timeout(benchmark::State& state, auto make_task) {
  constexpr std::size_t kBatch = 5000;
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
  new_timeout(state, [&state] { return [&state] { benchmark::DoNotOptimize(&state); }; });
}
BENCHMARK(small_task)->Name("new_timeout")->Apply(with_timer)->Apply(with_threads);
BENCHMARK(small_task)->Name("new_timeout/with_limit")->Apply(with_limit)->Threads(1)->Threads(2);

// A task with a destructor.
BENCHMARK_CAPTURE(new_timeout, shared_ptr, [owned = std::make_shared<int>(1)] {
  return [owned] { benchmark::DoNotOptimize(owned.get()); };
})->Apply(with_timer);

// A capture that does not fit into a node.
BENCHMARK_CAPTURE(new_timeout, 64_bytes, [] {
  return [large = std::array<std::byte, 64>{}] { benchmark::DoNotOptimize(&large); };
})->Apply(with_timer);

struct Task final : hwt::TimerTask {
  void run(hwt::Timeout&) override {}
};
BENCHMARK_CAPTURE(new_timeout, timer_task, [task = std::shared_ptr<hwt::TimerTask>(std::make_shared<Task>())] {
  return task;
})->Apply(with_timer);

// Each thread moves its own timeouts.
void reschedule(benchmark::State& state, std::chrono::nanoseconds first, std::chrono::nanoseconds step) {
  std::vector<hwt::Timeout> timeouts(kRing);
  for (hwt::Timeout& timeout : timeouts) timeout = timer->new_timeout([] {}, first);
  std::chrono::nanoseconds delay = first;
  std::size_t at = 0;
  repeat(state, [&] {
    timeouts[at].reschedule(delay);
    delay += step;
    at = hwt::perf::next_in_ring(at, kRing);
  });
  for (hwt::Timeout& timeout : timeouts) timeout.cancel();
}
// A keep-alive. The timeouts are still in the inbox, because the worker has no reason to take far ones soon.
BENCHMARK_CAPTURE(reschedule, later, 600s, 1ns)->Apply(with_timer)->Apply(with_threads);
// An earlier deadline. After the first calls all timeouts are in the wheel, and the worker gets recheck requests.
BENCHMARK_CAPTURE(reschedule, earlier, 10'000h, -1us)->Apply(with_timer)->MeasureProcessCPUTime();

// The request path: cancels the oldest of a ring and schedules a new timeout.
void churn(benchmark::State& state, auto schedule) {
  std::vector<hwt::Timeout> ring(kRing);
  std::size_t at = 0;
  repeat(state, [&] {
    ring[at].cancel();
    ring[at] = schedule([&state] { benchmark::DoNotOptimize(&state); });
    at = hwt::perf::next_in_ring(at, kRing);
  });
  for (hwt::Timeout& timeout : ring) timeout.cancel();
}
// Compare with floor/schedule_cancel_threads.
void churn_by_delay(benchmark::State& state) {
  churn(state, [](auto task) { return timer->new_timeout(task, 5s); });
}
BENCHMARK(churn_by_delay)->Name("timer/churn")->Apply(with_tick)->Arg(1)->Arg(100)->Apply(with_threads);
// One thread uses many timers in turn. Compare the sizes: only the caches should differ.
void in_turn(benchmark::State& state) {
  std::vector<std::unique_ptr<hwt::perf::ThreadlessTimer>> timers(static_cast<std::size_t>(state.range(0)));
  for (auto& one : timers) one = std::make_unique<hwt::perf::ThreadlessTimer>();
  std::size_t at = 0;
  repeat(state, [&] {
    timers[at]->new_timeout([&state] { benchmark::DoNotOptimize(&state); }, 5s).cancel();
    at = hwt::perf::next_in_ring(at, timers.size());
  });
}
BENCHMARK(in_turn)->Name("timer/in_turn")->ArgName("timers")->Arg(1)->Arg(16)->Arg(64)->Arg(1000);
// The deadline is given, as by a request. Compare with timer/churn and floor/schedule_cancel_at.
void churn_by_deadline(benchmark::State& state) {
  churn(state,
        [deadline = timer->now() + 600s](auto task) mutable { return timer->new_timeout(task, deadline += 1us); });
}
BENCHMARK(churn_by_deadline)->Name("timer/churn_at")->Apply(with_tick)->Arg(1)->Arg(100)->Apply(with_threads);

// Schedules and waits until all have run.
void schedule_expire(benchmark::State& state) {
  constexpr std::int64_t kBatch = 100'000;
  const auto step = [] {
    std::atomic<std::int64_t> ran{0};
    for (std::int64_t i = 0; i < kBatch; ++i) {
      timer->new_timeout([&ran] { ran.store(ran.load(std::memory_order_relaxed) + 1, std::memory_order_release); },
                         1ms + (i % 16) * 1ms);
    }
    while (ran.load(std::memory_order_acquire) != kBatch) std::this_thread::sleep_for(100us);
  };
  repeat(state, step, kBatch);
}
BENCHMARK(schedule_expire)->Name("timer/schedule_expire")->Apply(with_tick)->Arg(1);

// The sum of the threads' counters, or the exact counter if there is a limit.
void pending_timeouts(benchmark::State& state) {
  hwt::HashedWheelTimer limited{{.tick_duration = 10ms, .max_pending_timeouts = state.range(0)}};
  limited.new_timeout([] {}, 1h);
  repeat(state, [&] { benchmark::DoNotOptimize(limited.pending_timeouts()); });
}
BENCHMARK(pending_timeouts)->Name("timer/pending_timeouts")->ArgName("limit")->Arg(-1)->Arg(1'000'000);

}  // namespace
