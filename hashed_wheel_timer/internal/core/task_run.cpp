// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/core/task_run.h"

#include "hashed_wheel_timer/internal/handover/producer.h"

namespace hwt::internal {

constinit thread_local const TaskScope* TaskScope::innermost_ = nullptr;

bool TaskScope::is_inside(const Node& node) noexcept {
  for (const TaskScope* scope = innermost_; scope != nullptr; scope = scope->outer_) {
    if (scope->node_ == &node) return true;
  }
  return false;
}

namespace {

/// Takes a task back that was handed to an executor, and destroys a callable. `tell`: first notifies the task that it
/// will not run. Returns false if another thread has the task.
bool take_from_executor(Node& node, bool tell) noexcept {
  if (!node.take_over()) return false;
  {
    // The callable may own the caller's handle. So take_over() has added a reference.
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
  // Tries again after each wait, because the worker may have handed the task to an executor meanwhile. If neither flag
  // is set, the task has ended or was cancelled before.
  while (!cancel_or_disarm(node)) {
    if ((node.word.load(std::memory_order_acquire) & (Node::kBusy | Node::kHandedOver)) == 0) return false;
    // In a forked child the thread that is busy was not copied.
    if (TaskScope::is_inside(node) || node.core().lifecycle().is_of_another_process()) return false;
    node.wait_while_busy();
  }
  return true;
}

void Core::report_error(const Timeout& timeout, const char* origin) noexcept {
  const std::exception_ptr error = caught_exception(origin);
  counters_.note_task_error();
  if (!on_task_error_) return error_log_.report(error, origin);
  try {
    on_task_error_(error, timeout);
  } catch (...) {  // the handler's own exception is logged instead
    error_log_.report(caught_exception("on_task_error"), "on_task_error");
  }
}

void Node::tell(detail::NotRun why) noexcept {
  try {
    stored_task().hwt_will_not_run(why);
  } catch (...) {
    core().report_error(handle_of(*this));
  }
}

void Unprocessed::take(std::vector<Timeout>& timeouts) {
  Node* first = first_.exchange(nullptr, std::memory_order_acquire);
  std::size_t count = 0;
  for (Node* node = first; node != nullptr; node = node->next()) ++count;
  try {
    timeouts.reserve(timeouts.size() + count);
  } catch (...) {
    set(first);
    throw;
  }
  while (first != nullptr) timeouts.push_back(Node::adopt(std::exchange(first, first->next())));
}

void Unprocessed::drop() noexcept {
  Node* first = first_.exchange(nullptr, std::memory_order_acquire);
  while (first != nullptr) {
    Node* const node = std::exchange(first, first->next());
    node->tell(detail::NotRun::Stopped);
    if (!node->shared()) node->destroy_task();
    const Timeout last_reference_perhaps = Node::adopt(node);
  }
}

void tell_stopped(const std::vector<Timeout>& timeouts) noexcept {
  for (const Timeout& timeout : timeouts) Node::of(timeout)->tell(detail::NotRun::Stopped);
}

}  // namespace hwt::internal
