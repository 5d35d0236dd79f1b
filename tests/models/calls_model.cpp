// The driver of a timer without a worker is called from outside (Sleeper::call_outside, end_calls). It replaces the
// object that threads call, and destroys the old one. Each announcement leads to one call at most. No thread calls an
// object that was replaced.

#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::Sleeper;

constexpr unsigned kCallers = 2;

struct Calls final : Run {
  struct Object final : Sleeper::Outside {
    Ghost<int> calls = 0;
    int written = 0;  // the object may be destroyed only after its call
    void call() noexcept override {
      MODEL_ASSERT(++calls == 1);
      ++written;
    }
  };
  Sleeper sleeper;

  void thread(unsigned index) override {
    if (index < kCallers) {
      for (int times = 0; times < 2; ++times) sleeper.wake_if_asleep();
      return;
    }
    std::unique_ptr<Object> object;
    for (int round = 0; round < 3; ++round) {
      while (!sleeper.end_calls()) yield();
      object = std::make_unique<Object>();
      sleeper.set_outside(object.get());
      ++object->written;  // the call sees all that came before the announcement, also after the fence
      sleeper.announce(0);
      sleeper.announce_earlier(0, -1);
    }
    while (!sleeper.end_calls()) yield();
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Calls>({.threads = model::kCallers + 1, .schedules = 20'000}, argc, argv);
}
