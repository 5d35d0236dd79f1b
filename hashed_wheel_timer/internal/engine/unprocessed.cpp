#include "hashed_wheel_timer/internal/engine/unprocessed.h"

#include <cstddef>
#include <utility>

#include "hashed_wheel_timer/internal/core/node.h"

namespace hwt::internal {

void Unprocessed::take(std::vector<Timeout>& timeouts) {
  Node* first = first_.exchange(nullptr, std::memory_order_acquire);
  std::size_t count = 0;
  for (const Node* node = first; node != nullptr; node = node->next) ++count;
  try {
    timeouts.reserve(timeouts.size() + count);
  } catch (...) {
    set(first);
    throw;
  }
  while (first != nullptr) timeouts.push_back(Node::adopt(std::exchange(first, first->next)));
}

void Unprocessed::drop() noexcept {
  Node* first = first_.exchange(nullptr, std::memory_order_acquire);
  while (first != nullptr) {
    Node* const node = std::exchange(first, first->next);
    node->tell(detail::NotRun::Stopped);
    if (!node->shared()) node->destroy_task();
    const Timeout last_reference_perhaps = Node::adopt(node);
  }
}

void tell_stopped(const std::vector<Timeout>& timeouts) noexcept {
  for (const Timeout& timeout : timeouts) Node::of(timeout)->tell(detail::NotRun::Stopped);
}

}  // namespace hwt::internal
