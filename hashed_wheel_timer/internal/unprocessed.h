#pragma once

#include <vector>

#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

struct Node;

/// What was pending when a timer stopped: a chain linked by Node::next, each node with the timer's reference.
class Unprocessed {
 public:
  Unprocessed() = default;
  Unprocessed(const Unprocessed&) = delete;
  Unprocessed& operator=(const Unprocessed&) = delete;

  void set(Node* first) noexcept { first_ = first; }

  /// Moves all to the end of `timeouts`. Throws std::bad_alloc; then all are still here, for the next time.
  void take(std::vector<Timeout>& timeouts);

  /// Destroys plain callables and gives all back.
  void drop() noexcept;

 private:
  Node* first_ = nullptr;
};

}  // namespace hwt::internal
