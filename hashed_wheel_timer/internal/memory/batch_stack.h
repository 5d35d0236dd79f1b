// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/sanitizers.h"

namespace hwt::internal {

/// The contents of a free node, in place of its task.
struct FreeNode {
  // The node that will be taken some nodes later, so that it can be prefetched. A free node is in another thread's
  // cache, or in none, and following `next` would be a chain of cache misses (a quarter of the time of schedule and
  // expire). It is only a hint: the node's memory may have gone back to the system since.
  Node* ahead;
  // In the first node of a batch. With these two, close() counts by walking over batches and not over millions of
  // nodes.
  Node* next_batch;
  std::int64_t nodes;

  static FreeNode& of(Node* node) noexcept { return *std::launder(reinterpret_cast<FreeNode*>(node->storage)); }
  static Node*& next_batch_of(Node& node) noexcept { return of(&node).next_batch; }

  // AddressSanitizer does not know which nodes of a slab are free. So make() poisons the storage behind the FreeNode.
  // The node's word stays readable, because the worker reads it if the inbox still has an entry for the node.
  static void make(Node* node, Node* ahead) noexcept {
    (::new (node->storage) FreeNode)->ahead = ahead;
    poison_memory(node->storage + sizeof(FreeNode), sizeof(node->storage) - sizeof(FreeNode));
  }
  static void unmake(Node* node) noexcept { unpoison_memory(node->storage, sizeof(node->storage)); }
};

/// A stack of batches of free nodes. A batch is a chain linked by `next` and ended by null. Any thread pushes and
/// takes. Each NodePool has a stack of the nodes that other threads return, which is emptied by take_all(). The Depot
/// has one for all pools, from which take_some() takes.
class BatchStack {
 public:
  /// Pushes a chain of `nodes` nodes. Returns false if the stack is closed.
  bool push(Node* first, std::size_t nodes) noexcept {
    count_in(nodes);
    return push_counted(first, nodes);
  }
  // push() in two steps. The nodes are counted first, because after the push this stack may be gone: if they are the
  // last nodes of a closing core, another thread destroys it.
  void count_in(std::size_t nodes) noexcept { nodes_.fetch_add(nodes, std::memory_order_relaxed); }
  bool push_counted(Node* first, std::size_t nodes) noexcept;

  /// Takes all batches, linked by FreeNode::next_batch; null if there are none. nodes() starts anew.
  Node* take_all() noexcept;
  /// Takes batches with at least `enough` nodes, if there are so many, and puts the others back. `taken`: the number of
  /// nodes. Precondition: not closed. For producers that schedule, and for the worker.
  Node* take_some(std::int64_t enough, std::int64_t& taken) noexcept;
  /// Returns the number of nodes. Includes pushes that are still in progress. Misses pushes that overlapped the last
  /// take_all(), until the next one.
  std::size_t nodes() const noexcept { return nodes_.load(std::memory_order_relaxed); }
  /// Closes the stack: no later push() succeeds. Returns the number of nodes.
  std::int64_t close() noexcept;

  /// Returns the number of nodes in a chain of batches.
  static std::int64_t count(Node* batches) noexcept;

 private:
  detail::IntrusiveStack<Node, FreeNode::next_batch_of> batches_;
  std::atomic<std::size_t> nodes_{0};
};

}  // namespace hwt::internal
