#include "hashed_wheel_timer/internal/core/join.h"

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/node.h"
#include "hashed_wheel_timer/internal/core/node_pool.h"
#include "hashed_wheel_timer/internal/core/task_scope.h"

namespace hwt::internal {

bool disarm(Node& node) noexcept {
  if (!node.take_over()) return false;
  if (!node.shared()) {
    // It may own the handle that is being used here: take_over() has taken a reference.
    const TaskScope inside(node);
    node.destroy_task();
  }
  if (node.finish(1)) recycle(&node);
  return true;
}

bool cancel_and_wait(Node& node) noexcept {
  if (Core::cancel(node) || disarm(node)) return true;
  if ((node.word.load(std::memory_order_acquire) & Node::kBusy) == 0) return false;
  // In a forked child the thread that is busy was not copied.
  if (TaskScope::is_inside(node) || node.core().lifecycle().is_of_another_process()) return false;
  node.wait_while_busy();
  return false;
}

}  // namespace hwt::internal
