#pragma once

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/join.h"
#include "hashed_wheel_timer/internal/core/node.h"
#include "hashed_wheel_timer/internal/core/node_pool.h"
#include "hashed_wheel_timer/internal/core/task_scope.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

/// Runs the task of a timeout that this thread has claimed, and destroys it if it is a callable. The task may move
/// `timeout` away, so the caller must hold another reference.
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

/// Runs the task of a timeout that waits in an executor, unless it has been run, dropped or disarmed.
inline void run_handed_over(const Timeout& handed_over) noexcept {
  Node& node = *Node::of(handed_over);
  if (!node.take_over()) return;
  {
    const TaskScope inside(node);
    Timeout timeout = handed_over;
    run_task(timeout);
  }
  node.finish(1);  // not the last reference: the caller has one
}

/// An expired task on its way through an executor, shared by all copies of the job. An executor may run several of
/// them, throw as well, or drop them: the task runs at most once, and is told and destroyed when it can no longer run.
/// The first to take it over has it (Node::kHandedOver); the task came with the job.
class ExecutorJob {
 public:
  explicit ExecutorJob(const Timeout& timeout) noexcept : timeout_(timeout) {}
  ExecutorJob(const ExecutorJob&) = delete;
  ExecutorJob& operator=(const ExecutorJob&) = delete;
  ~ExecutorJob() { drop_handed_over(*Node::of(timeout_)); }

  void run() noexcept { run_handed_over(timeout_); }

 private:
  const Timeout timeout_;
};

}  // namespace hwt::internal
