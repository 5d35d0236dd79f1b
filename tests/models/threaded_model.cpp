// The worker of a ThreadedTimer (ThreadedEngine, WorkerRole, WorkerThread). One thread runs it, another schedules, and
// a third stops the timer. A timeout is accepted, and stop() returns it, or it is refused. The worker ends, also if it
// sleeps.

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/engine/worker_thread.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "hashed_wheel_timer/threaded_timer.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::Phase;
using std::chrono::hours;

class Timer final : public hwt::ThreadedTimer {
 public:
  Timer() { set_engine(&engine_); }
  ~Timer() override { end(); }
  bool has_begun() const { return engine_.core().lifecycle().phase() > Phase::Starting; }

 private:
  /// A thread of the model starts it.
  void begin() override {
    while (!has_begun()) yield();
  }

  hwt::internal::ThreadedEngine& engine_ = *new hwt::internal::WorkerThread<hwt::internal::HierarchicalWheel>(
      *this, hwt::Options{.tick_duration = hours(1)}, 64);
};

struct Threaded final : Run {
  Timer timer;
  Ghost<std::size_t> accepted = 0;
  Ghost<std::size_t> returned = 0;

  void thread(unsigned index) override {
    if (index == 0) {
      for (int times = 0; times < 2; ++times) {
        try {
          timer.new_timeout([] {}, hours(1'000));
          ++accepted;
        } catch (const hwt::IllegalState&) {
        }
      }
    } else if (index == 1) {
      timer.run();
    } else {
      while (!timer.has_begun()) yield();
      returned = timer.stop().size();
    }
  }

  void after() override { MODEL_ASSERT(returned == accepted); }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Threaded>({.threads = 3, .schedules = 10'000}, argc, argv);
}
