// Threads that come and end, and a core that goes meanwhile (FreeSeats): a producer has one owner at a time, who sees
// it as the last one left it; each seat is deleted once, and so is the stack of the free ones, by the last to refer to
// it.

#include "model.h"

namespace model {
namespace {

Weakening push_relaxed{"give_back(): release of the push"};
Weakening take_relaxed{"take(): acquire of the top"};
Weakening no_flag{"take() by two threads at once"};
Weakening flag_relaxed{"take(): acquire of the flag"};
Weakening unflag_relaxed{"take(): release of the flag"};
Weakening delete_relaxed{"delete_free(): acquire"};
Weakening drop_not_release{"drop_reference(): release"};
Weakening drop_not_acquire{"drop_reference(): acquire"};
Weakening close_drops_nothing{"close(): the core's reference not dropped"};

constexpr int kThreads = 3;
constexpr int kSeats = 2 * kThreads;

struct Seats : Model<Seats, kThreads + 1> {
  Atomic<int> free{-1};
  Atomic<int> taking;
  Atomic<int> closed;
  Atomic<int> references{1};
  Plain<int> next[kSeats];
  Plain<int> producers[kSeats];
  Plain<int> alive{1};
  Atomic<int> made;
  Atomic<int> done;  // the user's own: nobody uses a timer that is being destroyed
  int deleted[kSeats] = {};
  bool has_owner[kSeats] = {};

  void thread(unsigned index) {
    if (index == kThreads) {
      while (done.load(mo_acquire) != kThreads) rl::yield(1, RL_INFO);
      return close();
    }
    for (int turn = 0; turn < 2; ++turn) {
      int seat = take();
      if (seat == -1) {
        seat = made.fetch_add(1, mo_relaxed);
        references.fetch_add(1, mo_relaxed);
      }
      MODEL_ASSERT(!has_owner[seat]);
      has_owner[seat] = true;
      producers[seat].set(producers[seat].get() + 1);
      if (turn == 1) done.fetch_add(1, mo_release);
      has_owner[seat] = false;
      give_back(seat);
    }
  }

  int take() {
    if (free.load(mo_relaxed) == -1) return -1;
    if (!no_flag && taking.exchange(1, flag_relaxed ? mo_relaxed : mo_acquire) != 0) return -1;
    const Order order = take_relaxed ? mo_relaxed : mo_acquire;
    int seat = free.load(order);
    while (seat != -1 && !free.compare_exchange_weak(seat, next[seat].get(), order, order)) {
    }
    if (!no_flag) taking.store(0, unflag_relaxed ? mo_relaxed : mo_release);
    if (seat != -1) references.fetch_add(1, mo_relaxed);
    return seat;
  }

  void give_back(int seat) {
    MODEL_ASSERT(alive.get() == 1);
    if (closed.load(mo_relaxed) != 0) {
      ++deleted[seat];
    } else {
      int top = free.load(mo_relaxed);
      do {
        next[seat].set(top);
      } while (!free.compare_exchange_weak(top, seat, push_relaxed ? mo_relaxed : mo_release, mo_relaxed));
    }
    drop_reference();
  }

  void close() {
    closed.store(1, mo_relaxed);
    delete_free();
    if (!close_drops_nothing) drop_reference();
  }

  void delete_free() {
    for (int seat = free.exchange(-1, delete_relaxed ? mo_relaxed : mo_acquire); seat != -1; seat = next[seat].get()) {
      ++deleted[seat];
    }
  }

  void drop_reference() {
    if (references.fetch_sub(1, drop_not_release ? mo_acquire : drop_not_acquire ? mo_release : mo_acq_rel) != 1)
      return;
    delete_free();
    alive.set(0);
  }

  void after() {
    MODEL_ASSERT(alive.get() == 0);
    for (int seat = 0; seat < made.load(mo_relaxed); ++seat) MODEL_ASSERT(deleted[seat] == 1);
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Seats>({&push_relaxed, &take_relaxed, &no_flag, &flag_relaxed, &unflag_relaxed, &delete_relaxed,
                       &drop_not_release, &drop_not_acquire, &close_drops_nothing});
}
