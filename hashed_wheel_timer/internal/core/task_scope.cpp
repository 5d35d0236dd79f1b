#include "hashed_wheel_timer/internal/core/task_scope.h"

namespace hwt::internal {

constinit thread_local const TaskScope* TaskScope::innermost_ = nullptr;

bool TaskScope::is_inside(const Node& node) noexcept {
  for (const TaskScope* scope = innermost_; scope != nullptr; scope = scope->outer_) {
    if (scope->node_ == &node) return true;
  }
  return false;
}

}  // namespace hwt::internal
