// cancel_and_wait() (task_run.cpp) of two threads against the worker or an executor's job (Node::finish, take_over,
// wait_while_busy), and a parking lot at which they wait. The task runs, or one of them has cancelled or disarmed it,
// and when either returns nobody uses what the task refers to; nobody sleeps for ever; and the node is given back once.
//
// Of take_over() no order is needed here: the task came with the job, or with the handle. Nor of the exchange that says
// that somebody waits: it hands nothing over.

#include "model.h"

namespace model {
namespace {

Weakening finish_relaxed{"finish(): release"};
Weakening look_relaxed{"wait_while_busy(): acquire of the look"};
Weakening wake_relaxed{"wake_all(): release"};
Weakening ticket_relaxed{"ticket(): acquire"};
Weakening ticket_late{"wait_while_busy(): the ticket after the look"};
Weakening wake_early{"finish(): wakes before the exchange"};
Weakening not_awaited{"wait_while_busy(): parks without saying so"};
Weakening await_blind{"wait_while_busy(): a store instead of a compare-exchange"};
Weakening busy_late{"visit(): busy after the claim"};
Weakening cancel_not_busy{"cancel(): not busy while it destroys the callable"};
Weakening take_over_not_busy{"take_over(): not busy"};
Weakening take_over_blind{"take_over(): a store instead of a compare-exchange"};

enum : std::uint64_t { kPending, kExpired, kCancelled, kStateMask = 3 };
constexpr std::uint64_t kHandedOver = 4;
constexpr std::uint64_t kBusy = 8;
constexpr std::uint64_t kAwaited = 16;
constexpr std::uint64_t kReference = 32;
constexpr std::uint64_t kReferences = ~(kReference - 1);

std::uint64_t state_of(std::uint64_t word) { return word & kStateMask; }
std::uint64_t with_state(std::uint64_t word, std::uint64_t state) { return (word & ~kStateMask) | state; }

struct Join : Model<Join, 3> {
  Atomic<std::uint64_t> word{kPending + 3 * kReference};  // the timer's, and two handles
  Atomic<int> calls;                                      // of the place in the parking lot
  Plain<int> referent{0};                                 // what the task refers to
  int runs = 0;
  int truths = 0;
  int given_back = 0;

  void thread(unsigned index) {
    if (index == 0) {
      work();
    } else {
      truths += cancel_and_wait() ? 1 : 0;
      referent.get();  // as it is destroyed
      drop(1);
    }
  }

  void work() {
    const bool executor = rl::rand(2) == 1;
    std::uint64_t seen = word.load(mo_acquire);
    std::uint64_t left = 0;
    do {
      if (state_of(seen) == kCancelled) return drop(1);
      left = with_state(seen, kExpired) + kReference;
      if (executor) {
        left += kHandedOver;
      } else if (!busy_late) {
        left += kBusy;
      }
    } while (!word.compare_exchange_weak(seen, left, mo_acq_rel, mo_acquire));
    if (!executor) {
      if (busy_late) word.fetch_add(kBusy, mo_acq_rel);
      run();
      return finish(2);
    }
    drop(1);
    if (take_over()) {
      run();
      finish(1);
    }
    drop(1);  // the job's
  }

  void run() {
    ++runs;
    referent.set(1);
    referent.set(2);  // the callable's destructor
  }

  bool cancel_and_wait() {
    if (cancel()) return true;
    if (take_over()) {
      referent.set(3);  // the callable's destructor
      finish(1);
      return true;
    }
    wait_while_busy();
    return false;
  }

  bool cancel() {
    std::uint64_t seen = word.load(mo_acquire);
    while (state_of(seen) == kPending) {
      const std::uint64_t left = with_state(seen, kCancelled) + kReference + (cancel_not_busy ? 0 : kBusy);
      if (!word.compare_exchange_weak(seen, left, mo_acq_rel, mo_acquire)) continue;
      referent.set(4);  // the callable's destructor
      if (cancel_not_busy) {
        drop(1);
      } else {
        finish(1);
      }
      return true;
    }
    return false;
  }

  bool take_over() {
    std::uint64_t seen = word.load(mo_relaxed);
    while ((seen & kHandedOver) != 0) {
      const std::uint64_t left = seen - kHandedOver + (take_over_not_busy ? 0 : kBusy) + kReference;
      if (take_over_blind) word.store(left, mo_release);
      if (take_over_blind || word.compare_exchange_weak(seen, left, mo_relaxed, mo_relaxed)) return true;
    }
    return false;
  }

  void wait_while_busy() {
    for (;;) {
      int ticket = take_ticket();
      std::uint64_t seen = word.load(look_relaxed ? mo_relaxed : mo_acquire);
      if ((seen & kBusy) == 0) return;
      if (await_blind) word.store(seen | kAwaited, mo_release);
      if ((seen & kAwaited) == 0 && !not_awaited && !await_blind &&
          !word.compare_exchange_weak(seen, seen | kAwaited, mo_relaxed, mo_relaxed)) {
        continue;
      }
      if (ticket_late) ticket = take_ticket();
      while (calls.load(mo_relaxed) == ticket) rl::yield(1, RL_INFO);
    }
  }
  int take_ticket() { return calls.load(ticket_relaxed ? mo_relaxed : mo_acquire); }

  void finish(std::uint64_t count) {
    const bool busy = !take_over_not_busy || (word.load(mo_relaxed) & kBusy) != 0;
    if ((word.load(mo_acquire) & kReferences) == count * kReference) return give_back();
    if (wake_early && (word.load(mo_relaxed) & kAwaited) != 0) wake();
    const std::uint64_t before =
        word.fetch_sub(count * kReference + (busy ? kBusy : 0), finish_relaxed ? mo_acquire : mo_acq_rel);
    if (!wake_early && (before & kAwaited) != 0) wake();
    if ((before & kReferences) == count * kReference) give_back();
  }
  void wake() { calls.fetch_add(1, wake_relaxed ? mo_relaxed : mo_release); }

  void drop(std::uint64_t count) {
    if ((word.load(mo_acquire) & kReferences) == count * kReference) return give_back();
    if ((word.fetch_sub(count * kReference, mo_acq_rel) & kReferences) == count * kReference) give_back();
  }
  void give_back() {
    ++given_back;
    referent.set(5);
  }

  void after() {
    MODEL_ASSERT(runs + truths == 1);
    MODEL_ASSERT(given_back == 1);
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Join>({&finish_relaxed, &look_relaxed, &wake_relaxed, &ticket_relaxed, &ticket_late, &wake_early,
                      &not_awaited, &await_blind, &busy_late, &cancel_not_busy, &take_over_not_busy, &take_over_blind});
}
