// The cost of single steps on this machine, and the least that schedule and cancel can consist of. Compare the figures
// of the timer with these.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "perf/micro/floor_pair.h"
#include "perf/micro/support.h"

namespace {

using hwt::internal::kCacheLine;
using hwt::perf::FloorPair;
using hwt::perf::Random;

/// Measures a step that consists of `operations` operations.
void floor(benchmark::State& state, auto step, std::int64_t operations = 1) {
  hwt::perf::repeat(state, step, operations);
}

BENCHMARK_CAPTURE(floor, steady_clock_now, [] { benchmark::DoNotOptimize(std::chrono::steady_clock::now()); });

void cycle_counter(benchmark::State& state) {
#if defined(__x86_64__) || defined(__i386__)
  floor(state, [] { benchmark::DoNotOptimize(__builtin_ia32_rdtsc()); });
#elif defined(__aarch64__)
  floor(state, [] {
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

// Two threads use the same line.
BENCHMARK_CAPTURE(floor, fetch_add, [] { one_line.fetch_add(1, std::memory_order_acq_rel); })->Threads(1)->Threads(2);

BENCHMARK_CAPTURE(floor, compare_exchange, [value = one_line.load()]() mutable {
  one_line.compare_exchange_strong(value, value + 1, std::memory_order_acq_rel);
});

BENCHMARK_CAPTURE(floor, release_store, [] {
  one_line.store(1, std::memory_order_release);
  benchmark::ClobberMemory();
});

BENCHMARK_CAPTURE(floor, full_fence, [] { std::atomic_thread_fence(std::memory_order_seq_cst); });

BENCHMARK_CAPTURE(floor, malloc_free, [] {
  void* const memory = std::malloc(64);
  benchmark::DoNotOptimize(memory);
  std::free(memory);
});

// One element through the queue, enqueued with a token and dequeued 256 at a time.
void queue_element(benchmark::State& state) {
  std::array<void*, 256> batch;
  moodycamel::ConcurrentQueue<void*, hwt::internal::QueueTraits> queue;
  const moodycamel::ProducerToken producer(queue);
  moodycamel::ConsumerToken consumer(queue);
  const auto step = [&] {
    for (std::size_t i = 0; i < batch.size(); ++i) queue.enqueue(producer, &queue);
    benchmark::DoNotOptimize(queue.try_dequeue_bulk(consumer, batch.data(), batch.size()));
  };
  floor(state, step, std::int64_t{batch.size()});
}
BENCHMARK(queue_element)->Name("floor/queue_element");

struct alignas(kCacheLine) Line {
  std::uint32_t next;
};
constexpr std::uint32_t kLines = (64U << 20) / sizeof(Line);

// 64 MiB as one cycle through all lines, in random order.
std::vector<Line> random_circle() {
  std::vector<std::uint32_t> order(kLines);
  std::iota(order.begin(), order.end(), 0U);
  Random random(1);
  for (std::uint32_t i = kLines - 1; i > 0; --i) std::swap(order[i], order[random.next() % (i + 1)]);
  std::vector<Line> lines(kLines);
  for (std::uint32_t i = 0; i < kLines; ++i) lines[order[i]].next = order[(i + 1) % kLines];
  return lines;
}

// Each line holds the address of the next one.
BENCHMARK_CAPTURE(floor, cold_line,
                  [lines = random_circle(), at = 0U]() mutable { benchmark::DoNotOptimize(at = lines[at].next); });

// All addresses are known in advance, so the processor fetches several at a time.
BENCHMARK_CAPTURE(floor, cold_line_known_ahead, [lines = std::vector<Line>(kLines), random = Random(1)]() mutable {
  ++lines[random.next() % kLines].next;
});

void schedule_cancel(benchmark::State& state, auto step) {
  const auto pair = std::make_unique<FloorPair>();
  std::size_t since_drain = 0;
  floor(state, [&] {
    step(*pair);
    if (++since_drain == FloorPair::kBatch) {
      since_drain = 0;
      pair->drain();
    }
  });
}
const auto by_delay = [](FloorPair& pair) { pair.pair(); };
// Without the clock.
const auto by_deadline = [deadline = std::int64_t{0}](FloorPair& pair) mutable { pair.pair_at(++deadline); };
BENCHMARK_CAPTURE(schedule_cancel, , by_delay)->Name("floor/schedule_cancel");
BENCHMARK_CAPTURE(schedule_cancel, at, by_deadline)->Name("floor/schedule_cancel_at");

void schedule_cancel_threads(benchmark::State& state) {
  const auto pair = std::make_unique<FloorPair>();
  std::jthread worker([&pair](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (!pair->drain()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  floor(state, [&] { pair->pair(); });
}
BENCHMARK(schedule_cancel_threads)->Name("floor/schedule_cancel_threads")->MeasureProcessCPUTime();

}  // namespace
