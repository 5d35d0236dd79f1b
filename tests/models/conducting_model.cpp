// The Conductor of a RepeatedTimer by itself. Users arm the timer or note requests, one user may destroy it, and an
// expiry comes. One thread at a time is the conductor, and hands its state to the next one. Every note of a call and
// every mark of an expiry is seen. A thread that has waited for the end sees all work done.

#include "hashed_wheel_timer/internal/recurring/conductor.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::Conductor;
using Word = Conductor::Word;

struct Conducting final : Run {
  const bool destroys = random(2) == 0;
  Conductor conductor;
  int state = 0;                // the conductor's
  std::atomic<int> wish{0};     // stored before a note
  std::atomic<int> expired{0};  // before a mark
  Ghost<int> conductors = 0;
  Ghost<int> calls = 0;  // of the second thread
  Ghost<int> seen_wish = 0;
  Ghost<bool> marked = false;
  Ghost<bool> seen_mark = false;

  void thread(unsigned index) override {
    if (index == 0) {
      for (const int before = static_cast<int>(random(2)); calls < before;) yield();
      expired.store(1, std::memory_order_relaxed);
      if (conductor.enter_expired(0)) {
        conductor.begin_hook(Conductor::kTriggering);
        act();
        conductor.end_hook();
        conduct();
      } else if (!destroys) {  // with `destroys` the expiry may be out of date, and leave no mark
        marked = true;
      }
    } else if (index == 1) {
      wish.store(1, std::memory_order_relaxed);
      // Twice, so that the word may have its old value although another thread was the conductor meanwhile (ABA).
      for (; calls < 2; ++calls) enter([](Word word) { return word & ~Conductor::kStopped; });
    } else if (destroys) {
      enter([](Word word) { return word | Conductor::kDestroyed; });
      conductor.wait_for_other();
      state = 0;
    } else {
      enter([](Word word) { return word; });
    }
  }

  template <class Note>
  void enter(Note note) {
    if (conductor.enter(note)) conduct();
  }

  void act() {
    MODEL_ASSERT(++conductors == 1);
    ++state;
    --conductors;
  }

  void conduct() {
    do {
      act();
      if (random(2) == 0) {
        conductor.begin_hook(0);
        act();
        conductor.end_hook();
      }
      seen_wish = wish.load(std::memory_order_relaxed);
      act();
      if (conductor.destroyed()) conductor.set_disarmed();
    } while (!leave());
  }

  bool leave() {
    if (conductor.leave()) return true;
    MODEL_ASSERT(expired.load(std::memory_order_relaxed) == 1);
    seen_mark = true;
    return false;
  }

  void after() override {
    MODEL_ASSERT((conductor.word() & (Conductor::kConducted | Conductor::kExpired)) == 0);
    MODEL_ASSERT(destroys || seen_mark == marked);
    MODEL_ASSERT(destroys || seen_wish == 1);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Conducting>({.threads = 3, .schedules = 20'000}, argc, argv);
}
