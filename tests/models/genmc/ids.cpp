// Plain ids against the reuse of a node (Node, SlabDirectory). The producer of a timeout and a user cancel it by its id
// while the worker expires it. The thread that drops the last reference schedules a second timeout in the same node and
// withdraws it. The user cancels that by its id too. The user has both ids as plain numbers, and no order with the
// threads that scheduled. Each task has one owner, which sees it as it was built. If the producer's id names no timeout
// any more, the producer sees all that the task did.

#include <atomic>

#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.cpp"  // NOLINT(bugprone-suspicious-include): one unit
#include "tests/models/genmc/program.h"

namespace hwt::internal {

/// In place of the real one.
struct Producer {};

}  // namespace hwt::internal

namespace {

using hwt::detail::TaskKind;
using hwt::internal::Node;
using hwt::internal::NodeState;
using hwt::internal::Producer;
using hwt::internal::SlabDirectory;

constexpr std::uint64_t kCore = 2;
constexpr SlabDirectory::Index kIndex = 1;  // slab 0, place 1
constexpr std::uint32_t kFirst = Node::next_life(Node::kFirstGeneration);
constexpr std::uint32_t kSecond = Node::next_life(kFirst);

constinit Node slab[2]{};         // a header would be in place 0
constinit Node former_slab[2]{};  // had the same number, in another core
constinit Node& node = slab[1];
constinit Producer producers[3]{};           // one for each thread
constinit std::atomic<bool> queued{false};   // in place of the inbox
constinit std::atomic<bool> recheck{false};  // likewise
int had[2];                                  // owners of each task
int ran;                                     // changed by the first task

std::byte* memory_of(Node* nodes) { return reinterpret_cast<std::byte*>(nodes); }

void schedule(std::uint32_t life, TaskKind kind, Producer& mine) {
  node.storage[0] = static_cast<std::byte>(life);
  MODEL_ASSERT(node.publish(kind, true, mine) == life);
}

/// The owner of the first task destroys it.
void destroy() {
  MODEL_ASSERT(node.storage[0] == static_cast<std::byte>(kFirst));
  node.storage[0] = std::byte{0};
  ++had[0];
}

/// The caller has dropped the last reference.
void recycle(Producer& mine) {
  MODEL_ASSERT(node.end_life());
  schedule(kSecond, TaskKind::Trivial, mine);
  if (node.withdraw_life(kSecond)) ++had[1];
}

/// As Core::cancel_any(). Returns false if the id names no pending timeout.
bool cancel(std::uint32_t life, bool own, Producer& mine) {
  const std::uint64_t before = node.cancel_life(life, own, [] { return true; }).before;
  if (!Node::pending(before)) return false;
  if (life == kSecond) {
    ++had[1];
    return true;
  }
  const bool in_wheel = Node::state_of(before) == NodeState::InWheel;
  if (in_wheel) recheck.store(true, std::memory_order_relaxed);
  destroy();
  if (node.finish(in_wheel ? 2 : 1)) recycle(mine);
  return true;
}

void produce() {
  SlabDirectory::Entry& entry = *SlabDirectory::add(memory_of(slab), kCore);
  // As NodePool::carve(). GenMC cannot read the constructor of a whole node.
  ::new (&node.word) std::atomic<std::uint64_t>(Node::free_word(entry.first_generation));
  entry.add_group(1);
  schedule(kFirst, TaskKind::Callable, producers[0]);
  queued.store(true, std::memory_order_release);
  if (cancel(kFirst, node.published_by(producers[0]), producers[0])) return;
  // If one of these three functions returns false, the task has ended, and this thread sees all that it did.
  if (!node.is_claimed(kFirst) || !node.is_live(kFirst) || !node.add_reference_of(kFirst)) {
    MODEL_ASSERT(ran <= 1);  // a data race if the task still runs
  } else if (node.drop_references(1)) {
    recycle(producers[0]);
  }
}

void use() {
  const Node* const found = SlabDirectory::find(kIndex, kCore);
  if (found == nullptr) return;
  MODEL_ASSERT(found == &node);
  cancel(kFirst, false, producers[1]);
  cancel(kSecond, false, producers[1]);
}

void work() {
  model::wait_until([] { return queued.load(std::memory_order_acquire); });
  const Node::Arrival arrival = node.arrive(kFirst);
  if (arrival == Node::Arrival::Withdrawn) return;
  if (arrival == Node::Arrival::Taken) {
    std::uint64_t seen = node.word.load(std::memory_order_acquire);
    while (Node::pending(seen)) {
      if (!node.claim(seen, Node::kBusy + Node::kReference)) continue;
      ++ran;
      destroy();
      node.word.fetch_and(~Node::kKindMask, std::memory_order_relaxed);  // as Node::destroy_task()
      if (node.finish(2)) recycle(producers[2]);
      return;
    }
    model::wait_until([] { return recheck.load(std::memory_order_relaxed); });
    MODEL_ASSERT(node.recheck() == Node::Sight::Cancelled);
  }
  if (node.drop_references(1)) recycle(producers[2]);
}

}  // namespace

int main() {
  SlabDirectory::Entry& former = *SlabDirectory::add(memory_of(former_slab), kCore - 1);
  former.add_group(1);
  SlabDirectory::remove(former, kFirst);
  model::run<produce, use, work>();
  MODEL_ASSERT(had[0] == 1 && had[1] == 1);
  return 0;
}
