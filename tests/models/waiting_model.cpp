// One node by itself, and threads that wait for its task (Node::cancel, take_over, finish, wait_while_busy).
// Also a thread that sleeps until it is woken (Sleeper, Parking). A woken thread sees all writes before
// the wake-up.

#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::Node;
using hwt::internal::NodeState;
using hwt::internal::Sleeper;

struct Waiting final : Run {
  Node node{};
  Sleeper sleeper;
  const bool early = random(2) == 0;
  int task = 0;
  int node_memory = 0;  // written when the last handle is gone, as by the next timeout in the node
  int called = 0;
  Ghost<int> gone = 0;

  Waiting() {
    // Expired, on its way through an executor, with a handle of each thread.
    node.word.store(static_cast<std::uint64_t>(NodeState::Expired) + Node::kHandedOver + 3 * Node::kReference);
  }

  void thread(unsigned index) override {
    if (index == 2) {
      if (early) use_and_drop();
      sleeper.announce(0);
      sleeper.sleep_until(hwt::internal::kForever);
      MODEL_ASSERT(called == 1);
      if (early) return;
    }
    if (node.take_over()) {
      ++task;
      ++task;
      drop(node.finish(2));  // with its handle
    } else {
      if (random(2) == 0) {
        node.wait_while_busy();
        MODEL_ASSERT(task == 2);
      }
      use_and_drop();
    }
    if (index == 0) {
      called = 1;
      sleeper.wake();
    }
  }

  void use_and_drop() {
    MODEL_ASSERT(node_memory == 0);
    drop(node.drop_references(1));
  }

  void drop(bool last) {
    if (!last) return;
    ++gone;
    task = 3;  // and no race
    node_memory = 1;
  }

  void after() override { MODEL_ASSERT(gone == 1); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Waiting>({.threads = 3, .schedules = 20'000}, argc, argv);
}
