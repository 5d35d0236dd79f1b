// A pool and the depot are closed (NodePool::close, BatchStack::close, Core::close) while the pool's owner and other
// threads drop handles. Each node that is out is counted once. The last one to come back deletes the core, and no
// thread uses it afterwards.

#include "model.h"

namespace model {
namespace {

Weakening no_light_fence{"put_back(): the light fence"};
Weakening no_heavy_fence{"close(): the heavy fence"};
Weakening inside_late{"put_back(): closing_ read before owner_inside_ is set"};
Weakening no_wait{"close(): no wait for the owner"};
Weakening inside_not_release{"~Inside(): release"};
Weakening wait_relaxed{"close(): acquire of owner_inside_"};
Weakening push_relaxed{"BatchStack::push(): release of the push"};
Weakening close_relaxed{"BatchStack::close(): acquire of the exchange"};
Weakening out_not_release{"returned_after_close(): release"};
Weakening out_not_acquire{"returned_after_close(): acquire"};

constexpr int kClosed = -1;
constexpr int kCounting = 1000;  // more than all nodes, so that the count does not reach zero while close() counts
constexpr int kCarved = 4;
constexpr int kPool = 0;
constexpr int kDepot = 1;

struct Close : Model<Close, 3> {
  Atomic<int> owner_inside;
  Atomic<int> closing;
  Plain<int> free_nodes{0};
  Atomic<int> tops[2];            // of NodePool::returned_ and Depot::free_: the number of the node on top
  Plain<int> below[kCarved + 1];  // the number of the node below each
  Atomic<int> out_after_close{kCounting};
  Plain<int> core{1};  // 0 after its end
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

  /// `own`: by the owner of the pool. Node 4 comes to the depot, the others to the pool.
  void recycle(int node, bool own) {
    MODEL_ASSERT(core.get() == 1);
    if (own && put_back()) return;
    if (!push(tops[node == 4 ? kDepot : kPool], node)) returned_after_close(1);
  }

  bool put_back() {
    const int early = closing.load(mo_relaxed);
    owner_inside.store(1, mo_relaxed);
    if (!no_light_fence) light_fence();
    const bool open = (inside_late ? early : closing.load(mo_relaxed)) == 0;
    if (open) free_nodes.set(free_nodes.get() + 1);
    owner_inside.store(0, inside_not_release ? mo_relaxed : mo_release);
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

  /// Depot::close() of one pool, with its begin_close() and close().
  void close() {
    closing.store(1, mo_relaxed);
    if (!no_heavy_fence) heavy_fence();
    while (!no_wait && owner_inside.load(wait_relaxed ? mo_relaxed : mo_acquire) != 0) rl::yield(1, RL_INFO);
    int still_out = kCarved - free_nodes.get();
    for (Atomic<int>& stack : tops) {
      for (int node = stack.exchange(kClosed, close_relaxed ? mo_relaxed : mo_acquire); node != 0; --still_out) {
        node = below[node].get();
      }
    }
    returned_after_close(kCounting - still_out);
  }

  void returned_after_close(int nodes) {
    const Order order = out_not_release ? mo_acquire : out_not_acquire ? mo_release : mo_acq_rel;
    if (out_after_close.fetch_sub(nodes, order) != nodes) return;
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
