// KeyedTimer: a keep-alive for a million connections, and the life of a key. CPU time of the calling threads, or of the
// process if the worker takes part.

#include "hashed_wheel_timer/keyed_timer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;

using hwt::perf::timer;
using Keyed = hwt::KeyedTimer<std::uint64_t, std::uint64_t>;

std::unique_ptr<Keyed> keyed;
std::atomic<std::int64_t> expired;

void with_keys(hwt::perf::Benchmark* benchmark) {
  benchmark->ArgName("keys")->Setup([](const benchmark::State& state) {
    timer = std::make_unique<hwt::HashedWheelTimer>(1ms);
    keyed = std::make_unique<Keyed>(*timer, [](const std::uint64_t&, std::uint64_t&) {
      expired.store(expired.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    });
    for (std::int64_t key = 0; key < state.range(0); ++key) (void)keyed->set(static_cast<std::uint64_t>(key), 0, 600s);
  });
  benchmark->Teardown([](const benchmark::State&) {
    keyed.reset();
    timer.reset();
  });
}
void with_threads(hwt::perf::Benchmark* benchmark) {
  benchmark->Apply(with_keys)->Arg(1000)->Arg(1'000'000)->Apply(hwt::perf::with_threads);
}

enum class Order { Sequential, Random };

/// A heartbeat: calls f(key) for all keys in a cycle, each thread in its own order.
void keyed_timer(benchmark::State& state, Order order, auto f) {
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(state.range(0)));
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  const auto thread = static_cast<std::size_t>(state.thread_index());
  if (order == Order::Random) std::shuffle(keys.begin(), keys.end(), std::mt19937_64(thread));
  std::size_t next = keys.size() / static_cast<std::size_t>(state.threads()) * thread;
  hwt::perf::repeat(state, [&] {
    benchmark::DoNotOptimize(f(keys[next]));
    next = hwt::perf::next_in_ring(next, keys.size());
  });
}

struct Move {
  auto operator()(std::uint64_t key) { return keyed->move(key, 600s + ++moves * 1ns); }
  std::int64_t moves = 0;
};
BENCHMARK_CAPTURE(keyed_timer, move_sequential, Order::Sequential, Move())->Apply(with_threads);
BENCHMARK_CAPTURE(keyed_timer, move_random, Order::Random, Move())->Apply(with_threads);
// Only the lookup in the hash table, and its lock: no timeout is touched.
BENCHMARK_CAPTURE(keyed_timer, contains_random, Order::Random, [](std::uint64_t key) { return keyed->contains(key); })
    ->Apply(with_keys)
    ->Arg(1'000'000);

// A connection that comes and goes, beside a thousand others of its thread.
void set_remove(benchmark::State& state) {
  constexpr std::uint64_t kRing = 1000;
  std::uint64_t key = static_cast<std::uint64_t>(state.thread_index()) << 32;
  for (std::uint64_t i = 0; i < kRing; ++i) (void)keyed->set(key++, 0, 600s);
  hwt::perf::repeat(state, [&key] {
    benchmark::DoNotOptimize(keyed->remove(key - kRing));
    benchmark::DoNotOptimize(keyed->set(key++, 0, 600s));
  });
}
BENCHMARK(set_remove)
    ->Name("keyed_timer/set_remove")
    ->Apply(with_keys)
    ->Arg(0)
    ->Apply(hwt::perf::with_threads)
    ->MeasureProcessCPUTime();

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The slowest set() while a table grows to a million keys, in wall time and in CPU time of the thread. CPU time leaves
// out preemption.
void growth(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  double slowest = 0;
  double slowest_cpu = 0;
  for (auto _ : state) {
    for (std::uint64_t key = 0; key < 1'000'000; ++key) {
      const double cpu = thread_seconds();
      const auto begin = Clock::now();
      (void)keyed->set(key, 0, 600s);
      slowest = std::max(slowest, std::chrono::duration<double>(Clock::now() - begin).count());
      slowest_cpu = std::max(slowest_cpu, thread_seconds() - cpu);
    }
  }
  state.counters["slowest_s"] = slowest;
  state.counters["slowest_cpu_s"] = slowest_cpu;
}
BENCHMARK(growth)
    ->Name("keyed_timer/growth")
    ->Apply(with_keys)
    ->Arg(0)
    ->Iterations(1)
    ->Repetitions(5)
    ->Unit(benchmark::kMillisecond);

// Sets keys and waits until all have expired.
void set_expire(benchmark::State& state) {
  constexpr std::int64_t kBatch = 100'000;
  const auto step = [] {
    expired = 0;
    for (std::int64_t i = 0; i < kBatch; ++i) (void)keyed->set(static_cast<std::uint64_t>(i), 0, 1ms + (i % 16) * 1ms);
    while (expired.load(std::memory_order_acquire) != kBatch) std::this_thread::sleep_for(100us);
  };
  hwt::perf::repeat(state, step, kBatch);
}
BENCHMARK(set_expire)->Name("keyed_timer/set_expire")->Apply(with_keys)->Arg(0)->MeasureProcessCPUTime();

}  // namespace
