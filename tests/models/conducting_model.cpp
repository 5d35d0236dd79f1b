// Who acts for a RepeatedTimer, by itself (Conductor): users who arm it or note what they want, and an expiry. One
// thread at a time is the conductor; what it has goes to the next; what a call notes, or an expiry marks, is seen.

#include <atomic>

#include "hashed_wheel_timer/internal/schedule/conductor.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::Conductor;
using Word = Conductor::Word;

struct Conducting final : Run {
  Conductor conductor;
  int state = 0;                // the conductor's
  std::atomic<int> wish{0};     // stored before a note
  std::atomic<int> expired{0};  // before a mark
  Ghost<int> conductors = 0;
  Ghost<int> seen_wish = 0;
  Ghost<bool> marked = false;

  void thread(unsigned index) override {
    if (index == 0) {
      expired.store(1, std::memory_order_relaxed);
      if (conductor.enter_expired(conductor.arming())) {
        act();
        conductor.end_hook();
        conduct();
      } else {
        marked = true;
      }
    } else {
      if (index == 1) wish.store(1, std::memory_order_relaxed);
      Word before = 0;
      const auto note = [](Word word) { return word & ~Conductor::kStopped; };
      if (conductor.enter(note, before)) conduct();
      if (index == 2) conductor.wait_for_other();
    }
  }

  void act() {
    MODEL_ASSERT(++conductors == 1);
    ++state;
    --conductors;
  }

  void conduct() {
    do {
      act();
      conductor.begin_hook(0);
      act();
      conductor.end_hook();
      seen_wish = wish.load(std::memory_order_relaxed);
    } while (!leave());
  }

  bool leave() {
    if (conductor.leave()) return true;
    MODEL_ASSERT(expired.load(std::memory_order_relaxed) == 1);
    return false;
  }

  void after() override {
    MODEL_ASSERT((conductor.look() & Conductor::kConducted) == 0);
    MODEL_ASSERT(seen_wish == 1);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check({"conducting", 3, 20'000, &model::make<model::Conducting>}, argc, argv);
}
