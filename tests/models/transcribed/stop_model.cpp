// stop() against new_timeout() (Core::offer_as, ThreadedEngine::work). Either a timeout is accepted, and the worker
// that empties the timer finds it, or its producer takes it back. It is never both and never neither. A worker that
// sleeps for ever sees that the timer stops.

#include "inbox_model.h"

namespace model {
namespace {

using namespace inbox;

Weakening phase_first{"offer_as(): running() before the entry is put and listed"};
Weakening no_heavy_fence_before_cancel_all{"body(): the heavy fence before cancel_all()"};
Weakening cancel_all_first{"body(): cancel_all() before the phase has changed"};
Weakening permit_relaxed{"set_permit(): release"};
Weakening park_relaxed{"park_until(): acquire"};
Weakening withdraw_blind{"withdraw(): a store instead of a compare-exchange"};

enum : int { kQueued, kInWheel, kCancelled };

struct Stop : Model<Stop, 3> {
  Inbox<Stop, 1> inbox;
  Atomic<int> running{1};  // the phase of the Lifecycle is Started
  Atomic<int> permit;
  Atomic<int> words[2];  // Node::word of both timeouts
  bool accepted[2] = {};
  bool found[2] = {};

  void thread(unsigned index) {
    if (index == 0) {
      offer_as(0);
      offer_as(1);
    } else if (index == 1) {
      running.exchange(0, mo_acq_rel);
      permit.exchange(1, permit_relaxed ? mo_relaxed : mo_release);
    } else {
      body();
    }
  }

  void offer_as(int i) {
    words[i].store(kQueued, mo_release);
    const bool ran = running.load(mo_relaxed) != 0;
    inbox.put_and_list(0, i);
    const bool runs = phase_first ? ran : running.load(mo_relaxed) != 0;
    accepted[i] = runs || !withdraw(words[i]);
  }

  static bool withdraw(Atomic<int>& word) {
    int seen = word.load(mo_acquire);
    if (withdraw_blind) word.store(kCancelled, mo_release);
    while (seen == kQueued) {
      if (withdraw_blind || word.compare_exchange_weak(seen, kCancelled, mo_acq_rel, mo_acquire)) return true;
    }
    return false;
  }

  void body() {
    if (cancel_all_first) cancel_all();
    if (running.load(mo_relaxed) != 0) {
      while (permit.load(mo_relaxed) == 0) rl::yield(1, RL_INFO);
      permit.exchange(0, park_relaxed ? mo_relaxed : mo_acquire);
      MODEL_ASSERT(running.load(mo_relaxed) == 0);  // or it would sleep again, and nobody would wake it
    }
    if (!no_heavy_fence_before_cancel_all) heavy_fence();
    if (!cancel_all_first) cancel_all();
  }

  void cancel_all() {
    inbox.open();
    for (int i = 0; i < inbox.places[0].taken; ++i) {
      int seen = words[i].load(mo_acquire);
      while (seen == kQueued && !found[i])
        found[i] = words[i].compare_exchange_weak(seen, kInWheel, mo_acq_rel, mo_acquire);
    }
  }

  void after() {
    for (int i = 0; i < 2; ++i) MODEL_ASSERT(accepted[i] == found[i]);
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Stop>({&no_light_fence, &no_second_light_fence, &phase_first, &no_heavy_fence_before_cancel_all,
                      &cancel_all_first, &permit_relaxed, &park_relaxed, &withdraw_blind});
}
