// The end of a core's memory (Depot::close, NodePool::close, BatchStack::close). Meanwhile the owner of a pool keeps
// nodes, and adds a second pool. Another thread gives nodes back to the pool and to the depot. Each node that is out is
// counted once. The last one to come back deletes the core, and no thread uses it afterwards.

#include "hashed_wheel_timer/internal/memory/depot.h"
#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "tests/models/checker.h"

namespace hwt::internal {

/// In place of the real one.
class Core {
 public:
  explicit Core(void (*delete_core)(Core&) noexcept) : depot(*this, 2, false, sleeper, delete_core) { depot.add(pool); }

  Sleeper sleeper;
  Depot depot;
  NodePool pool{depot};
  NodePool other{depot};
};

}  // namespace hwt::internal

namespace model {
namespace {

using hwt::internal::Core;
using hwt::internal::Depot;
using hwt::internal::Node;
using hwt::internal::NodePool;
using hwt::internal::ReturnBatch;

Ghost<int> deleted;

struct Closing final : Run {
  Core& core = *new Core([](Core& gone) noexcept {
    delete &gone;
    ++deleted;
  });
  Depot& depot = core.depot;
  std::array<Node*, 5> nodes;

  Closing() {
    deleted = 0;
    for (Node*& node : nodes) node = core.pool.take();
  }

  void thread(unsigned index) override {
    if (index == 0) {
      NodePool& pool = core.pool;
      NodePool& other = core.other;
      put_back(pool, nodes[0]);
      if (random(2) == 0) return put_back(pool, nodes[1]);
      depot.add(other);
      put_back(other, nodes[1]);
    } else if (index == 1) {
      hwt::internal::give_back_alone(nodes[2]);
      ReturnBatch(&depot).add_free(nodes[3]);
      hwt::internal::give_back_alone(nodes[4]);
    } else {
      depot.close();
    }
  }

  static void put_back(NodePool& pool, Node* node) {
    if (!pool.put_back(node)) hwt::internal::give_back_alone(node);
  }

  void after() override { MODEL_ASSERT(deleted == 1); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Closing>({.threads = 3, .schedules = 20'000}, argc, argv);
}
