// Free nodes (BatchStack). The first thread pushes two batches. The second takes some and puts the rest back. The third
// pushes a batch, takes all, and closes the stack. Each node comes to one thread, which sees it as it was pushed.

#include "hashed_wheel_timer/internal/memory/batch_stack.cpp"  // NOLINT(bugprone-suspicious-include): one unit
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::BatchStack;
using hwt::internal::FreeNode;
using hwt::internal::Node;

constinit Node nodes[3]{};
constinit BatchStack stack;
constinit std::atomic<bool> done{false};  // the user's own: nobody takes nodes from a timer that goes
std::int64_t had[3];                      // each thread's own

/// Returns how many it still has.
std::int64_t push(int node) {
  FreeNode::make(&nodes[node], nullptr);
  nodes[node].next() = nullptr;
  return stack.push(&nodes[node], 1) ? 0 : 1;
}

std::int64_t have(Node* batches) {
  std::int64_t count = 0;
  for (; batches != nullptr; batches = FreeNode::of(batches).next_batch) {
    MODEL_ASSERT(batches->next() == nullptr);
    batches->next() = batches;
    ++count;
  }
  return count;
}

void pusher() { had[0] = push(0) + push(1); }
void some() {
  std::int64_t taken = 0;
  had[1] = have(stack.take_some(1, taken));
  done.store(true, std::memory_order_release);
}
void all() {
  had[2] = push(2);
  had[2] += have(stack.take_all());
  model::wait_until([] { return done.load(std::memory_order_acquire); });
  had[2] += stack.close();
}

}  // namespace

int main() {
  model::run<pusher, some, all>();
  MODEL_ASSERT(had[0] + had[1] + had[2] == 3);
  return 0;
}
