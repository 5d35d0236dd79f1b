// The memory of the nodes: each thread takes from a pool of its own, and nodes come back one by one, in batches, or
// from another thread.

#include "hashed_wheel_timer/internal/node_pool.h"

#include <benchmark/benchmark.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "hashed_wheel_timer/internal/node.h"
#include "perf/micro/support.h"
#include "perf/micro/threadless_timer.h"

namespace {

using hwt::internal::Node;
using hwt::internal::NodePool;
using hwt::perf::count;

constexpr std::size_t kBatch = 256;

// The pools only pass the core on; nothing here asks it.
hwt::internal::Core& any_core() {
  static hwt::perf::ThreadlessTimer timer;
  return timer.core();
}

void take_and_give_back(benchmark::State& state, std::size_t run) {
  NodePool pool(any_core());
  std::array<Node*, kBatch> nodes;
  for (auto _ : state) {
    for (Node*& node : nodes) node = pool.take();
    for (std::size_t i = 0; i < kBatch; i += run) {
      for (std::size_t j = i; j < i + run; ++j) nodes[j]->next = j + 1 < i + run ? nodes[j + 1] : nullptr;
      pool.give_back(nodes[i], static_cast<std::int64_t>(run));
    }
  }
  count(state, state.iterations() * static_cast<std::int64_t>(kBatch));
}

void batches(benchmark::State& state) { take_and_give_back(state, kBatch); }
BENCHMARK(batches)->Name("node_pool/take_and_give_back_256")->Threads(1)->Threads(2)->Threads(4);

void one_by_one(benchmark::State& state) { take_and_give_back(state, 1); }
BENCHMARK(one_by_one)->Name("node_pool/take_and_give_back_one")->Threads(1)->Threads(2)->Threads(4);

// One thread takes, another gives back in batches. Time that passes, not CPU time, since each waits for the other: it
// means something only with a processor for each.
void across_threads(benchmark::State& state) {
  NodePool pool(any_core());
  struct Hand {
    alignas(hwt::internal::kCacheLine) std::atomic<std::array<Node*, kBatch>*> full{nullptr};
    alignas(hwt::internal::kCacheLine) std::atomic<std::array<Node*, kBatch>*> empty{nullptr};
  } hand;
  std::array<Node*, kBatch> one;
  std::array<Node*, kBatch> other;
  hand.empty = &other;
  std::jthread giver([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      auto* const nodes = hand.full.exchange(nullptr, std::memory_order_acquire);
      if (nodes == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (std::size_t i = 0; i < kBatch; ++i) (*nodes)[i]->next = i + 1 < kBatch ? (*nodes)[i + 1] : nullptr;
      pool.give_back(nodes->front(), static_cast<std::int64_t>(kBatch));
      hand.empty.store(nodes, std::memory_order_release);
    }
  });
  auto* nodes = &one;
  for (auto _ : state) {
    for (Node*& node : *nodes) {
      node = pool.take();
      node->deadline = 1;  // as any user of a node writes to it
    }
    hand.full.store(nodes, std::memory_order_release);
    while ((nodes = hand.empty.exchange(nullptr, std::memory_order_acquire)) == nullptr) std::this_thread::yield();
  }
  count(state, state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK(across_threads)->Name("node_pool/take_here_give_back_256_there")->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
