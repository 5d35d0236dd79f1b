// ManualTimer::on_earlier() is replaced, or the timer is destroyed, while threads call it (Sleeper::call_outside,
// end_calls). Each announcement leads to at most one call, and no thread calls a function that was replaced.
//
// The release in end_calls() is not needed here, because a thread that then finds kAwake calls nothing.

#include "model.h"

namespace model {
namespace {

Weakening count_late{"call_outside(): begin_call() after the exchange"};
Weakening claim_by_load{"call_outside(): a load and a store for the exchange"};
Weakening claim_not_acquire{"call_outside(): acquire of the exchange"};
Weakening claim_not_release{"call_outside(): release of the exchange"};
Weakening end_by_store{"end_calls(): a store for the exchange"};
Weakening end_not_acquire{"end_calls(): acquire of the exchange"};
Weakening finish_relaxed{"finish_call(): release"};
Weakening wait_relaxed{"end_calls(): acquire of the count"};
Weakening announce_relaxed{"announce(): release"};

constexpr int kCallers = 2;
constexpr int kAwake = -1;

struct Calls : Model<Calls, kCallers + 1> {
  Atomic<int> wake_until{kAwake};
  Atomic<int> calls;
  Plain<int> outside{0};  // the object to which Sleeper::outside_ points: 0 when it was replaced
  Atomic<int> called[2];  // calls for each announcement

  void thread(unsigned index) {
    if (index < kCallers) return call_outside();
    for (int round = 0; round != 2; ++round) {
      outside.set(round + 1);
      wake_until.store(round, announce_relaxed ? mo_relaxed : mo_release);
      while (!end_calls()) rl::yield(1, RL_INFO);
      outside.set(0);
    }
  }

  void call_outside() {
    if (!count_late) calls.fetch_add(1, mo_relaxed);
    int announced = kAwake;
    if (claim_by_load) {
      announced = wake_until.load(mo_acquire);
      wake_until.store(kAwake, mo_release);
    } else {
      const Order order = claim_not_acquire ? mo_release : claim_not_release ? mo_acquire : mo_acq_rel;
      announced = wake_until.exchange(kAwake, order);
    }
    if (count_late) calls.fetch_add(1, mo_relaxed);
    if (announced != kAwake) {
      MODEL_ASSERT(outside.get() == announced + 1);
      MODEL_ASSERT(called[announced].fetch_add(1, mo_relaxed) == 0);
    }
    calls.fetch_sub(1, finish_relaxed ? mo_relaxed : mo_release);
  }

  bool end_calls() {
    if (end_by_store) {
      wake_until.store(kAwake, mo_release);
    } else {
      wake_until.exchange(kAwake, end_not_acquire ? mo_relaxed : mo_acquire);
    }
    return calls.load(wait_relaxed ? mo_relaxed : mo_acquire) == 0;
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Calls>({&count_late, &claim_by_load, &claim_not_acquire, &claim_not_release, &end_by_store,
                       &end_not_acquire, &finish_relaxed, &wait_relaxed, &announce_relaxed});
}
