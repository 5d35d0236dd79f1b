// A schedule (ScheduledRun and PendingTimeout). One thread makes it, then reads it and may cancel it. Another thread
// reads it, and two threads of an executor run expired timeouts.
//
// Runs do not overlap and none is lost. After cancel() none starts, and nothing stays pending. The job is destroyed
// once, and not while it may run. A reader finds the latest timeout. If a timeout expires before it is stored, the
// thread that stores it makes the run.
//
// The acquire of enter() and the release of finish_arming() are not needed here. The exchanges of the timeout's word
// give the same order. For cancel(), the release of the exchange to Arming does.

#include "model.h"

namespace model {
namespace {

Weakening missed_lost{"enter(): does not set Missed while a thread arms"};
Weakening missed_unseen{"finish_arming(): no run after Missed"};
Weakening cancelled_unseen{"go_on(): a timeout that cancel() has not found stays pending"};
Weakening waits_first{"go_on(): the timeout is stored after the state has become Waiting"};
Weakening first_blind{"set_first(): replaces a timeout that is already there"};
Weakening set_relaxed{"set(): release"};
Weakening loan_relaxed{"Loan: acquire"};
Weakening back_blind{"~Loan: puts the timeout back although it was replaced"};
Weakening users_together{"Loan: without the mutex"};
Weakening begin_blind{"begin_run(): starts a run although the schedule has ended"};
Weakening cancel_relaxed{"cancel(): acquire"};

constexpr int kTimeouts = 8;
constexpr int kRuns = 3;
enum : int { kNone, kPending, kExpired, kCancelled };
enum : int { kNothing = -1, kLent = -2 };

using Word = std::uint64_t;
enum : Word { kWaiting, kBusy, kRunning, kArming, kMissed, kState = 7, kEnded = 8 };
Word with_state(Word word, Word state) { return (word & ~Word{kState}) | state; }

struct Run : Model<Run, 4> {
  Atomic<Word> word;
  Atomic<int> timeouts[kTimeouts];
  Plain<int> contents[kTimeouts];  // of their nodes, as the handle shows them
  Atomic<int> place{kNothing};
  Atomic<int> users;      // the mutex
  Atomic<int> scheduled;  // the user's own way to hand the handle on
  Plain<int> job{1};
  int made = 0;
  int runs = 0;
  int destroyed = 0;
  bool cancels = false;
  bool cancelled = false;

  void before() { cancels = rl::rand(2) == 0; }

  void thread(unsigned index) {
    if (index == 0) {
      const int first = arm();
      // Late, so that the first runs may come before set_first().
      for (int held = static_cast<int>(rl::rand(3)) * 8; held > 0; --held) rl::yield(1, RL_INFO);
      int seen = kNothing;
      if (first_blind) {
        place.exchange(first, mo_acq_rel);
      } else {
        place.compare_exchange_strong(seen, first, mo_release, mo_relaxed);
      }
      scheduled.store(1, mo_release);
      look(-1);
      if (cancels) cancel();
    } else if (index == 1) {
      while (scheduled.load(mo_acquire) == 0) rl::yield(1, RL_INFO);
      look(look(-1));
    } else {
      for (int turns = 0; turns < 8; ++turns) execute();
    }
  }

  int arm() {
    const int timeout = made++;
    MODEL_ASSERT(timeout < kTimeouts);
    contents[timeout].set(timeout);
    timeouts[timeout].store(kPending, mo_release);
    return timeout;
  }

  // A thread of the executor.

  void execute() {
    for (int i = 0, end = made; i < end && runs < kRuns; ++i) {
      int seen = timeouts[i].load(mo_acquire);
      if (seen != kPending || rl::rand(2) == 0) continue;
      if (timeouts[i].compare_exchange_strong(seen, kExpired, mo_acq_rel, mo_acquire)) on_timeout();
    }
    rl::yield(1, RL_INFO);
  }

  void on_timeout() {
    if (!enter()) return;
    do {
      if (!begin_run()) return finish();
      job.set(job.get() + 1);
      Word seen = word.load(mo_relaxed);
      while (!word.compare_exchange_weak(seen, with_state(seen, kArming), mo_acq_rel, mo_relaxed)) {
      }
      if ((seen & kEnded) != 0) return finish();
    } while (go_on());
  }

  bool enter() {
    Word seen = word.load(mo_acquire);
    for (;;) {
      const Word state = seen & kState;
      if ((seen & kEnded) != 0 || (state != kWaiting && (state != kArming || missed_lost))) return false;
      if (word.compare_exchange_weak(seen, with_state(seen, state == kWaiting ? kBusy : kMissed), mo_acq_rel,
                                     mo_acquire))
        return state == kWaiting;
    }
  }

  bool begin_run() {
    Word seen = word.load(mo_relaxed);
    while ((seen & kEnded) == 0 || begin_blind) {
      if (!word.compare_exchange_weak(seen, with_state(seen, kRunning), mo_acq_rel, mo_relaxed)) continue;
      MODEL_ASSERT(!cancelled);
      ++runs;
      return true;
    }
    return false;
  }

  /// Whether to run again.
  bool go_on() {
    const int armed = arm();
    if (!waits_first) set(armed);
    Word seen = word.load(mo_acquire);
    bool missed = false;
    do {
      if ((seen & kEnded) != 0) {
        if (!cancelled_unseen) cancel_timeout(armed);
        finish();
        return false;
      }
      missed = (seen & kState) == kMissed && !missed_unseen;
    } while (!word.compare_exchange_weak(seen, with_state(seen, missed ? kBusy : kWaiting), mo_acq_rel, mo_acquire));
    if (waits_first) set(armed);
    return missed;
  }

  void set(int timeout) { place.exchange(timeout, set_relaxed ? mo_acquire : mo_acq_rel); }

  void cancel_timeout(int timeout) {
    int seen = kPending;
    timeouts[timeout].compare_exchange_strong(seen, kCancelled, mo_acq_rel, mo_acquire);
  }

  void finish() {
    job.set(-1);
    ++destroyed;
    Word seen = word.load(mo_relaxed);
    while (!word.compare_exchange_weak(seen, seen | kEnded, mo_release, mo_relaxed)) {
    }
  }

  // A user.

  void lock() {
    int seen = 0;
    while (!users_together && !users.compare_exchange_weak(seen, 1, mo_acquire, mo_relaxed)) {
      seen = 0;
      rl::yield(1, RL_INFO);
    }
  }
  void unlock() {
    if (!users_together) users.store(0, mo_release);
  }

  /// A Loan. `before`: the timeout that it found the last time.
  int look(int before) {
    lock();
    const Order order = loan_relaxed ? mo_relaxed : mo_acquire;
    int seen = place.load(order);
    while (seen != kNothing && !place.compare_exchange_weak(seen, kLent, order, order)) {
    }
    const int found = seen;
    if (found >= 0) {
      MODEL_ASSERT(contents[found].get() == found);
      MODEL_ASSERT(found >= before);
      int lent = kLent;
      if (back_blind) {
        place.exchange(found, mo_acq_rel);
      } else {
        place.compare_exchange_strong(lent, found, mo_relaxed, mo_relaxed);
      }
    } else {
      MODEL_ASSERT(found == kNothing && cancels);
    }
    unlock();
    return found < 0 ? before : found;
  }

  void cancel() {
    Word seen = word.load(cancel_relaxed ? mo_relaxed : mo_acquire);
    do {
      if ((seen & kEnded) != 0) return;
    } while (!word.compare_exchange_weak(seen, seen | kEnded, cancel_relaxed ? mo_release : mo_acq_rel,
                                         cancel_relaxed ? mo_relaxed : mo_acquire));
    cancelled = true;
    if ((seen & kState) == kWaiting) {
      job.set(-1);
      ++destroyed;
    }
    lock();
    const int pending = place.exchange(kNothing, mo_acq_rel);
    if (pending >= 0) cancel_timeout(pending);
    unlock();
  }

  void after() {
    int pending = -1;
    for (int i = 0; i < made; ++i) {
      if (timeouts[i].load(mo_relaxed) != kPending) continue;
      MODEL_ASSERT(pending == -1);
      pending = i;
    }
    if ((word.load(mo_relaxed) & kEnded) != 0) {
      MODEL_ASSERT(cancelled && destroyed == 1);
      MODEL_ASSERT(pending == -1);
    } else {
      MODEL_ASSERT((word.load(mo_relaxed) & kState) == kWaiting);
      MODEL_ASSERT(destroyed == 0 && job.get() == runs + 1);
      MODEL_ASSERT(pending != -1 && place.load(mo_relaxed) == pending);
    }
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Run>({&missed_lost, &missed_unseen, &cancelled_unseen, &waits_first, &first_blind, &set_relaxed,
                     &loan_relaxed, &back_blind, &users_together, &begin_blind, &cancel_relaxed});
}
