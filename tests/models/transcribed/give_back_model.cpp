// Memory of free nodes that goes back to the system (Collector). By then no entry of the inbox names such a node.
// Either the worker has dequeued the entry, or the owner of the place has dropped it in a sift. No entry of an older
// life meets the node when it is carved again.

#include <algorithm>

#include "inbox_model.h"

namespace model {
namespace {

Weakening at_once{"step(): given back without a pass after it was collected"};
Weakening held_up_is_done{"step() after a pass that was held up"};
Weakening more_is_done{"step() after a pass that left entries in the inbox"};
Weakening free_relaxed{"push() of a free node: release"};
Weakening collect_relaxed{"take_some(): acquire"};
Weakening free_early{"a node that is free before its entry is listed"};
Weakening run_relaxed{"push() of a free run: release"};
Weakening take_run_relaxed{"take_run(): acquire"};
Weakening lock_relaxed{"try_lock(): acquire"};
Weakening unlock_relaxed{"unlock(): release"};
Weakening no_lock_to_sift{"sift() without the lock"};
Weakening queue_relaxed{"the queue: release"};

constexpr int kOther = 0;  // an entry of some other node
constexpr int kGone = -1;
constexpr int kEntries = 16;
constexpr int kAtOnce = 1;  // entries of a pass

struct GiveBack : Model<GiveBack, 2> {
  inbox::Inbox<GiveBack, 1> inbox;
  Plain<int> entries[kEntries];  // the node's life, or kOther
  Atomic<int> tail;
  Atomic<int> head;
  Atomic<bool> locked{false};
  Atomic<int> depot;  // 1: the node is there
  Atomic<int> runs;   // 1: its memory is
  Plain<int> page;    // which life of the node is in memory
  // The worker's.
  bool at_work = false;    // the place is in a Round of Intake
  bool counted = false;    // Place::left_ is not kUncounted
  int left = 0;            // Place::left_
  bool collected = false;  // the Collector has the node

  void before() { page.set(1); }

  void thread(unsigned index) {
    if (index == 0) {
      put(kOther);
      live(1);
      for (int tries = 0; tries < 8; ++tries) {
        if (runs.load(mo_relaxed) != 0 && runs.exchange(0, take_run_relaxed ? mo_relaxed : mo_acquire) == 1) {
          page.set(2);
          live(2);
          return;
        }
        rl::yield(1, RL_INFO);
      }
    } else {
      for (int passes = 0; passes < 8; ++passes) {
        if (pass()) step();
      }
    }
  }

  // The owner of the place. Only this thread schedules with the node.

  void live(int life) {
    if (free_early) depot.store(1, mo_release);
    put(life);
    // The owner withdraws the timeout, so the node is free.
    if (!free_early) depot.store(1, free_relaxed ? mo_relaxed : mo_release);
    sift();
  }

  void put(int entry) {
    const int at = tail.load(mo_relaxed);
    entries[at].set(entry);
    tail.store(at + 1, queue_relaxed ? mo_relaxed : mo_release);
    inbox.put_and_list(0, 1);
  }

  void sift() {
    if (!no_lock_to_sift && !try_lock()) return;
    for (int count = size(); count > 0; --count) look_at_next();
    if (!no_lock_to_sift) unlock();
  }

  // The owner and the worker.

  bool try_lock() { return !locked.load(mo_relaxed) && !locked.exchange(true, lock_relaxed ? mo_relaxed : mo_acquire); }
  void unlock() { locked.store(false, unlock_relaxed ? mo_relaxed : mo_release); }
  int size() const { return tail.load(mo_relaxed) - head.load(mo_relaxed); }

  /// Takes the next entry, as Producer::sift() and Node::arrive() do. All entries are dead. Returns false if none is
  /// left.
  bool look_at_next() {
    const int at = head.load(mo_relaxed);
    if (at >= tail.load(mo_acquire)) return false;
    head.store(at + 1, mo_relaxed);
    if (const int entry = entries[at].get(); entry != kOther) MODEL_ASSERT(page.get() == entry);
    return true;
  }

  // The worker.

  /// Worker::transfer(). Returns whether it ended as Pass::Done.
  bool pass() {
    inbox.open([this](int) {
      at_work = true;
      counted = false;
    });
    if (!at_work) return true;
    if (!try_lock()) return static_cast<bool>(held_up_is_done);
    if (!counted) left = size();
    counted = true;
    for (int batch = std::min(left, kAtOnce); batch > 0; --batch, --left) {
      if (!look_at_next()) left = batch = 1;  // the owner has dropped the rest: the loop makes both 0
    }
    unlock();
    at_work = left > 0;
    return !at_work || more_is_done;
  }

  void step() {
    if (collected) give_back();
    if (depot.load(mo_relaxed) == 1 && depot.exchange(0, collect_relaxed ? mo_relaxed : mo_acquire) == 1) {
      collected = true;
      if (at_once) give_back();
    }
  }

  void give_back() {
    collected = false;
    page.set(kGone);
    runs.store(1, run_relaxed ? mo_relaxed : mo_release);
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<GiveBack>({&at_once, &held_up_is_done, &more_is_done, &free_relaxed, &collect_relaxed, &free_early,
                          &run_relaxed, &take_run_relaxed, &lock_relaxed, &unlock_relaxed, &no_lock_to_sift,
                          &queue_relaxed, &inbox::no_light_fence, &inbox::no_heavy_fence});
}
