// A timeout that is cancelled while the worker takes it from the inbox (Node). However the worker learns of the cancel,
// it sees all writes before cancel(), and drops the timer's reference once.

#include "hashed_wheel_timer/internal/memory/node.h"
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::Node;
using hwt::internal::NodeState;

constinit Node node{};
constinit std::atomic<bool> recheck_queued{false};  // in place of the inbox
int done = 0;                                       // written before cancel()
int dropped = 0;                                    // references that the worker has dropped

void cancel() {
  done = 1;
  const Node::Cancel cancelled = node.cancel(false, [] { return true; });
  MODEL_ASSERT(Node::pending(cancelled.before));
  if (cancelled.asks) recheck_queued.store(true, std::memory_order_relaxed);
}

void drop() {
  MODEL_ASSERT(done == 1);
  ++dropped;
}

void work() {
  const Node::Arrival arrival = node.arrive(0);
  if (arrival == Node::Arrival::Cancelled) return drop();
  MODEL_ASSERT(arrival == Node::Arrival::Taken);
  model::wait_until([] { return recheck_queued.load(std::memory_order_relaxed); });
  const Node::Sight sight = node.recheck();
  MODEL_ASSERT(sight == Node::Sight::Cancelled);
  drop();
}

}  // namespace

int main() {
  node.word.store(2 * Node::kReference | static_cast<std::uint64_t>(hwt::detail::TaskKind::Shared) << Node::kKindShift,
                  std::memory_order_relaxed);
  model::run<cancel, work>();
  MODEL_ASSERT(dropped == 1);
  return 0;
}
