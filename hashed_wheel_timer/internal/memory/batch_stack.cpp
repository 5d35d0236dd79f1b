// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/memory/batch_stack.h"

namespace hwt::internal {

bool BatchStack::push_counted(Node* first, std::size_t nodes) noexcept {
  FreeNode::of(first).nodes = static_cast<std::int64_t>(nodes);
  return batches_.push_unless_closed(*first);
}

Node* BatchStack::take_all() noexcept {
  Node* const batches = batches_.take_all();
  // Resets after the exchange. If it did so before, a batch that was pushed between the two would be taken and stay
  // counted. Then the count could stay above the limit at which threads push here, with nothing to take.
  if (batches != nullptr) nodes_.store(0, std::memory_order_relaxed);
  return batches;
}

Node* BatchStack::take_some(std::int64_t enough, std::int64_t& taken) noexcept {
  taken = 0;
  Node* const batches = batches_.take_all();
  if (batches == nullptr) return nullptr;
  for (Node* last = batches; last != nullptr; last = FreeNode::of(last).next_batch) {
    if ((taken += FreeNode::of(last).nodes) < enough) continue;
    if (Node* const rest = std::exchange(FreeNode::of(last).next_batch, nullptr)) batches_.put_back(*rest);
    break;
  }
  nodes_.fetch_sub(static_cast<std::size_t>(taken), std::memory_order_relaxed);
  return batches;
}

std::int64_t BatchStack::close() noexcept { return count(batches_.close()); }

std::int64_t BatchStack::count(Node* batches) noexcept {
  std::int64_t nodes = 0;
  for (; batches != nullptr; batches = FreeNode::of(batches).next_batch) nodes += FreeNode::of(batches).nodes;
  return nodes;
}

}  // namespace hwt::internal
