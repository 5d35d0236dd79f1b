// Timeout::reschedule() from two threads (Core::move) against the worker that takes the node, comes to a recheck
// request, expires the node and sleeps (Node::arrive, Node::recheck, Worker::visit, WorkerThread::sleep). The worker
// comes to a queued node by itself; tests show that it does so in time (Inbox::kUrgent).
//
// Never early: the worker expires a timeout only at a deadline that is not before the one of any reschedule() that has
// returned. Never missed: the worker comes to the node no later than at that deadline, even if another thread never
// goes on inside reschedule().
//
// There is one exception, a known limit: two threads move the timeout to earlier deadlines at once. Once thread 0 has
// exchanged the deadline, thread 1 relies on it if its own deadline is no earlier. But thread 0 may still have to
// enqueue a recheck request, or to wake the worker. If thread 0 is preempted before that, the
// deadline of thread 1 takes effect late. That is when thread 0 goes on, or at the deadline for which the node is in
// the wheel. The timeout is never early and never lost.

#include "inbox_model.h"

namespace model {
namespace {

Weakening move_not_release{"move(): release of the exchange of the word"};
Weakening move_same_word{"move(): no exchange for a queued node"};
Weakening move_unmarked{"move(): the flag that the deadline has changed"};
Weakening move_in_two_steps{"move(): load and store of the deadline instead of an exchange"};
Weakening request_first{"move(): the recheck request enqueued before the flag is set"};
Weakening not_listed{"move(): the place not listed for the deadline"};
Weakening no_fence_before_list{"move(): the light fence before the place is listed"};
Weakening own_deadline{"move(): the place listed for the thread's own deadline only"};
Weakening move_not_acquire{"move(): acquire of the word, before it relies on another thread's recheck request"};
Weakening put_recheck_relaxed{"put_recheck(): release of the queue"};
Weakening arrive_not_acquire{"arrive(): acquire of the exchange"};
Weakening recheck_keeps_flag{"recheck(): the flag of the request kept"};
Weakening recheck_deadline_early{"Worker::recheck(): the deadline read before the exchange"};
Weakening visit_deadline_early{"visit(): the deadline read before the word"};
Weakening visit_clears_late{"visit(): the flag cleared after the deadline is read"};

enum : int { kQueued, kInWheel, kExpired, kStateMask = 3 };
constexpr int kRecheckQueued = 4;
constexpr int kMoved = 8;

constexpr int kFirst = 7;
constexpr int kAwake = -1;

int state_of(int word) { return word & kStateMask; }
bool pending(int word) { return state_of(word) != kExpired; }
bool needs_recheck(int word) { return state_of(word) == kInWheel && (word & kRecheckQueued) == 0; }

struct Reschedule : Model<Reschedule, 3> {
  Atomic<int> word{kQueued};
  Atomic<int> deadline{kFirst};
  inbox::Inbox<Reschedule, 2> inbox;
  Atomic<int> requests[2];  // recheck requests that each thread has enqueued
  int taken[2] = {};        // and that the worker has dequeued
  Atomic<int> wake_until{kAwake};
  // Not in the code, for the assertions.
  int true_deadline = kFirst;  // the latest value of `deadline`, without a stale load
  int farthest = kFirst;       // the highest value that `deadline` has had
  int moved_by = -1;           // the thread that has exchanged the deadline last
  bool called = false;         // a thread has woken the worker
  struct Move {
    bool under_way = false;  // the deadline is exchanged, and reschedule() has not returned
    bool settled = false;    // the word is exchanged too, so that the worker expires only at this deadline
    bool relied_on = false;  // the new deadline is earlier
    bool has_put = false;    // the recheck request is enqueued
    int before = 0;          // the deadline that it has replaced
  } moves[2];

  void thread(unsigned index) {
    if (index == 2) {
      for (unsigned turns = rl::rand(6); turns != 0; --turns) turn();
      sleep();  // and is not seen again
      return;
    }
    // Another timeout of this thread, so that its place may be listed already.
    if (rl::rand(2) == 0) inbox.put_and_list(static_cast<int>(index), 1);
    for (int i = 0; i < 2; ++i) {
      const int to = static_cast<int>(1 + 3 * rl::rand(5));
      if (!move(index, to) || stops()) return;
      moves[index] = {};
    }
  }

  /// False: the thread never goes on, or there is nothing to move.
  bool move(unsigned mine, int to) {
    const Order acquire = move_not_acquire ? mo_relaxed : mo_acquire;
    int seen = word.load(acquire);
    if (!pending(seen)) return false;
    int before = deadline.load(mo_relaxed);
    if (request_first && to < before) put_recheck(mine);
    if (move_in_two_steps) {
      deadline.store(to, mo_relaxed);
    } else {
      while (!deadline.compare_exchange_weak(before, to, mo_relaxed, mo_relaxed)) {
      }
    }
    true_deadline = to;
    farthest = std::max(farthest, to);
    moved_by = static_cast<int>(mine);
    const bool earlier = to < before;
    moves[mine] = {.under_way = true, .relied_on = earlier, .before = before};
    bool asks = false;
    if (stops()) return false;
    for (;;) {
      if (!pending(seen)) return false;
      const bool in_wheel = state_of(seen) == kInWheel;
      if (!in_wheel && move_same_word) break;
      int moved = seen;
      if (in_wheel && !move_unmarked) moved |= kMoved;
      asks = earlier && needs_recheck(seen);
      if (asks) moved |= kRecheckQueued;
      const Order order = move_not_release ? mo_acquire : move_not_acquire ? mo_release : mo_acq_rel;
      if (word.compare_exchange_strong(seen, moved, order, acquire)) break;
    }
    moves[mine].settled = true;
    if (!earlier) return true;
    if (stops()) return false;
    if (asks) {
      if (!request_first) put_recheck(mine);
      moves[mine].has_put = true;
    } else {
      if (!no_fence_before_list) light_fence();
    }
    const int earliest = own_deadline ? to : std::min(to, deadline.load(mo_relaxed));
    if (!not_listed) inbox.list(static_cast<int>(mine), earliest);
    if (stops()) return false;
    if (earliest <= wake_until.load(mo_relaxed)) called = true;
    return true;
  }

  void put_recheck(unsigned mine) {
    requests[mine].store(requests[mine].load(mo_relaxed) + 1, put_recheck_relaxed ? mo_relaxed : mo_release);
    light_fence();
  }

  /// Whether this thread is preempted here, and never goes on.
  static bool stops() { return rl::rand(8) == 0; }

  // The worker's.
  int now = 0;
  int place = -1;
  int sleeps_until = 0;

  void turn() {
    take_rechecks();
    if (place == -1) {
      if (state_of(word.load(mo_relaxed)) == kQueued) arrive();
    } else if (place <= now) {
      visit();
    }
    now += static_cast<int>(rl::rand(6));
  }

  void take_rechecks() {
    inbox.open();
    // The places with recheck requests have a list of their own, which the model `listing` has.
    for (int index = 0; index < 2; ++index) {
      for (const int end = requests[index].load(mo_acquire); taken[index] != end; ++taken[index]) recheck();
    }
  }

  void sleep() {
    const int due = place == -1 ? kFirst : place;  // while it is queued its own entry is listed
    wake_until.store(due - 1, mo_release);
    heavy_fence();
    sleeps_until = std::min({due, inbox.earliest_waiting()});
    if (sleeps_until != due) wake_until.store(sleeps_until - 1, mo_release);
  }

  void arrive() {
    int seen = word.load(mo_acquire);
    while (
        !word.compare_exchange_weak(seen, seen | kInWheel, arrive_not_acquire ? mo_release : mo_acq_rel, mo_acquire)) {
    }
    place = deadline.load(mo_relaxed);
  }

  void recheck() {
    const int early = deadline.load(mo_relaxed);
    int seen = word.load(mo_acquire);
    for (;;) {
      if (state_of(seen) != kInWheel || (seen & kRecheckQueued) == 0) return;
      const int left = recheck_keeps_flag ? seen & ~kMoved : seen & ~(kRecheckQueued | kMoved);
      if (word.compare_exchange_weak(seen, left, mo_acq_rel, mo_acquire)) break;
    }
    place = recheck_deadline_early ? early : deadline.load(mo_relaxed);
  }

  void visit() {
    int due = deadline.load(mo_relaxed);
    int seen = word.load(mo_relaxed);
    for (;;) {
      if (!pending(seen)) return;
      if (!visit_deadline_early) due = deadline.load(mo_relaxed);
      if (due > now) {
        place = due;
        return;
      }
      if ((seen & kMoved) != 0) {
        while (!word.compare_exchange_weak(seen, seen & ~kMoved, mo_acq_rel, mo_acquire)) {
        }
        seen &= ~kMoved;
        if (!visit_clears_late) continue;
      }
      const int left = (seen & ~kStateMask) | kExpired;
      if (word.compare_exchange_weak(seen, left, mo_acq_rel, mo_relaxed)) break;
    }
    const bool moving = moved_by != -1 && moves[moved_by].under_way && !moves[moved_by].settled;
    MODEL_ASSERT(moving || due == true_deadline);
  }

  void after() {
    if (!pending(word.load(mo_relaxed))) return;
    MODEL_ASSERT(called || sleeps_until <= latest(true));
    take_rechecks();
    if (state_of(word.load(mo_relaxed)) == kInWheel) MODEL_ASSERT(place <= latest(false));
  }

  /// Returns until when the worker must come to the node: by the end of its sleep, or by the node's place in the wheel.
  /// While the thread that exchanged the deadline last is in reschedule(), the replaced deadline is allowed too. In the
  /// exceptions every deadline is for which the node may be in the wheel.
  int latest(bool by_sleep) {
    int latest = deadline.load(mo_relaxed);
    const bool returned = moved_by == -1 || !moves[moved_by].under_way;  // the reschedule() to this deadline
    for (int i = 0; i < 2; ++i) {
      const Move& move = moves[i];
      if (!move.under_way) continue;
      if (move.relied_on && is_exception(i, by_sleep)) return farthest;
      if (!returned) latest = std::max(latest, move.before);
    }
    return latest;
  }

  /// Returns whether the thread, on which others rely, has not yet done enough for them. Its recheck request leads to
  /// the right tick, but the thread may not have woken the worker.
  bool is_exception(int index, bool by_sleep) { return by_sleep || !moves[index].has_put; }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Reschedule>(
      {&move_not_release, &move_same_word, &move_unmarked, &move_in_two_steps, &request_first, &not_listed,
       &own_deadline, &no_fence_before_list, &move_not_acquire, &put_recheck_relaxed, &arrive_not_acquire,
       &recheck_keeps_flag, &recheck_deadline_early, &visit_deadline_early, &visit_clears_late},
      200'000);
}
