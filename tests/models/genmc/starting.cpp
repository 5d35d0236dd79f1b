// The phase of a timer (Lifecycle). A thread that finds the timer started sees the time of its start. One thread starts
// it and one stops it. A thread that has waited for either sees all work done.

#include "hashed_wheel_timer/internal/core/lifecycle.h"
#include "tests/models/genmc/program.h"

std::int64_t hwt::internal::this_process() noexcept { return 1; }

namespace {

using hwt::internal::Lifecycle;
using hwt::internal::Phase;

constinit Lifecycle life;
int thread_made = 0;  // like ThreadedEngine::thread_: owned by the thread in start(), then by the one in stop()
int emptied = 0;      // written by the thread that stops the timer

template <bool kFails>
void start() {
  if (!life.begin_start()) return;
  ++thread_made;
  if (kFails) return life.give_start_up();
  life.finish_start(7);
}

void stop() {
  for (;;) {
    const Phase phase = life.phase();
    if (phase == Phase::Starting || phase == Phase::Stopping) {
      life.wait_while(phase);
    } else if (phase == Phase::Init) {
      if (life.stop_unstarted()) return;
    } else if (phase == Phase::Stopped || life.begin_stop()) {
      break;
    }
  }
  if (life.phase() == Phase::Stopping) {
    MODEL_ASSERT(life.start_time() == 7);
    ++thread_made;
    emptied = 1;
    life.finish_stop();
  }
}

void use() {
  start<true>();
  if (life.started()) MODEL_ASSERT(life.start_time() == 7);
}
void start_and_stop() {
  start<false>();
  stop();
  if (life.phase() == Phase::Stopped && life.start_time() == 7) MODEL_ASSERT(emptied == 1);
}

}  // namespace

int main() {
  model::run<use, start_and_stop>();
  MODEL_ASSERT(life.phase() == Phase::Stopped);
  return 0;
}
