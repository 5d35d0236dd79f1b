// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/scheduled.h"
#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class BatchJobs;
}

/// Hands tasks to a loop or a pool in batches. The first task posts a batch, and later ones join it until the loop
/// takes it. So many tasks that are due in a tick wake the loop once.
///
///   hwt::BatchExecutor loop{[&](std::function<void()> batch) { asio::post(context, std::move(batch)); }};
///   timer.add(hwt::on(loop, [this] { fail_request(); }), 250ms);   // one timeout
///   hwt::TimeoutScope of_this_connection{timer, loop};             // or all timeouts of a scope
///   hwt::HashedWheelTimer for_this_loop{{.executor = loop}};       // or all timeouts of a timer
///
/// Guarantees: the jobs of a batch run in the order in which they came, each once. A batch that the loop drops without
/// calling it destroys its jobs.
/// Threads: any thread may call any member. Copies share their jobs. `post` may be called by several threads at once.
/// The worker may still be in `post` when a task was taken back, or has run. So objects that `post` uses must exist
/// until the timer has stopped.
/// Not for: jobs that throw or are null, which end the program. Tasks of a timer may throw: see Options::on_task_error.
class HWT_API BatchExecutor {
 public:
  /// Makes an executor that gives each batch to `post`, which must call it once, later or on another thread. Throws
  /// std::invalid_argument for a null `post`, and std::bad_alloc.
  explicit BatchExecutor(std::function<void(std::function<void()>)> post);
  /// Makes another executor of the same jobs. A move is a copy too, so each object can be used.
  BatchExecutor(const BatchExecutor&) noexcept = default;
  /// Becomes another executor of the jobs of the other one. A move is a copy too.
  BatchExecutor& operator=(const BatchExecutor&) noexcept = default;

  /// Adds a job to the batch that waits for the loop, or posts a new batch. Allocates memory for each job, and for each
  /// new batch. Throws std::bad_alloc without memory: either the job was not added, or this thread has run the
  /// batch. Throws what posting throws, after this thread has run the batch. Takes no lock.
  void operator()(std::function<void()> job) const;

 private:
  std::shared_ptr<internal::BatchJobs> jobs_;
};

namespace detail {

/// A callable that runs on an executor of its own: what on() returns.
template <class F>
class OnExecutor {
 public:
  template <class Source>
  OnExecutor(const BatchExecutor& executor, Source&& callable)
      : executor_(&executor), callable_(std::forward<Source>(callable)) {}

  /// Runs the callable here. The timer calls it in a job of the executor.
  template <class... Arguments>
    requires std::is_invocable_v<F&, Arguments...>
  void operator()(Arguments&&... arguments) {
    std::invoke(callable_, std::forward<Arguments>(arguments)...);
  }
  void will_not_run(NotRun why)
    requires ToldWhenNotRun<F>
  {
    callable_.will_not_run(why);
  }
  const BatchExecutor& executor() const noexcept { return *executor_; }

 private:
  const BatchExecutor* executor_;
  F callable_;
};

}  // namespace detail

/// Returns a callable for any function of a timer or a TimeoutScope, which makes the task run on `executor` instead of
/// the worker, or instead of Options::executor. The worker hands the task over when it is due. From then on the
/// timeout is expired: cancel() does not stop the task. cancel_and_wait() and the destructor of a TimeoutScope take it
/// back or wait for it. The timer does not wait for it.
/// If the executor throws, or there is no memory, on_task_error gets the exception and the task runs on the worker.
/// `executor` must outlive the timeout. Throws std::invalid_argument for a null callable, and what copying the callable
/// throws. Scheduling allocates nothing for callables of up to 16 bytes. Each hand-over allocates.
template <class F>
  requires detail::TimeoutCallable<F>
auto on(const BatchExecutor& executor, F&& callable) {
  if (detail::is_null_callable(callable)) detail::raise(detail::Scheduled::refused(detail::Result::NullTask), "on");
  return detail::OnExecutor<std::decay_t<F>>(executor, std::forward<F>(callable));
}
/// Refuses a temporary executor, which would be gone before the timeout.
template <class F>
auto on(const BatchExecutor&& executor, F&& callable) = delete;

}  // namespace hwt
