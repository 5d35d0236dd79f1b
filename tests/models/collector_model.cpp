// Free memory (Depot, Collector) against a worker that goes to sleep. The worker sees that many nodes were freed, or it
// is woken. This also holds if the worker was to be woken for a larger number before.

#include "hashed_wheel_timer/internal/memory/batch_stack.h"
#include "hashed_wheel_timer/internal/memory/collector.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "tests/models/model_timer.h"

namespace model {
namespace {

using hwt::internal::Collector;
using hwt::internal::Core;
using hwt::internal::FreeNode;
using hwt::internal::kForever;
using hwt::internal::Node;

// `many` and `few` are one node each, and count as so many. Together they are worth a collection
// (Tuning::kWorthwhile); `many` alone is not.
constexpr std::size_t kMany = 16'000;
constexpr std::size_t kFew = 500;

struct Freed final : Run {
  Node many{};
  Node few{};
  ModelTimer timer;
  Core& core = timer.core();
  Collector collector{core.depot()};

  Freed() {
    if (random(2) == 0) return;
    // Both have been free before, and a shortage ended their collection. Then a producer takes `few`. So the collector
    // rests with `many` kept, and is to be woken for 1,024 nodes more (Tuning::kGrown). Then a producer takes `many`
    // too.
    constexpr std::int64_t kLater = std::int64_t{1} << 40;
    free();
    collector.next_step(0);
    collector.step(kLater);
    core.depot().note_shortage();
    while (collector.step(kLater)) {
    }
    core.depot().take(1);
    collector.step(4 * kLater);
    MODEL_ASSERT(collector.next_step(0) == kForever);
    core.depot().take(1);
  }

  void free() {
    free(many, kMany);
    free(few, kFew);
  }
  void free(Node& node, std::size_t nodes) {
    FreeNode::make(&node, nullptr);
    node.next() = nullptr;
    core.depot().push(&node, nodes);
  }

  void thread(unsigned index) override {
    if (index == 0) return free();
    core.sleeper().announce(0);
    if (collector.next_step(0) == kForever) {
      core.sleeper().sleep_until(kForever);  // or for ever
    } else {
      core.sleeper().retract();
    }
  }

  void after() override { core.depot().take(kMany + kFew); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Freed>({.threads = 2, .schedules = 10'000}, argc, argv); }
