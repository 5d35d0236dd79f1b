#include "hashed_wheel_timer/internal/unprocessed.h"

#include <cstddef>
#include <utility>

#include "hashed_wheel_timer/internal/node.h"

namespace hwt::internal {

void Unprocessed::take(std::vector<Timeout>& timeouts) {
  std::size_t count = 0;
  for (const Node* node = first_; node != nullptr; node = node->next) ++count;
  timeouts.reserve(timeouts.size() + count);
  while (first_ != nullptr) timeouts.push_back(Node::adopt(std::exchange(first_, first_->next)));
}

void Unprocessed::drop() noexcept {
  while (first_ != nullptr) {
    Node* const node = std::exchange(first_, first_->next);
    if (!node->shared()) node->destroy_task();
    const Timeout last_reference_perhaps = Node::adopt(node);
  }
}

}  // namespace hwt::internal
