// Free nodes and free runs by themselves (BatchStack, RunStack): two threads push, two take all, some or one, and put
// the rest back, and one of these closes. Each is had once, as it was left.

#include "hashed_wheel_timer/internal/memory/batch_stack.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::BatchStack;
using hwt::internal::FreeNode;
using hwt::internal::Node;
using hwt::internal::Page;
using hwt::internal::RunStack;

constexpr unsigned kEach = 3;

struct Stacks final : Run {
  std::array<Node, 2 * kEach> nodes{};
  std::array<Page, 2 * kEach> pages{};
  BatchStack batches;
  RunStack runs;
  std::atomic<bool> done{false};
  Ghost<unsigned> nodes_had = 0;
  Ghost<unsigned> pages_had = 0;
  Ghost<unsigned> left = 0;
  Ghost<unsigned> refused = 0;

  void thread(unsigned index) override {
    if (index < 2) {
      for (unsigned i = index * kEach; i < (index + 1) * kEach; ++i) {
        FreeNode::make(&nodes[i], nullptr);
        nodes[i].next() = nullptr;
        if (!batches.push(&nodes[i], 1)) ++refused;
        pages[i].run_end = 1;
        runs.push(pages[i]);
      }
    } else if (index == 2) {
      for (int turns = 0; turns < 3; ++turns) take_some();
      done.store(true, std::memory_order_release);
    } else {
      take_some();
      // Nobody takes nodes from a timer that goes.
      while (!done.load(std::memory_order_acquire)) yield();
      left = static_cast<unsigned>(batches.close());
    }
  }

  void take_some() {
    std::int64_t taken = 0;
    have(random(2) == 0 ? batches.take_all() : batches.take_some(1, taken));
    have(random(2) == 0 ? runs.take_all() : runs.take_one());
  }

  void have(Node* batch) {
    for (; batch != nullptr; batch = FreeNode::of(batch).next_batch) {
      MODEL_ASSERT(FreeNode::of(batch).nodes == 1);
      batch->next() = batch;
      ++nodes_had;
    }
  }
  void have(Page* run) {
    for (; run != nullptr; run = run->next) {
      MODEL_ASSERT(run->run_end == 1);
      run->run_end = 2;
      ++pages_had;
    }
  }

  void after() override {
    have(runs.take_all());
    MODEL_ASSERT(pages_had == 2 * kEach);
    MODEL_ASSERT(nodes_had + left + refused == 2 * kEach);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Stacks>({.threads = 4, .schedules = 20'000}, argc, argv); }
