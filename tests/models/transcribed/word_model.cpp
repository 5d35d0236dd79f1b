// One node through its lives (Node::word): queued, taken, cancelled by its producer or by another thread, withdrawn,
// expired, given back and used again, while old entries in the queue still name it. Each life ends once, by the thread
// that then has the task; no entry makes anything of another life; and nobody touches the node that is used again.
//
// Of publish() the release is not needed here: the queue's own orders the same. ThreadSanitizer, which cannot see the
// queue's, needs it. Nor is any order of the exchanges themselves: whoever wins has read the word with acquire before,
// and hands the node on by dropping its reference. reschedule_model has what they are for.

#include <algorithm>

#include "model.h"

namespace model {
namespace {

Weakening put_relaxed{"put(): release of the queue"};
Weakening take_relaxed{"take(): acquire of the queue"};
Weakening same_generation{"cancel(): withdrawn without a new generation"};
Weakening reference_left{"cancel(): withdrawn without the timer's reference"};
Weakening arrive_blind{"arrive(): a store instead of a compare-exchange"};
Weakening expire_blind{"visit(): a store instead of a compare-exchange"};
Weakening cancel_blind{"cancel(): a store instead of a compare-exchange"};
Weakening drop_not_release{"drop_references(): release"};
Weakening drop_not_acquire{"drop_references(): acquire"};
Weakening sole_owner_relaxed{"drop_references(): acquire of the look whether it is the sole owner"};
Weakening give_back_relaxed{"give_back(): release of the push"};
Weakening refill_relaxed{"refill(): acquire of the exchange"};
Weakening look_relaxed{"put_recheck(): release of the queue"};

enum : std::uint64_t { kQueued, kInWheel, kExpired, kCancelled, kStateMask = 3 };
constexpr std::uint64_t kRecheckQueued = 4;
constexpr std::uint64_t kReference = 8;
constexpr std::uint64_t kGeneration = 64;
constexpr std::uint64_t kReferences = kGeneration - kReference;
constexpr int kLives = 3;

std::uint64_t state_of(std::uint64_t word) { return word & kStateMask; }
std::uint64_t with_state(std::uint64_t word, std::uint64_t state) { return (word & ~kStateMask) | state; }
std::uint64_t generation_of(std::uint64_t word) { return word / kGeneration; }
bool pending(std::uint64_t word) { return state_of(word) <= kInWheel; }

struct Word : Model<Word, 3> {
  Atomic<std::uint64_t> word{with_state(0, kCancelled)};
  Plain<int> task{-1};
  Atomic<int> queued;                    // entries in the pending queue
  Plain<std::uint64_t> entries[kLives];  // their generations
  Atomic<int> looks;
  Atomic<int> returned;   // the pool's stack
  Atomic<int> handle;     // given to the canceller, by the user's own release and acquire
  bool free_here = true;  // the pool's private list
  int lives = 0;
  int ended = 0;
  int given_back = 0;

  void thread(unsigned index) {
    if (index == 0) {
      produce();
    } else if (index == 1) {
      while (handle.load(mo_acquire) == 0) rl::yield(1, RL_INFO);
      if (handle.load(mo_acquire) == 1) cancel_and_drop(false);
    } else {
      for (int passes = 0; passes < 3; ++passes) turn();
    }
  }

  void produce() {
    for (int life = 0; life < kLives; ++life) {
      if (!free_here && returned.exchange(0, refill_relaxed ? mo_relaxed : mo_acquire) == 0) break;
      free_here = false;
      ++lives;
      task.set(life);
      const std::uint64_t generation = word.load(mo_relaxed) & ~(kGeneration - 1);
      word.store(generation | 2 * kReference | kQueued, mo_release);
      entries[life].set(generation_of(generation));
      queued.store(life + 1, put_relaxed ? mo_relaxed : mo_release);
      if (life == 1) {
        handle.store(1, mo_release);
      } else {
        cancel_and_drop(true);
      }
    }
    if (lives < 2) handle.store(2, mo_release);  // there is none
  }

  /// Timeout::cancel(), and the handle goes.
  void cancel_and_drop(bool own) {
    std::uint64_t seen = word.load(mo_acquire);
    std::uint64_t left = 0;
    while (pending(seen)) {
      left = with_state(seen, kCancelled) + kReference;
      if (state_of(seen) == kInWheel) left |= kRecheckQueued;
      if (own && state_of(seen) == kQueued) {
        if (!same_generation) left += kGeneration;
        if (!reference_left) left -= kReference;
      }
      if (cancel_blind) word.store(left, mo_release);
      if (cancel_blind || word.compare_exchange_weak(seen, left, mo_acq_rel, mo_acquire)) break;
    }
    if (pending(seen)) {
      if (state_of(seen) == kInWheel && (seen & kRecheckQueued) == 0)
        looks.store(1, look_relaxed ? mo_relaxed : mo_release);
      ++ended;
      task.set(-1);  // destroyed
      drop(1, own);
    }
    drop(1, own);
  }

  void drop(std::uint64_t count, bool own) {
    const std::uint64_t dropped = count * kReference;
    const bool last = (word.load(sole_owner_relaxed ? mo_relaxed : mo_acquire) & kReferences) == dropped ||
                      (word.fetch_sub(dropped, drop_not_release   ? mo_acquire
                                               : drop_not_acquire ? mo_release
                                                                  : mo_acq_rel) &
                       kReferences) == dropped;
    if (!last) return;
    ++given_back;
    task.set(-1);
    if (own) {
      free_here = true;
    } else {
      MODEL_ASSERT(returned.exchange(1, give_back_relaxed ? mo_relaxed : mo_release) == 0);
    }
  }

  // The worker's.
  int taken = 0;
  bool in_wheel = false;

  void turn() {
    if (looks.load(mo_relaxed) != 0 && looks.exchange(0, mo_acquire) != 0) look();
    const int end = queued.load(take_relaxed ? mo_relaxed : mo_acquire);
    for (; taken < end; ++taken) arrive(entries[taken].get(), taken);
    if (in_wheel && rl::rand(2) == 0) expire();  // it is due
  }

  void arrive(std::uint64_t generation, int life) {
    std::uint64_t seen = word.load(mo_acquire);
    for (;;) {
      if (generation_of(seen) != generation) return;
      if (state_of(seen) == kCancelled) return drop(1, false);
      const std::uint64_t left = with_state(seen, kInWheel);
      if (arrive_blind) word.store(left, mo_release);
      if (arrive_blind || word.compare_exchange_weak(seen, left, mo_acq_rel, mo_acquire)) break;
    }
    MODEL_ASSERT(!in_wheel);
    in_wheel = true;
    MODEL_ASSERT(life == lives - 1);
  }

  void look() {
    std::uint64_t seen = word.load(mo_acquire);
    while (state_of(seen) == kCancelled && (seen & kRecheckQueued) != 0) {
      if (!word.compare_exchange_weak(seen, seen & ~kRecheckQueued, mo_acq_rel, mo_acquire)) continue;
      in_wheel = false;
      return drop(1, false);
    }
  }

  void expire() {
    std::uint64_t seen = word.load(mo_acquire);
    for (;;) {
      if (state_of(seen) == kCancelled) return;
      const std::uint64_t left = with_state(seen, kExpired) + kReference;
      if (expire_blind) word.store(left, mo_release);
      if (expire_blind || word.compare_exchange_weak(seen, left, mo_acq_rel, mo_acquire)) break;
    }
    in_wheel = false;
    ++ended;
    MODEL_ASSERT(task.get() == lives - 1);  // runs
    drop(2, false);
  }

  void after() {
    for (int passes = 0; passes < 2; ++passes) turn();
    if (in_wheel) expire();
    MODEL_ASSERT(ended == lives);
    MODEL_ASSERT(given_back == lives);
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Word>({&put_relaxed, &take_relaxed, &same_generation, &reference_left, &arrive_blind, &expire_blind,
                      &cancel_blind, &drop_not_release, &drop_not_acquire, &sole_owner_relaxed, &give_back_relaxed,
                      &refill_relaxed, &look_relaxed});
}
