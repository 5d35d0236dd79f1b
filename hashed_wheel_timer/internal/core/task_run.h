#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/parking_lot.h"
#include "hashed_wheel_timer/timer.h"

// How a task ends: it runs, here or in an executor, it is cancelled and waited for, or a stopped timer returns it.

namespace hwt::internal {

/// The calling thread runs a node's task, or destroys its callable, for as long as this lives. So a thread finds out
/// that it must not wait for a task, because it is inside it. On the stack.
class TaskScope {
 public:
  /// For a thread that will enter several nodes, one after the other.
  TaskScope() noexcept : outer_(std::exchange(innermost_, this)) {}
  explicit TaskScope(const Node& node) noexcept : TaskScope() { enter(node); }
  ~TaskScope() { innermost_ = outer_; }
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  /// It stays entered until the next one: nobody asks in between.
  void enter(const Node& node) noexcept { node_ = &node; }
  void leave() noexcept { node_ = nullptr; }

  /// Whether the calling thread is inside this node's task, however deep.
  static bool is_inside(const Node& node) noexcept;

 private:
  static constinit thread_local const TaskScope* innermost_;

  const TaskScope* const outer_;  // of this thread
  const Node* node_ = nullptr;
};

/// Timeout::cancel_and_wait() of a node of any core.
bool cancel_and_wait(Node& node) noexcept;

/// Cancels a timeout, or takes its task away from an executor. Returns false if the task has run, runs now or never
/// will. Does not wait.
bool cancel_or_disarm(Node& node) noexcept;

/// Destroys a task that waits in an executor, if it is a callable. Returns false if it was not handed over, or another
/// thread has it. Any thread that has a reference.
bool disarm(Node& node) noexcept;

/// Like disarm(), but first tells the task that it will not run. For the thread that drops an executor's last copy.
void drop_handed_over(Node& node) noexcept;

/// Leaves the task of an expired timeout, which this thread is busy with, to an executor. Threads that wait for the
/// task wake up and take it back.
inline void hand_over(Node& node) noexcept {
  const std::uint64_t before = node.word.fetch_sub(Node::kBusy - Node::kHandedOver, std::memory_order_release);
  if ((before & Node::kAwaited) != 0) [[unlikely]]
    ParkingLot::wake_all(&node);
}

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

/// The timeouts that were pending when a timer stopped: a chain linked by Node::next, each node with the timer's
/// reference. Once it is set, any threads take it: one of them gets all, and tells them.
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
