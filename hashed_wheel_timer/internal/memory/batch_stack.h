#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/sanitizers.h"

namespace hwt::internal {

/// What a free node has in place of its task.
struct FreeNode {
  // The node that will be taken some nodes later, to be fetched in time: a free node is in another thread's cache, or
  // in none, and following `next` would be one wait after another. (A quarter of the time of schedule and expire.)
  // Never more than a hint: the node may have been given back to the system since.
  Node* ahead;
  // These two, in the first node of a batch, let close() count by walking over batches and not over millions of nodes.
  Node* next_batch;
  std::int64_t nodes;

  static FreeNode& of(Node* node) noexcept { return *std::launder(reinterpret_cast<FreeNode*>(node->storage)); }
  static Node*& next_batch_of(Node& node) noexcept { return of(&node).next_batch; }

  // AddressSanitizer does not see what happens inside a slab: tell it that a free node's task must not be touched. (Its
  // word may be: the worker looks at it when the pending queue still has an entry for it.)
  static void make(Node* node, Node* ahead) noexcept {
    ::new (node->storage) FreeNode{.ahead = ahead, .next_batch = nullptr, .nodes = 0};
    poison_memory(node->storage + sizeof(FreeNode), sizeof(node->storage) - sizeof(FreeNode));
  }
  static void unmake(Node* node) noexcept { unpoison_memory(node->storage, sizeof(node->storage)); }
};

/// A stack of batches of free nodes. A batch is a chain linked by `next` and ended by null. Any thread pushes and
/// takes.
class BatchStack {
 public:
  /// A chain of `nodes` nodes. False: closed.
  bool push(Node* first, std::size_t nodes) noexcept {
    count_in(nodes);
    return push_counted(first, nodes);
  }
  // The same in two steps. The nodes are counted before they are there: they may be the last of a core that is closing,
  // and then this is gone.
  void count_in(std::size_t nodes) noexcept { nodes_.fetch_add(nodes, std::memory_order_relaxed); }
  bool push_counted(Node* first, std::size_t nodes) noexcept;

  /// All batches, linked by FreeNode::next_batch; null: none. nodes() starts anew.
  Node* take_all() noexcept;
  /// Some batches, of so many nodes or a batch more; the others are put back. `taken`: how many nodes. It is not
  /// closed: the caller is a producer that schedules, or the worker.
  Node* take_some(std::int64_t enough, std::int64_t& taken) noexcept;
  /// About how many nodes there are: exactly, for who only takes some, and at times those that are just coming.
  std::size_t nodes() const noexcept { return nodes_.load(std::memory_order_relaxed); }
  /// No more push() succeeds. Returns how many nodes there are.
  std::int64_t close() noexcept;

  /// The nodes of a chain of batches.
  static std::int64_t count(Node* batches) noexcept;

 private:
  detail::IntrusiveStack<Node, FreeNode::next_batch_of> batches_;
  std::atomic<std::size_t> nodes_{0};
};

}  // namespace hwt::internal
