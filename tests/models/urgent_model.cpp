// A timeout of another thread is moved to an earlier time, while the worker opens the mover's place and goes to sleep
// (Core::move, Inbox::kUrgent, announce_sleep). The worker does not sleep beyond the new deadline, or it is woken.

#include "hashed_wheel_timer/timeout.h"
#include "tests/models/model_timer.h"

namespace model {
namespace {

constexpr nanoseconds kSoon{2};

struct Urgent final : Run {
  ModelTimer timer;
  hwt::Timeout pending = timer.new_timeout([] {}, nanoseconds(1000));
  Ghost<bool> listed = false;

  void thread(unsigned index) override {
    if (index == 0) {
      // So that the place is listed for the new deadline, although nothing is due then.
      timer.new_timeout([] {}, kSoon).cancel();
      listed = true;
      linger();
      MODEL_ASSERT(pending.reschedule(kSoon));
    } else {
      while (!listed) yield();
      timer.sleep(kSoon.count());
    }
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) { return model::check<model::Urgent>({.threads = 2, .schedules = 20'000}, argc, argv); }
