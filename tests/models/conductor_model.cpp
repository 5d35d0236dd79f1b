// A RepeatedTimer (Conductor). One user starts or restarts it, another resets or stops it, and the armed timeout may
// expire at any moment. Hooks never overlap. At most one timeout is armed. No trigger is lost, and none comes after
// stop().

#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

struct Repeated final : Run {
  const bool stops = random(2) == 0;
  const bool starts = random(2) == 0;
  int in_hooks = 0;  // not atomic: a data race shows that hooks overlap, or that one does not see the one before
  Ghost<int> triggers = 0;
  hwt::ManualTimer timer{nanoseconds(1)};
  hwt::RepeatedTimer repeated{"",
                              nanoseconds(1),
                              timer,
                              {.on_trigger =
                                   [this] {
                                     ++in_hooks;
                                     ++triggers;
                                   },
                               .adjust_timeout =
                                   [this](nanoseconds timeout) {
                                     ++in_hooks;
                                     return timeout;
                                   }}};

  void thread(unsigned index) override {
    if (index == 0) {
      for (int turns = 0; turns < 3; ++turns) timer.advance(nanoseconds(1));
    } else if (index == 1) {
      starts ? repeated.start() : repeated.restart();
    } else if (stops) {
      repeated.stop();
    } else {
      repeated.reset(nanoseconds(2));
    }
  }

  void after() override {
    const bool runs = !stops || repeated.running();
    MODEL_ASSERT(repeated.running() == runs);
    MODEL_ASSERT(timer.pending_timeouts() == (runs ? 1 : 0));
    const int before = triggers;
    timer.advance(nanoseconds(2));
    MODEL_ASSERT(runs ? triggers > before : triggers == before);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Repeated>({.threads = 3, .schedules = 10'000}, argc, argv);
}
