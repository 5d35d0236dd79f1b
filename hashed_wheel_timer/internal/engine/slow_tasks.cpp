// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/engine/slow_tasks.h"

#include <cstdio>

namespace hwt::internal {

namespace {

double milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

SlowTasks::SlowTasks(Core& core, const Options& options)
    : core_(core),
      limit_(options.slow_task.value_or(std::chrono::nanoseconds::zero())),
      tells_of_long_(!options.slow_task),
      on_slow_task_(options.on_slow_task) {}

void SlowTasks::tell_held(std::chrono::nanoseconds time) noexcept {
  if (const LinePerSecond::Turn turn = lines_.take_turn()) {
    std::fprintf(
        stderr,
        "hashed_wheel_timer: tasks held the worker for %.3f s, and all others waited; Options::slow_task finds "
        "the slow one%s\n",
        milliseconds(time) / 1e3, turn.left_out().data());
  }
}

void SlowTasks::report(Node& node, std::chrono::nanoseconds ran) noexcept {
  core_.counters().slow_tasks.add(1);
  if (!on_slow_task_) {
    if (const LinePerSecond::Turn turn = lines_.take_turn()) {
      std::fprintf(stderr, "hashed_wheel_timer: a task ran for %.3f ms on the worker (slow_task: %.3f ms)%s\n",
                   milliseconds(ran), milliseconds(limit_), turn.left_out().data());
    }
    return;
  }
  node.add_reference();
  const Timeout timeout = Node::adopt(&node);
  try {
    on_slow_task_(timeout, ran);
  } catch (...) {
    core_.report_error(timeout, "on_slow_task");
  }
}

}  // namespace hwt::internal
