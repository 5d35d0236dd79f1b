// The memory of nodes: each thread takes from its own pool. Nodes come back one by one, in batches, or from another
// thread.

#include "hashed_wheel_timer/internal/memory/node_pool.h"

#include <array>
#include <atomic>
#include <thread>

#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using hwt::internal::Node;
using hwt::internal::NodePool;

constexpr std::size_t kBatch = 256;

// The pools only pass the core on. No benchmark uses it.
hwt::internal::Core& any_core() {
  static hwt::perf::ThreadlessTimer timer;
  return timer.core();
}

using Nodes = std::array<Node*, kBatch>;

/// Returns the nodes in runs of this length.
void give_back(NodePool& pool, const Nodes& nodes, std::size_t run) {
  for (std::size_t i = 0; i < kBatch; i += run) {
    for (std::size_t j = i; j < i + run; ++j) nodes[j]->next() = j + 1 < i + run ? nodes[j + 1] : nullptr;
    pool.give_back(nodes[i], static_cast<std::int64_t>(run));
  }
}

void node_pool(benchmark::State& state, std::size_t run) {
  NodePool pool(any_core().depot());
  Nodes nodes;
  const auto step = [&] {
    for (Node*& node : nodes) node = pool.take();
    give_back(pool, nodes, run);
  };
  hwt::perf::repeat(state, step, std::int64_t{kBatch});
}
BENCHMARK_CAPTURE(node_pool, take_and_give_back_256, kBatch)->Apply(hwt::perf::with_threads);
BENCHMARK_CAPTURE(node_pool, take_and_give_back_one, 1)->Apply(hwt::perf::with_threads);

// One thread takes nodes, another one returns them in batches. Measures wall time, because each thread waits for the
// other. Needs two processors.
void across_threads(benchmark::State& state) {
  NodePool pool(any_core().depot());
  struct Hand {
    alignas(hwt::internal::kCacheLine) std::atomic<Nodes*> full{nullptr};
    alignas(hwt::internal::kCacheLine) std::atomic<Nodes*> empty{nullptr};
  } hand;
  Nodes one;
  Nodes other;
  hand.empty = &other;
  std::jthread giver([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto* const nodes = hand.full.exchange(nullptr, std::memory_order_acquire);
      if (nodes == nullptr) {
        std::this_thread::yield();
        continue;
      }
      give_back(pool, *nodes, kBatch);
      hand.empty.store(nodes, std::memory_order_release);
    }
  });
  auto* nodes = &one;
  const auto step = [&] {
    for (Node*& node : *nodes) {
      node = pool.take();
      node->deadline = 1;  // as the timer does
    }
    hand.full.store(nodes, std::memory_order_release);
    while ((nodes = hand.empty.exchange(nullptr, std::memory_order_acquire)) == nullptr) std::this_thread::yield();
  };
  hwt::perf::repeat(state, step, std::int64_t{kBatch});
}
BENCHMARK(across_threads)->Name("node_pool/take_here_give_back_256_there")->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
