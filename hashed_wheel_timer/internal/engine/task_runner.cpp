// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/engine/task_runner.h"

#include <cstdio>

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/report/probes.h"

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
  if (const auto end = lines_.take_turn()) {
    std::fprintf(
        stderr,
        "hashed_wheel_timer: tasks held the worker for %.3f s, and all others waited; Options::slow_task finds "
        "the slow one%s\n",
        milliseconds(time) / 1e3, end->data());
  }
}

void SlowTasks::report(Node& node, std::chrono::nanoseconds ran) noexcept {
  core_.counters().slow_tasks.add(1);
  if (!on_slow_task_) {
    if (const auto end = lines_.take_turn()) {
      std::fprintf(stderr, "hashed_wheel_timer: a task ran for %.3f ms on the worker (slow_task: %.3f ms)%s\n",
                   milliseconds(ran), milliseconds(limit_), end->data());
    }
    return;
  }
  const Timeout timeout = handle_of(node);
  try {
    on_slow_task_(timeout, ran);
  } catch (...) {
    core_.report_error(timeout, "on_slow_task");
  }
}

bool TaskRunner::run(Node& node, TaskScope& inside) noexcept {
  inside.leave();
  if (core_.traces_origins()) probes::run(NodeName(Slab::index_of(node), node.generation()).value());
  if (claim_ == Node::kReference + Node::kHandedOver) {
    run_by_executor(node, executor_);
  } else if (const BatchExecutor* const own = node.executor()) {
    // A copy, because another thread may disarm the task after mark_handed_over(), and so destroy its executor.
    const BatchExecutor executor = *own;
    mark_handed_over(node);
    run_by_executor(node, executor);
  } else if (executor_) {
    mark_handed_over(node);
    run_by_executor(node, executor_);
  } else {
    inside.enter(node);
    return run_watched(node);
  }
  return false;
}

template <class Executor>
void TaskRunner::run_by_executor(Node& node, const Executor& executor) noexcept {
  Timeout timeout = Node::adopt(&node);
  // Outside the try block, because the last reference to the job destroys the task, and the catch block may run it.
  std::shared_ptr<ExecutorJob> job;
  try {
    job = std::make_shared<ExecutorJob>(timeout);
    executor([job] { job->run(); });
  } catch (...) {
    core_.report_error(timeout, "the executor");
    // The executor may have run the job, or may have kept it and run it later. The task runs once in any case.
    slow_tasks_.watch(node, [&]() noexcept { run_handed_over(timeout); });
  }
  node.drop_references(1);  // that of the timer; not the last one, because `timeout` has another
}

bool TaskRunner::run_watched(Node& node) noexcept {
  slow_tasks_.watch(node, [&node]() noexcept {
    Timeout timeout = Node::adopt(&node);
    run_task(timeout);
  });
  return node.finish(1);
}

}  // namespace hwt::internal
