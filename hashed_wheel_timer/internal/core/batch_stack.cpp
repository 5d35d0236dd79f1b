#include "hashed_wheel_timer/internal/core/batch_stack.h"

#include <utility>

namespace hwt::internal {

namespace {

// The top of a stack that is closed: no node has this address.
Node* closed_mark() noexcept { return reinterpret_cast<Node*>(std::uintptr_t{1}); }

}  // namespace

bool BatchStack::push_counted(Node* first, std::size_t nodes) noexcept {
  Node* top = top_.load(std::memory_order_relaxed);
  FreeNode& batch = FreeNode::of(first);
  batch.nodes = static_cast<std::int64_t>(nodes);
  do {
    if (top == closed_mark()) return false;
    batch.next_batch = top;
  } while (!top_.compare_exchange_weak(top, first, std::memory_order_release, std::memory_order_relaxed));
  return true;
}

Node* BatchStack::take_all() noexcept {
  // relaxed first: the exchange costs a locked instruction, and an empty stack needs none.
  if (top_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  Node* const batches = top_.exchange(nullptr, std::memory_order_acquire);
  // Only now: what is pushed and taken between the two must not stay counted. Else there may be so many for ever that
  // nobody pushes here any more, and with nothing to take the count never starts anew.
  nodes_.store(0, std::memory_order_relaxed);
  return batches;
}

Node* BatchStack::take_some(std::int64_t enough, std::int64_t& taken) noexcept {
  taken = 0;
  if (top_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  Node* const batches = top_.exchange(nullptr, std::memory_order_acquire);
  for (Node* last = batches; last != nullptr; last = FreeNode::of(last).next_batch) {
    if ((taken += FreeNode::of(last).nodes) < enough) continue;
    if (Node* const rest = std::exchange(FreeNode::of(last).next_batch, nullptr)) put_back(rest);
    break;
  }
  nodes_.fetch_sub(static_cast<std::size_t>(taken), std::memory_order_relaxed);
  return batches;
}

void BatchStack::put_back(Node* batches) noexcept {
  // Nearly always it is still empty. Else what has come meanwhile goes on top of these: nobody has to walk to the last
  // of what may be thousands.
  for (Node* top = nullptr;
       !top_.compare_exchange_strong(top, batches, std::memory_order_release, std::memory_order_relaxed);
       top = nullptr) {
    Node* const few = top_.exchange(nullptr, std::memory_order_acquire);
    if (few == nullptr) continue;
    Node* last = few;
    while (Node* const next = FreeNode::of(last).next_batch) last = next;
    FreeNode::of(last).next_batch = batches;
    batches = few;
  }
}

std::int64_t BatchStack::close() noexcept { return count(top_.exchange(closed_mark(), std::memory_order_acquire)); }

std::int64_t BatchStack::count(Node* batches) noexcept {
  std::int64_t nodes = 0;
  for (; batches != nullptr; batches = FreeNode::of(batches).next_batch) nodes += FreeNode::of(batches).nodes;
  return nodes;
}

}  // namespace hwt::internal
