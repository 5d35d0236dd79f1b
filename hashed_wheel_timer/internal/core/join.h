#pragma once

namespace hwt::internal {

struct Node;

/// A task that waits in an executor will not run: destroys it if it is a callable. False: it was not handed over, or
/// another thread has it. Any thread that has a reference.
bool disarm(Node& node) noexcept;

/// Nobody will run a task that waits in an executor, unless another thread has it: as disarm(), but tells it first.
void drop_handed_over(Node& node) noexcept;

/// As Timeout::cancel_and_wait(), but without the wait: it may be running.
bool cancel_or_disarm(Node& node) noexcept;

/// Timeout::cancel_and_wait() of a node of any core.
bool cancel_and_wait(Node& node) noexcept;

}  // namespace hwt::internal
