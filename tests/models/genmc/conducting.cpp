// The Conductor of a RepeatedTimer. One user restarts the timer, with a hook; another destroys it; and an expiry comes.
// One thread at a time is the conductor, and hands its state to the next one. Writes before a note or a mark are seen.
// A thread that has waited for the end sees all work done.

#include <atomic>

#include "hashed_wheel_timer/internal/recurring/conductor.h"
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::Conductor;

Conductor* conductor;
int state = 0;                // the conductor's
std::atomic<int> expired{0};  // stored before a mark
std::atomic<int> wish{0};     // before a note

void leave() {
  if (conductor->destroyed()) conductor->set_disarmed();
  while (!conductor->leave()) {
    MODEL_ASSERT(expired.load(std::memory_order_relaxed) == 1);
    ++state;
  }
}

void expire() {
  expired.store(1, std::memory_order_relaxed);
  if (!conductor->enter_expired(0)) return;
  conductor->begin_hook(Conductor::kTriggering);
  ++state;
  conductor->end_hook();
  if (conductor->destroyed()) MODEL_ASSERT(wish.load(std::memory_order_relaxed) == 1);
  leave();
}
void restart() {
  if (!conductor->enter([](Conductor::Word word) { return word & ~Conductor::kStopped; })) return;
  ++state;
  conductor->begin_hook(0);
  ++state;
  conductor->end_hook();
  leave();
}
void destroy() {
  wish.store(1, std::memory_order_relaxed);
  if (conductor->enter([](Conductor::Word word) { return word | Conductor::kDestroyed; })) {
    ++state;
    leave();
  }
  conductor->wait_for_other();
  state = 0;
}

}  // namespace

int main() {
  conductor = new Conductor;
  model::run<expire, restart, destroy>();
  MODEL_ASSERT((conductor->word() & (Conductor::kConducted | Conductor::kExpired)) == 0);
  delete conductor;
  return 0;
}
