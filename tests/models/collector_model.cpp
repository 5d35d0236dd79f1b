// Free memory (Depot, Collector) against a worker that goes to sleep. The worker sees that many nodes were freed, or it
// is woken. This also holds if the worker was to be woken for a larger number before.

#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/memory/batch_stack.h"
#include "hashed_wheel_timer/internal/memory/collector.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "tests/models/model_timer.h"

namespace model {
namespace {

using hwt::internal::AsymmetricFence;
using hwt::internal::Collector;
using hwt::internal::Core;
using hwt::internal::FreeNode;
using hwt::internal::kForever;
using hwt::internal::Node;

constexpr std::size_t kMany = 20'000;  // as which one node counts here

struct Freed final : Run {
  Node node{};
  ModelTimer timer{ModelTimer::Parts{}};
  Core& core = timer.core();
  Collector collector{core.depot()};

  Freed() {
    if (random(2) == 0) return;
    // As many have been free before, and were kept; some of them are used now.
    constexpr std::int64_t kLater = std::int64_t{1} << 40;
    free();
    collector.next_step(0);
    collector.step(kLater);
    core.depot().note_shortage();
    while (collector.step(kLater)) {
    }
    collector.step(4 * kLater);
    core.depot().take(1);
  }

  void free() {
    FreeNode::make(&node, nullptr);
    node.next = nullptr;
    core.depot().push(&node, kMany);
  }

  void thread(unsigned index) override {
    if (index == 0) return free();
    core.sleeper().announce(0);
    AsymmetricFence::heavy();
    if (collector.next_step(0) == kForever) {
      core.sleeper().sleep_until(kForever);  // or for ever
    } else {
      core.sleeper().retract();
    }
  }

  void after() override { core.depot().take(1); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check({"collector", 2, 10'000, &model::make<model::Freed>}, argc, argv);
}
