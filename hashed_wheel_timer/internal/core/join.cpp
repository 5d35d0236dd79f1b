#include "hashed_wheel_timer/internal/core/join.h"

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/node.h"
#include "hashed_wheel_timer/internal/core/node_pool.h"
#include "hashed_wheel_timer/internal/core/task_scope.h"

namespace hwt::internal {

namespace {

bool take_from_executor(Node& node, bool tell) noexcept {
  if (!node.take_over()) return false;
  {
    // It may own the handle that is being used here: take_over() has taken a reference.
    const TaskScope inside(node);
    if (tell) node.tell(detail::NotRun::Dropped);
    if (!node.shared()) node.destroy_task();
  }
  if (node.finish(1)) recycle(&node);
  return true;
}

}  // namespace

bool disarm(Node& node) noexcept { return take_from_executor(node, false); }

void drop_handed_over(Node& node) noexcept { take_from_executor(node, true); }

bool cancel_or_disarm(Node& node) noexcept { return Core::cancel(node) || disarm(node); }

bool cancel_and_wait(Node& node) noexcept {
  if (cancel_or_disarm(node)) return true;
  if ((node.word.load(std::memory_order_acquire) & Node::kBusy) == 0) return false;
  // In a forked child the thread that is busy was not copied.
  if (TaskScope::is_inside(node) || node.core().lifecycle().is_of_another_process()) return false;
  node.wait_while_busy();
  return false;
}

}  // namespace hwt::internal
