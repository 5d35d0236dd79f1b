// The end of two timeouts (Node). The worker is busy with their tasks, a user waits for one of them, and another thread
// only drops handles. The user sees all writes of the task. One thread drops the last reference, and sees the writes of
// all others.

#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::Node;
using hwt::internal::NodeState;

struct Each {
  Node node{};
  int results[3]{};  // each thread's own, until the node is free
  int freed = 0;

  void have() {
    ++freed;
    for (int& result : results) ++result;
  }
  void finish() {
    results[0] = 1;
    if (node.finish(1)) have();
  }
  void drop(int thread) {
    results[thread] = 1;
    if (node.drop_references(1)) have();
  }
};

constinit Each awaited;
constinit Each dropped;  // nobody waits for it

void work() {
  dropped.finish();
  awaited.finish();
}
void wait() {
  awaited.node.wait_while_busy();
  MODEL_ASSERT(awaited.results[0] >= 1);
  awaited.drop(1);
}
void drop() {
  dropped.drop(1);
  awaited.drop(2);
}

void begin(Each& each, std::uint64_t references) {
  const std::uint64_t word = Node::with_state(Node::kBusy + references * Node::kReference, NodeState::Expired);
  each.node.word.store(word, std::memory_order_relaxed);
}

}  // namespace

int main() {
  begin(awaited, 3);
  begin(dropped, 2);
  model::run<work, wait, drop>();
  MODEL_ASSERT(awaited.freed == 1 && dropped.freed == 1);
  for (const int result : awaited.results) MODEL_ASSERT(result == 2);
  return 0;
}
