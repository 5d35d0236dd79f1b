// The phase of a timer by itself (Lifecycle). A thread that finds the timer started sees the time of its start. Of the
// threads that try, one starts it and one stops it. A thread that has waited for either sees all work done.

#include "hashed_wheel_timer/internal/core/lifecycle.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::Lifecycle;
using hwt::internal::Phase;

struct Starting final : Run {
  Lifecycle life;
  int thread_made = 0;  // like ThreadedEngine::thread_: owned by the thread in start(), then by the one in stop()
  int emptied = 0;      // written by the thread that stops the timer
  Ghost<int> starts = 0;
  Ghost<int> stops = 0;

  void thread(unsigned index) override {
    start(index == 0 && random(2) == 0);
    if (life.started()) MODEL_ASSERT(life.start_time() == 7);
    if (index == 2) return;
    for (;;) {
      const Phase phase = life.phase();
      if (phase == Phase::Started) {
        if (!life.begin_stop()) continue;
        ++thread_made;
        emptied = 1;
        ++stops;
        life.finish_stop();
      } else if (phase == Phase::Stopping || phase == Phase::Starting) {
        life.wait_while(phase);
        continue;
      } else if (phase == Phase::Init) {
        if (!life.stop_unstarted()) continue;
        ++stops;
        return;
      }
      break;
    }
    MODEL_ASSERT(starts == 0 || emptied == 1);
  }

  /// `fails`: the thread factory fails.
  void start(bool fails) {
    if (!life.begin_start()) return;
    ++thread_made;
    if (fails) return life.give_start_up();
    ++starts;
    life.finish_start(7);
  }

  void after() override {
    MODEL_ASSERT(starts <= 1);
    MODEL_ASSERT(stops == 1);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Starting>({.threads = 3, .schedules = 20'000}, argc, argv);
}
