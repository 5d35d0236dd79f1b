#pragma once

#include <atomic>
#include <vector>

#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

struct Node;

/// What was pending when a timer stopped: a chain linked by Node::next, each node with the timer's reference. Once it
/// is set, any threads take it: one of them gets all, and tells them.
class Unprocessed {
 public:
  Unprocessed() = default;
  Unprocessed(const Unprocessed&) = delete;
  Unprocessed& operator=(const Unprocessed&) = delete;

  void set(Node* first) noexcept { first_.store(first, std::memory_order_release); }

  /// Moves all to the end of `timeouts`. Throws std::bad_alloc; then all are still here, for the next time.
  void take(std::vector<Timeout>& timeouts);

  /// Tells all that they will not run, destroys plain callables and gives all back.
  void drop() noexcept;

 private:
  // Exchanged whole: acquire for the chain, release when it comes back.
  std::atomic<Node*> first_{nullptr};
};

/// Tells each that stop() returns that it will not run. Uses nothing of the timer, which one of them may destroy.
void tell_stopped(const std::vector<Timeout>& timeouts) noexcept;

}  // namespace hwt::internal
