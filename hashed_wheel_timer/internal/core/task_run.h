// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/waiting.h"
#include "hashed_wheel_timer/timer.h"

// The ends of a task: its run, on the worker or in an executor; cancel_and_wait(); stop() and the timer's destructor.

namespace hwt::internal {

/// Marks that the thread on whose stack it lives runs the task of a node, or destroys its callable. A thread does not
/// wait in cancel_and_wait() for a task that it is inside.
class TaskScope {
 public:
  /// Enters no node yet. For a thread that enters several nodes, one after the other.
  TaskScope() noexcept : outer_(std::exchange(innermost_, this)) {}
  explicit TaskScope(const Node& node) noexcept : TaskScope() { enter(node); }
  ~TaskScope() { innermost_ = outer_; }
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  /// Enters a node, which stays entered until leave() or the next enter().
  void enter(const Node& node) noexcept { node_ = &node; }
  void leave() noexcept { node_ = nullptr; }

  /// Returns whether the calling thread is inside this node's task, at any depth.
  static bool is_inside(const Node& node) noexcept;

 private:
  HWT_INITIAL_EXEC static constinit thread_local const TaskScope* innermost_;

  const TaskScope* const outer_;  // of this thread
  const Node* node_ = nullptr;
};

/// Implements Timeout::cancel_and_wait(). Returns true if this call has cancelled the timeout, or has taken its task
/// back from an executor.
bool cancel_and_wait(Node& node) noexcept;

/// Returns a new handle of a timeout. For a thread that has a reference.
inline Timeout handle_of(Node& node) noexcept {
  node.add_reference();
  return Node::adopt(&node);
}

/// Cancels a timeout, or takes its task away from an executor. Returns false if the task has run, runs now or never
/// will. Does not wait.
bool cancel_or_disarm(Node& node) noexcept;

/// Takes a task back that waits in an executor, and destroys it if it is a callable. Returns false if no executor has
/// it, or another thread took it first. For any thread that has a reference.
bool disarm(Node& node) noexcept;

/// Like disarm(), but first tells the task that it will not run. For the thread that drops the last copy of a job.
void drop_handed_over(Node& node) noexcept;

/// Exchanges kBusy, which the calling worker holds, for kHandedOver, so that an executor may run the task. Wakes the
/// threads that wait for the task; they try to disarm it.
inline void mark_handed_over(Node& node) noexcept {
  const std::uint64_t before = node.word.fetch_sub(Node::kBusy - Node::kHandedOver, std::memory_order_release);
  if ((before & Node::kAwaited) != 0) [[unlikely]]
    announce_change(node.word);
}

/// Runs the task of a timeout that this thread has claimed, and destroys it if it is a callable. The task may move
/// `timeout` away, so the caller must hold another reference.
inline void run_task(Timeout& timeout) noexcept {
  Node& node = *Node::of(timeout);
  try {
    node.stored_task().run(timeout);
  } catch (...) {
    node.core().report_error(handle_of(node));
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

/// An expired task in an executor, shared by all copies of the job. The executor may run several copies, throw, or drop
/// them. The task still runs at most once: the first thread that takes it over owns it (Node::kHandedOver). If it can
/// no longer run, it is told so and destroyed.
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
/// reference. Once it is set, any thread may take it. One thread gets all timeouts and tells their tasks.
class Unprocessed {
 public:
  Unprocessed() = default;
  Unprocessed(const Unprocessed&) = delete;
  Unprocessed& operator=(const Unprocessed&) = delete;

  void set(Node* first) noexcept { first_.store(first, std::memory_order_release); }

  /// Moves all timeouts to the end of `timeouts`. Throws std::bad_alloc; then all are still here, for a later call.
  void take(std::vector<Timeout>& timeouts);

  /// Tells all tasks that they will not run, destroys plain callables, and drops the references.
  void drop() noexcept;

 private:
  // The whole chain is exchanged. acquire by the thread that takes it, release by one that stores it.
  std::atomic<Node*> first_{nullptr};
};

/// Tells the task of each timeout that stop() returns that it will not run. Does not use the timer, because a task may
/// destroy it.
void tell_stopped(const std::vector<Timeout>& timeouts) noexcept;

}  // namespace hwt::internal
