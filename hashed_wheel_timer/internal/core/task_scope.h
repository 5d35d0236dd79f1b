#pragma once

#include <utility>

namespace hwt::internal {

struct Node;

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

  /// Whether the calling thread is inside this node's task, however deep.
  static bool is_inside(const Node& node) noexcept;

 private:
  static constinit thread_local const TaskScope* innermost_;

  const TaskScope* const outer_;  // of this thread
  const Node* node_ = nullptr;
};

}  // namespace hwt::internal
