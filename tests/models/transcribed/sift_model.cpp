// The owner of a place that drops dead entries (Inbox::sift) against the worker that takes (Intake::take). Kept entries
// stay in order. Each entry is taken once. The worker skips no entry that was there when its pass began.

#include <algorithm>

#include "model.h"

namespace model {
namespace {

Weakening put_relaxed{"put(): release of the queue"};
Weakening take_relaxed{"take(): acquire of the queue"};
Weakening lock_relaxed{"try_lock(): acquire"};
Weakening lock_in_two_steps{"try_lock(): load and store instead of an exchange"};
Weakening unlock_relaxed{"unlock(): release"};
Weakening no_lock_to_take{"take() without the lock"};
Weakening no_lock_to_sift{"sift() without the lock"};
Weakening size_early{"take(): the size read before the lock"};

constexpr int kEntries = 5;
constexpr int kDead = 1;

struct Sift : Model<Sift, 2> {
  Plain<int> entries[4 * kEntries];
  Atomic<int> tail;
  Atomic<int> head;
  Atomic<bool> locked{false};
  int there = 0;  // before the worker comes
  int latest = -1;

  void before() {
    for (int i = 0; i < kEntries - 1; ++i) put(there++);
  }

  void thread(unsigned index) {
    if (index == 0) {
      sift();
      put(kEntries - 1);
      sift();
    } else {
      take_all();
    }
  }

  void put(int entry) {
    const int at = tail.load(mo_relaxed);
    entries[at].set(entry);
    tail.store(at + 1, put_relaxed ? mo_relaxed : mo_release);
  }

  bool try_lock() {
    if (locked.load(mo_relaxed)) return false;
    if (!lock_in_two_steps) return !locked.exchange(true, lock_relaxed ? mo_relaxed : mo_acquire);
    locked.store(true, mo_relaxed);
    return true;
  }
  void unlock() { locked.store(false, unlock_relaxed ? mo_relaxed : mo_release); }

  int size() const { return tail.load(mo_relaxed) - head.load(mo_relaxed); }
  int dequeue() {
    const int at = head.load(mo_relaxed);
    if (at >= tail.load(take_relaxed ? mo_relaxed : mo_acquire)) return -1;
    head.store(at + 1, mo_relaxed);
    return entries[at].get();
  }

  void sift() {
    if (!no_lock_to_sift && !try_lock()) return;
    for (int left = size(); left > 0; --left) {
      if (const int entry = dequeue(); entry != -1 && entry != kDead) put(entry);
    }
    if (!no_lock_to_sift) unlock();
  }

  void take_all() {
    for (;;) {
      int left = size();
      if (no_lock_to_take || try_lock()) {
        if (!size_early) left = size();
        for (int batch = std::min(left, 2); batch > 0; --batch, --left) {
          const int entry = dequeue();
          if (entry == -1) break;
          MODEL_ASSERT(entry > latest);
          MODEL_ASSERT(entry == latest + 1 || entry == kDead + 1);
          latest = entry;
        }
        if (!no_lock_to_take) unlock();
        if (left <= 0) return;
      }
      rl::yield(1, RL_INFO);  // its turn comes again
    }
  }

  void after() { MODEL_ASSERT(latest >= there - 1); }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Sift>({&put_relaxed, &take_relaxed, &lock_relaxed, &lock_in_two_steps, &unlock_relaxed, &no_lock_to_take,
                      &no_lock_to_sift, &size_early});
}
