// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/memory/depot.h"

#include "hashed_wheel_timer/internal/memory/node_pool.h"

namespace hwt::internal {

NodePool*& Depot::next(NodePool& pool) noexcept { return pool.next; }

Node* Depot::take(std::int64_t enough) noexcept {
  std::int64_t taken = 0;
  Node* const batches = free_.take_some(enough, taken);
  if (const std::size_t left = free_.nodes(); left < fewest_.load(std::memory_order_relaxed)) {
    fewest_.store(left, std::memory_order_relaxed);
  }
  return batches;
}

void Depot::add(NodePool& pool) noexcept {
  pools_.push(pool);
  pool_count_.fetch_add(1, std::memory_order_relaxed);
  // A handle may still be used while the timer ends. So this thread may come after the walks of close(), or between
  // them, and its pool must keep no node.
  AsymmetricFence::light();
  if (closing_.load(std::memory_order_relaxed)) pool.begin_close();
}

void Depot::close() noexcept {
  closing_.store(true, std::memory_order_relaxed);
  AsymmetricFence::heavy();  // pairs with add(): this walk finds the new pool, or add() finds closing_
  for (NodePool* pool = pools_.top(); pool != nullptr; pool = pool->next) pool->begin_close();
  AsymmetricFence::heavy();  // pairs with NodePool::Inside: the owner finds its pool closing, or close() waits for it
  std::int64_t out = 0;      // the nodes that were carved and are not in a pool
  for (NodePool* pool = pools_.top(); pool != nullptr; pool = pool->next) out += pool->close();
  // Subtracts the nodes in the depot, and the nodes in `collected`.
  out -= free_.close() + collected;
  for (Node* node = retired_.close(); node != nullptr; node = node->next()) --out;
  // Replaces the bias by the number. Other threads may have counted some nodes down from the bias meanwhile.
  if (out_after_close_.fetch_add(out - kCounting, std::memory_order_acq_rel) + out - kCounting == 0)
    delete_core_(core_);
}

void Depot::returned_after_close(std::int64_t nodes) noexcept {
  if (out_after_close_.fetch_sub(nodes, std::memory_order_acq_rel) == nodes) delete_core_(core_);
}

}  // namespace hwt::internal
