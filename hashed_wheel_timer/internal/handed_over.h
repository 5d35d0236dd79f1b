#pragma once

#include <atomic>
#include <utility>

#include "hashed_wheel_timer/internal/core.h"
#include "hashed_wheel_timer/internal/node.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

/// Runs the task of a timeout that this thread has claimed, and destroys it if it is a callable. The task may move
/// `timeout` away; the caller holds another reference.
inline void run_task(Timeout& timeout) noexcept {
  Node& node = *Node::of(timeout);
  try {
    node.stored_task().run(timeout);
  } catch (...) {
    node.add_reference();
    node.core().report_error(Node::adopt(&node));
  }
  if (!node.shared()) node.destroy_task();
}

/// An expired task on its way through an executor, shared by all copies of the job. An executor may run several of
/// them, throw as well, or drop them: the task runs at most once, and is destroyed when it can no longer run.
class HandedOver {
 public:
  explicit HandedOver(const Timeout& timeout) noexcept : timeout_(timeout) {}
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;
  ~HandedOver() {
    Node& node = *Node::of(timeout_);
    if (claim() && !node.shared()) node.destroy_task();
  }

  void run() noexcept {
    if (!claim()) return;
    Timeout timeout = timeout_;
    run_task(timeout);
  }

 private:
  // relaxed: the winner needs nothing from the losers; the task came with the job.
  bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_relaxed); }

  const Timeout timeout_;
  std::atomic<bool> claimed_{false};
};

}  // namespace hwt::internal
