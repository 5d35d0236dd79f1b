// KeyedTimer: a keep-alive for a million connections, and the life of a key. The time of the calling threads; where the
// worker takes part, of the process.

#include "hashed_wheel_timer/keyed_timer.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "perf/micro/random.h"
#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;

using Keyed = hwt::KeyedTimer<std::uint64_t, std::uint64_t>;

std::unique_ptr<hwt::HashedWheelTimer> timer;
std::unique_ptr<Keyed> keyed;
std::atomic<std::int64_t> expired;

void make(const benchmark::State& state) {
  timer = std::make_unique<hwt::HashedWheelTimer>(1ms);
  keyed = std::make_unique<Keyed>(*timer, [](const std::uint64_t&, std::uint64_t&) {
    expired.store(expired.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  });
  for (std::int64_t key = 0; key < state.range(0); ++key) keyed->set(static_cast<std::uint64_t>(key), 0, 600s);
}
void drop(const benchmark::State&) {
  keyed.reset();
  timer.reset();
}

enum class Order { Sequential, Random };

/// The keys in the order in which one thread takes them: each once.
std::vector<std::uint64_t> order_of(std::int64_t keys, Order order, int thread) {
  std::vector<std::uint64_t> result(static_cast<std::size_t>(keys));
  std::iota(result.begin(), result.end(), std::uint64_t{0});
  if (order == Order::Random)
    std::shuffle(result.begin(), result.end(), std::mt19937_64(static_cast<unsigned>(thread)));
  return result;
}

/// A heartbeat: calls f(key) for all keys, again and again.
template <class F>
void for_keys(benchmark::State& state, Order order, F f) {
  const std::vector<std::uint64_t> keys = order_of(state.range(0), order, state.thread_index());
  std::size_t next =
      keys.size() / static_cast<std::size_t>(state.threads()) * static_cast<std::size_t>(state.thread_index());
  for (auto _ : state) {
    f(keys[next]);
    next = next + 1 == keys.size() ? 0 : next + 1;
  }
  hwt::perf::count(state, state.iterations());
}

void move(benchmark::State& state, Order order) {
  std::int64_t moves = 0;
  for_keys(state, order,
           [&moves](std::uint64_t key) { benchmark::DoNotOptimize(keyed->move(key, 600s + ++moves * 1ns)); });
}
void move_sequential(benchmark::State& state) { move(state, Order::Sequential); }
void move_random(benchmark::State& state) { move(state, Order::Random); }

// The part of the map and its lock alone.
void find_random(benchmark::State& state) {
  for_keys(state, Order::Random, [](std::uint64_t key) { benchmark::DoNotOptimize(keyed->contains(key)); });
}

BENCHMARK(move_sequential)
    ->Name("keyed_timer/move_sequential")
    ->Setup(make)
    ->Teardown(drop)
    ->ArgName("keys")
    ->Arg(1000)
    ->Arg(1'000'000)
    ->Threads(1)
    ->Threads(2)
    ->Threads(4);
BENCHMARK(move_random)
    ->Name("keyed_timer/move_random")
    ->Setup(make)
    ->Teardown(drop)
    ->ArgName("keys")
    ->Arg(1000)
    ->Arg(1'000'000)
    ->Threads(1)
    ->Threads(2)
    ->Threads(4);
BENCHMARK(find_random)
    ->Name("keyed_timer/contains_random")
    ->Setup(make)
    ->Teardown(drop)
    ->ArgName("keys")
    ->Arg(1'000'000);

// A connection that comes and goes, a thousand others of its thread being there.
void set_remove(benchmark::State& state) {
  constexpr std::uint64_t kRing = 1000;
  std::uint64_t key = static_cast<std::uint64_t>(state.thread_index()) << 32;
  for (std::uint64_t i = 0; i < kRing; ++i) keyed->set(key++, 0, 600s);
  for (auto _ : state) {
    benchmark::DoNotOptimize(keyed->remove(key - kRing));
    benchmark::DoNotOptimize(keyed->set(key++, 0, 600s));
  }
  hwt::perf::count(state, state.iterations());
}
BENCHMARK(set_remove)
    ->Name("keyed_timer/set_remove")
    ->Setup(make)
    ->Teardown(drop)
    ->ArgName("others")
    ->Arg(0)
    ->Threads(1)
    ->Threads(2)
    ->Threads(4)
    ->MeasureProcessCPUTime();

// Set, and wait until all have expired.
void set_expire(benchmark::State& state) {
  constexpr std::int64_t kBatch = 100'000;
  for (auto _ : state) {
    expired = 0;
    for (std::int64_t i = 0; i < kBatch; ++i) keyed->set(static_cast<std::uint64_t>(i), 0, 1ms + (i % 16) * 1ms);
    while (expired.load(std::memory_order_acquire) != kBatch) std::this_thread::sleep_for(100us);
  }
  hwt::perf::count(state, state.iterations() * kBatch);
}
BENCHMARK(set_expire)
    ->Name("keyed_timer/set_expire")
    ->Setup(make)
    ->Teardown(drop)
    ->ArgName("others")
    ->Arg(0)
    ->MeasureProcessCPUTime();

}  // namespace
