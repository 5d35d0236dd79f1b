// What single steps cost on this machine, and the least that a schedule and a cancel can consist of: what the figures
// of the timer are to be compared with.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/internal/queues.h"
#include "perf/micro/floor_pair.h"
#include "perf/micro/random.h"
#include "perf/micro/support.h"

namespace {

using hwt::internal::kCacheLine;
using hwt::perf::count;
using hwt::perf::FloorPair;
using hwt::perf::Random;

template <class Step>
void repeat(benchmark::State& state, Step&& step) {
  for (auto _ : state) step();
  count(state, state.iterations());
}

void clock_now(benchmark::State& state) {
  repeat(state, [] { benchmark::DoNotOptimize(std::chrono::steady_clock::now()); });
}
BENCHMARK(clock_now)->Name("floor/steady_clock_now");

void cycle_counter(benchmark::State& state) {
#if defined(__x86_64__) || defined(__i386__)
  repeat(state, [] { benchmark::DoNotOptimize(__builtin_ia32_rdtsc()); });
#elif defined(__aarch64__)
  repeat(state, [] {
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    benchmark::DoNotOptimize(value);
  });
#else
  state.SkipWithError("not known on this processor");
#endif
}
BENCHMARK(cycle_counter)->Name("floor/cycle_counter");

alignas(kCacheLine) std::atomic<std::uint64_t> one_line{0};

void fetch_add(benchmark::State& state) {
  repeat(state, [] { one_line.fetch_add(1, std::memory_order_acq_rel); });
}
// With two threads: on the same line.
BENCHMARK(fetch_add)->Name("floor/fetch_add")->Threads(1)->Threads(2);

void compare_exchange(benchmark::State& state) {
  std::uint64_t value = one_line.load();
  repeat(state, [&] { one_line.compare_exchange_strong(value, value + 1, std::memory_order_acq_rel); });
}
BENCHMARK(compare_exchange)->Name("floor/compare_exchange");

void release_store(benchmark::State& state) {
  repeat(state, [] {
    one_line.store(1, std::memory_order_release);
    benchmark::ClobberMemory();
  });
}
BENCHMARK(release_store)->Name("floor/release_store");

void full_fence(benchmark::State& state) {
  repeat(state, [] { std::atomic_thread_fence(std::memory_order_seq_cst); });
}
BENCHMARK(full_fence)->Name("floor/full_fence");

void malloc_free(benchmark::State& state) {
  repeat(state, [] {
    void* const memory = std::malloc(64);
    benchmark::DoNotOptimize(memory);
    std::free(memory);
  });
}
BENCHMARK(malloc_free)->Name("floor/malloc_free");

// One element through the queue: enqueued with a token, dequeued 256 at a time.
void queue_element(benchmark::State& state) {
  constexpr std::size_t kBatch = 256;
  moodycamel::ConcurrentQueue<void*, hwt::internal::QueueTraits> queue;
  const moodycamel::ProducerToken producer(queue);
  moodycamel::ConsumerToken consumer(queue);
  std::array<void*, kBatch> batch;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBatch; ++i) queue.enqueue(producer, &queue);
    benchmark::DoNotOptimize(queue.try_dequeue_bulk(consumer, batch.data(), kBatch));
  }
  count(state, state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK(queue_element)->Name("floor/queue_element");

struct alignas(kCacheLine) Line {
  std::uint32_t next;
};
constexpr std::uint32_t kLines = (64U << 20) / sizeof(Line);

// 64 MiB in one circle through all lines, in random order.
std::vector<Line> random_circle() {
  std::vector<std::uint32_t> order(kLines);
  std::iota(order.begin(), order.end(), 0U);
  Random random(1);
  for (std::uint32_t i = kLines - 1; i > 0; --i) std::swap(order[i], order[random.next() % (i + 1)]);
  std::vector<Line> lines(kLines);
  for (std::uint32_t i = 0; i < kLines; ++i) lines[order[i]].next = order[(i + 1) % kLines];
  return lines;
}

// Each line's address is known only when the one before it has arrived.
void cold_line(benchmark::State& state) {
  const std::vector<Line> lines = random_circle();
  std::uint32_t at = 0;
  repeat(state, [&] { benchmark::DoNotOptimize(at = lines[at].next); });
}
BENCHMARK(cold_line)->Name("floor/cold_line");

// All addresses are known beforehand: the processor fetches several at a time.
void cold_line_known(benchmark::State& state) {
  std::vector<Line> lines(kLines);
  Random random(1);
  repeat(state, [&] { ++lines[random.next() % kLines].next; });
}
BENCHMARK(cold_line_known)->Name("floor/cold_line_known_ahead");

void schedule_cancel(benchmark::State& state) {
  const auto floor = std::make_unique<FloorPair>();
  std::size_t since_drain = 0;
  repeat(state, [&] {
    floor->pair();
    if (++since_drain == FloorPair::kBatch) {
      since_drain = 0;
      floor->drain();
    }
  });
}
BENCHMARK(schedule_cancel)->Name("floor/schedule_cancel");

void schedule_cancel_threads(benchmark::State& state) {
  const auto floor = std::make_unique<FloorPair>();
  std::jthread worker([&floor](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!floor->drain()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  repeat(state, [&] { floor->pair(); });
}
BENCHMARK(schedule_cancel_threads)->Name("floor/schedule_cancel_threads")->MeasureProcessCPUTime();

}  // namespace
