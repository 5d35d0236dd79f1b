// One node by itself, and who waits for its task (Node::cancel, take_over, finish, wait_while_busy, ParkingLot); and a
// thread that sleeps until it is called (Sleeper, Parking): who is woken sees what was done before.

#include <atomic>
#include <cstdint>

#include "hashed_wheel_timer/internal/core/node.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::Node;
using hwt::internal::Sleeper;
using hwt::internal::State;

struct Waiting final : Run {
  Node node{};
  Sleeper sleeper;
  int task = 0;
  int called = 0;
  Ghost<int> gone = 0;

  Waiting() {
    // Expired, on its way through an executor, with a handle of each thread.
    node.word.store(static_cast<std::uint64_t>(State::Expired) + Node::kHandedOver + 3 * Node::kReference);
  }

  void thread(unsigned index) override {
    if (index == 2) {
      sleeper.announce(0);
      sleeper.sleep_until(hwt::internal::kForever);
      MODEL_ASSERT(called == 1);
    }
    if (node.take_over()) {
      ++task;
      ++task;
      drop(node.finish(1));
    } else {
      node.wait_while_busy();
      MODEL_ASSERT(task == 2);
    }
    drop(node.drop_references(1));
    if (index == 0) {
      called = 1;
      sleeper.wake();
    }
  }

  void drop(bool last) {
    if (!last) return;
    ++gone;
    task = 3;  // and no race
  }

  void after() override { MODEL_ASSERT(gone == 1); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check({"waiting", 3, 20'000, &model::make<model::Waiting>}, argc, argv);
}
