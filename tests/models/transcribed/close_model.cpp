// A pool and the depot are closed (NodePool::close, BatchStack::close, Core::close) while the pool's owner and other
// threads drop handles. Each node that is out is counted once. The last one to come back deletes the core, and no
// thread uses it afterwards.

#include "model.h"

namespace model {
namespace {

Weakening no_light_fence{"put_back(): the light fence"};
Weakening no_heavy_fence{"close(): the heavy fence"};
Weakening inside_late{"put_back(): closing_ looked at before the owner says that it is inside"};
Weakening no_wait{"close(): no wait for the owner"};
Weakening inside_not_release{"put_back(): release at the end"};
Weakening wait_relaxed{"close(): acquire of the wait"};
Weakening push_relaxed{"BatchStack::push(): release of the push"};
Weakening close_relaxed{"BatchStack::close(): acquire of the exchange"};
Weakening out_not_release{"returned_after_close(): release"};
Weakening out_not_acquire{"returned_after_close(): acquire"};

constexpr int kClosed = -1;
constexpr int kCounting = 1000;
constexpr int kCarved = 4;
constexpr int kPool = 0;
constexpr int kDepot = 1;

struct Close : Model<Close, 3> {
  Atomic<int> inside;
  Atomic<int> closing;
  Plain<int> free_nodes{0};
  Atomic<int> tops[2];            // returned_ and the depot: the number of the node on top
  Plain<int> below[kCarved + 1];  // the number of the node below each
  Atomic<int> out{kCounting};
  Plain<int> core{1};
  int deleted = 0;

  void thread(unsigned index) {
    if (index == 0) {
      recycle(1, true);
      recycle(2, true);
    } else if (index == 1) {
      recycle(3, false);
      recycle(4, false);
    } else {
      close();
    }
  }

  void recycle(int node, bool own) {
    MODEL_ASSERT(core.get() == 1);
    if (own && put_back()) return;
    if (!push(tops[node == 4 ? kDepot : kPool], node)) count_out(1);
  }

  bool put_back() {
    const int early = closing.load(mo_relaxed);
    inside.store(1, mo_relaxed);
    if (!no_light_fence) light_fence();
    const bool open = (inside_late ? early : closing.load(mo_relaxed)) == 0;
    if (open) free_nodes.set(free_nodes.get() + 1);
    inside.store(0, inside_not_release ? mo_relaxed : mo_release);
    return open;
  }

  bool push(Atomic<int>& stack, int node) {
    int top = stack.load(mo_relaxed);
    do {
      if (top == kClosed) return false;
      below[node].set(top);
    } while (!stack.compare_exchange_weak(top, node, push_relaxed ? mo_relaxed : mo_release, mo_relaxed));
    return true;
  }

  void close() {
    closing.store(1, mo_relaxed);
    if (!no_heavy_fence) heavy_fence();
    while (!no_wait && inside.load(wait_relaxed ? mo_relaxed : mo_acquire) != 0) rl::yield(1, RL_INFO);
    int still_out = kCarved - free_nodes.get();
    for (Atomic<int>& stack : tops) {
      for (int node = stack.exchange(kClosed, close_relaxed ? mo_relaxed : mo_acquire); node != 0; --still_out) {
        node = below[node].get();
      }
    }
    count_out(kCounting - still_out);
  }

  void count_out(int nodes) {
    const Order order = out_not_release ? mo_acquire : out_not_acquire ? mo_release : mo_acq_rel;
    if (out.fetch_sub(nodes, order) != nodes) return;
    core.set(0);
    ++deleted;
  }

  void after() { MODEL_ASSERT(deleted == 1); }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Close>({&no_light_fence, &no_heavy_fence, &inside_late, &no_wait, &inside_not_release, &wait_relaxed,
                       &push_relaxed, &close_relaxed, &out_not_release, &out_not_acquire});
}
