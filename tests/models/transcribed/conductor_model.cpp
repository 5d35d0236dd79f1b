// A RepeatedTimer's conductor (Conductor, and RepeatedTimer::State, which uses it): a user restarts it, asking a hook;
// another resets or stops it; what it has armed may expire at any moment. One thread at a time arms and runs hooks; at
// most one timeout is armed; no trigger is lost, none comes after stop(); and the last timeout that was asked for is
// the one that is used. The worker never waits: its pass has no loop but those of its exchanges.

#include "model.h"

namespace model {
namespace {

Weakening enter_relaxed{"enter(): acquire"};
Weakening enter_expired_relaxed{"enter_expired(): acquire"};
Weakening leave_relaxed{"leave(): release"};
Weakening note_relaxed{"enter(): release of a note"};
Weakening end_hook_relaxed{"end_hook(): acquire"};
Weakening note_at_work{"enter(): a note while the conductor is at work"};
Weakening mark_relaxed{"enter_expired(): release of the mark"};
Weakening mark_once{"enter_expired(): no exchange where there is a mark"};
Weakening mark_unseen{"leave(): without a look at the mark"};
Weakening leave_not_acquire{"leave(): acquire"};
Weakening any_number{"enter_expired(): whatever the number"};
Weakening same_number{"set_disarmed(): the same number"};
Weakening not_armed_again{"leave(): what has expired is not armed again"};

using Word = std::uint64_t;
constexpr Word kStopped = 1, kConducted = 2, kInHook = 4, kMark = 8, kArming = 16;
constexpr int kTimeouts = 16;
enum : int { kNone, kPending, kExpired, kCancelled };

struct Conductor : Model<Conductor, 3> {
  Atomic<Word> word{kStopped};
  Atomic<int> timeouts[kTimeouts];
  Plain<Word> numbers[kTimeouts];  // what their tasks know
  Atomic<int> timeout{1};
  // The conductor's.
  Plain<int> armed{-1};  // which of the timeouts, or -1
  Plain<int> armed_with;
  Plain<int> hooks;
  int conductors = 0;
  int made = 0;
  int expiries = 0;
  bool stops = false;

  void before() { stops = rl::rand(2) == 0; }

  void thread(unsigned index) {
    if (index == 0) {
      for (int passes = 0; passes < 16 && expiries < 3; ++passes) worker();
    } else if (index == 1) {
      if (enter(~kStopped, 0)) conduct(true);  // restart()
    } else if (stops) {
      if (enter(~Word{0}, kStopped)) conduct(false);  // stop()
    } else {
      timeout.store(2, mo_relaxed);  // reset(timeout)
      if (enter(~Word{0}, 0)) conduct(is_armed());
    }
  }

  /// What is pending may be due.
  void worker() {
    for (int i = 0, end = made; i < end; ++i) {
      int seen = timeouts[i].load(mo_acquire);
      if (seen != kPending || rl::rand(2) == 0 ||
          !timeouts[i].compare_exchange_strong(seen, kExpired, mo_acq_rel, mo_acquire))
        continue;
      ++expiries;
      if (!enter_expired(numbers[i].get())) continue;
      MODEL_ASSERT(armed.get() == i);
      armed.set(-1);
      in_hook();
      end_hook();
      conduct(true);
    }
    rl::yield(1, RL_INFO);
  }

  bool enter(Word keep, Word add) {
    Word seen = word.load(mo_acquire);
    for (;;) {
      const bool conducted = (seen & kConducted) != 0;
      if (conducted && (seen & kInHook) == 0 && !note_at_work) {
        rl::yield(1, RL_INFO);
        seen = word.load(mo_acquire);
        continue;
      }
      const Order order = note_relaxed && conducted     ? mo_acquire
                          : enter_relaxed && !conducted ? mo_release
                                                        : mo_acq_rel;
      if (!word.compare_exchange_weak(seen, (seen & keep) | add | kConducted, order,
                                      enter_relaxed ? mo_relaxed : mo_acquire))
        continue;
      if (!conducted) MODEL_ASSERT(++conductors == 1);
      return !conducted;
    }
  }

  bool enter_expired(Word number) {
    Word seen = word.load(enter_expired_relaxed ? mo_relaxed : mo_acquire);
    for (;;) {
      if (seen / kArming != number && !any_number) return false;
      const bool conducted = (seen & kConducted) != 0;
      if (mark_once && conducted && (seen & kMark) != 0) return false;
      const Word next = conducted ? seen | kMark : (seen | kConducted | kInHook) + kArming;
      const Order order = conducted && mark_relaxed             ? mo_relaxed
                          : !conducted && enter_expired_relaxed ? mo_release
                                                                : mo_acq_rel;
      if (!word.compare_exchange_weak(seen, next, order, enter_expired_relaxed ? mo_relaxed : mo_acquire)) continue;
      if (!conducted) {
        MODEL_ASSERT(++conductors == 1);
        MODEL_ASSERT((seen & kStopped) == 0);
      }
      return !conducted;
    }
  }

  void in_hook() { hooks.set(hooks.get() + 1); }
  void end_hook() {
    Word seen = word.load(mo_relaxed);
    while (!word.compare_exchange_weak(seen, seen & ~kInHook, end_hook_relaxed ? mo_relaxed : mo_acquire, mo_relaxed)) {
    }
  }

  bool wanted() const { return (word.load(mo_relaxed) & kStopped) == 0; }
  bool is_armed() const { return armed.get() != -1; }

  void conduct(bool arms) {
    if (arms && wanted()) arm();
    if (!wanted()) disarm();
    while (!leave()) {
      if (is_armed() && timeouts[armed.get()].load(mo_acquire) == kExpired && !not_armed_again) arm_anew();
    }
  }

  void arm() {
    int asked = 0;
    do {
      asked = timeout.load(mo_relaxed);
      word.fetch_add(kInHook, mo_relaxed);  // adjust_timeout
      in_hook();
      end_hook();
      if (!wanted()) return;
    } while (asked != timeout.load(mo_relaxed));
    armed_with.set(asked);
    // reschedule(), which fails if it has expired
    if (int seen = kPending;
        is_armed() && timeouts[armed.get()].compare_exchange_strong(seen, kPending, mo_acq_rel, mo_acquire))
      return;
    arm_anew();
  }

  void arm_anew() {
    disarm();
    const int timeout = made++;
    MODEL_ASSERT(timeout < kTimeouts);
    numbers[timeout].set(word.load(mo_relaxed) / kArming);
    timeouts[timeout].store(kPending, mo_release);
    armed.set(timeout);  // it may have expired by now
  }

  void disarm() {
    if (!same_number) word.fetch_add(kArming, mo_relaxed);
    const int timeout = armed.get();
    armed.set(-1);
    int seen = kPending;
    if (timeout != -1) timeouts[timeout].compare_exchange_strong(seen, kCancelled, mo_acq_rel, mo_acquire);
  }

  bool leave() {
    Word seen = word.load(mo_relaxed);
    for (;;) {
      const bool marked = (seen & kMark) != 0 && !mark_unseen;
      const Word left = marked ? seen & ~kMark : seen & ~(kConducted | kMark);
      if (!marked) --conductors;
      if (word.compare_exchange_weak(seen, left,
                                     leave_relaxed       ? mo_acquire
                                     : leave_not_acquire ? mo_release
                                                         : mo_acq_rel,
                                     mo_relaxed))
        return !marked;
      if (!marked) ++conductors;
    }
  }

  void after() {
    const Word last = word.load(mo_relaxed);
    MODEL_ASSERT((last & (kConducted | kInHook | kMark)) == 0);
    int pending = 0;
    for (const Atomic<int>& each : timeouts) pending += each.load(mo_relaxed) == kPending ? 1 : 0;
    if ((last & kStopped) != 0) {
      MODEL_ASSERT(pending == 0);
      return;
    }
    MODEL_ASSERT(pending == 1);
    MODEL_ASSERT(timeouts[armed.get()].load(mo_relaxed) == kPending);
    MODEL_ASSERT(numbers[armed.get()].get() == last / kArming);
    MODEL_ASSERT(armed_with.get() == timeout.load(mo_relaxed));
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Conductor>({&enter_relaxed, &enter_expired_relaxed, &leave_relaxed, &note_relaxed, &end_hook_relaxed,
                           &note_at_work, &mark_relaxed, &mark_once, &mark_unseen, &leave_not_acquire, &any_number,
                           &same_number, &not_armed_again});
}
