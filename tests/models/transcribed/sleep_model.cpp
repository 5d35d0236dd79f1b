// The worker's sleep (WorkerThread::sleep, announce_sleep, Sleeper, Parking) against threads that enqueue. No timeout
// in the inbox is due before the announced end of the sleep, unless the worker was woken. A cancelled() that is due
// soon does not wait either (Core::wake_for_cancelled_hook). A thread need not wake the worker if another one has done
// so. But no thread relies on one that may be preempted, so some threads here stop half-way for good.
//
// In relacy, loads may return old values, but a store never moves before earlier operations of its thread. In the code,
// the release of the sleep's number and the acquire in wake_if_asleep() keep the wake-up behind the load of the number.
// Here the order of the statements stands for them, so the model cannot weaken these two.

#include "inbox_model.h"

namespace model {
namespace {

using namespace inbox;

Weakening no_heavy_fence_before_sleep{"sleep(): the heavy fence after announce()"};
Weakening announce_late{"sleep(): announce() after the look into the inbox"};
Weakening same_number{"announce(): the number of the sleep before"};
Weakening forget_late{"park_until(): permits consumed after the next announcement"};
Weakening number_late{"wake_if_asleep(): the number read after the wake-up"};
Weakening woken_early{"wake_if_asleep(): woken_from_ before the wake-up"};

Weakening listed_too_late{"list() with a deadline later than that of the entry"};
Weakening no_light_fence_for_hook{"wake_for_cancelled_hook(): the light fence"};

constexpr int kProducers = 2;
constexpr int kDeadlines[kProducers][2] = {{7, 3}, {7, 8}};  // of the two entries of each producer
constexpr int kAwake = -1;
constexpr int kDue = 50;  // the earliest in the wheel

struct Sleep : Model<Sleep, kProducers + 1> {
  Inbox<Sleep, kProducers> inbox;
  Atomic<int> wake_until{kAwake};
  Atomic<int> number;  // Sleeper::sleep_
  Atomic<int> woken_from;
  Atomic<int> permit;
  Atomic<int> all_awaited;
  Atomic<int> idle;             // only for linger()
  bool stuck[kProducers] = {};  // the thread never goes on
  int sleeps_until = 0;

  void thread(unsigned index) {
    if (index == kProducers) return work();
    if (index == 1 && rl::rand(8) == 0) {
      all_awaited.store(1, mo_release);
      if (!no_light_fence_for_hook) light_fence();
      stuck[1] = !wake_for(0);
      return;
    }
    for (const int deadline : kDeadlines[index]) {
      inbox.put_and_list(static_cast<int>(index), listed_too_late ? kUnlisted - 1 : deadline);
      stuck[index] = !wake_for(deadline);
      if (stuck[index]) return;
    }
  }

  void work() {
    for (int sleeps = 2;;) {
      if (all_awaited.load(mo_relaxed) != 0) all_awaited.exchange(0, mo_acquire);
      // A worker that was woken before anything is due does not open the inbox, and sleeps on.
      if (sleeps == 2 || rl::rand(2) == 0) inbox.open();
      sleeps_until = sleep();
      if (--sleeps == 0) return;  // and is not seen again
      // Woken, or the time has come.
      if (!forget_late) permit.exchange(0, mo_acquire);
      wake_until.store(kAwake, mo_relaxed);
    }
  }

  int sleep() {
    const int known = wanted();
    if (!announce_late) announce(known - 1);
    if (forget_late) permit.exchange(0, mo_acquire);
    if (!no_heavy_fence_before_sleep) heavy_fence();
    const int until = wanted();
    if (announce_late || until != known) announce(until - 1);
    return until;
  }

  int wanted() { return std::min({kDue, inbox.earliest_waiting(), all_awaited.load(mo_relaxed) != 0 ? 0 : kDue}); }

  // A tick is one unit here. A deadline of the tick for which the worker sleeps need not wake it, so the announcement
  // is one less.
  void announce(int end) {
    number.store(number.load(mo_relaxed) + (same_number ? 0 : 1), mo_release);
    wake_until.store(end, mo_release);
  }

  /// Sleeper::wake_for() and wake_if_asleep(). Returns false if the thread never goes on.
  bool wake_for(int deadline) {
    if (deadline > wake_until.load(mo_relaxed)) return true;
    if (wake_until.load(mo_acquire) == kAwake) return true;
    int sleep = number.load(mo_acquire);
    if (woken_from.load(mo_acquire) == sleep) return true;
    if (woken_early) woken_from.store(sleep, mo_release);
    if (rl::rand(4) == 0) return false;
    linger();
    permit.exchange(1, mo_release);
    linger();
    if (number_late) sleep = number.load(mo_acquire);
    woken_from.store(sleep, mo_release);
    return true;
  }

  /// May pause this thread while others make many steps. Otherwise that is rare, because all run at the same speed.
  void linger() const {
    for (unsigned steps = 20 * rl::rand(2); steps != 0; --steps) idle.load(mo_relaxed);
  }

  void after() {
    if (permit.load(mo_relaxed) == 1) return;
    MODEL_ASSERT(stuck[1] || all_awaited.load(mo_relaxed) == 0 || sleeps_until == 0);
    for (int i = 0; i < kProducers; ++i) {
      const auto& place = inbox.places[i];
      for (int entry = place.taken; entry < place.put.load(mo_relaxed); ++entry) {
        MODEL_ASSERT(stuck[i] || kDeadlines[i][entry] >= sleeps_until);
      }
    }
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Sleep>({&no_second_light_fence, &no_heavy_fence_before_sleep, &announce_late, &same_number, &forget_late,
                       &number_late, &woken_early, &no_light_fence_for_hook, &listed_too_late});
}
