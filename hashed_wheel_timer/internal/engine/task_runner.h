// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/time/clock.h"
#include "hashed_wheel_timer/options.h"

namespace hwt::internal {

/// Options::slow_task at work: times the tasks that run on the worker, if that is wanted. Always by steady_clock: the
/// time of a ManualTimer stands still while a task runs. Only the worker uses it.
class SlowTasks {
 public:
  SlowTasks(Core& core, const Options& options);

  bool watched() const noexcept { return limit_ > std::chrono::nanoseconds::zero(); }

  /// Calls run(), which runs the task of `node`, and reports the task if that took too long. The caller holds a
  /// reference of the node's.
  template <class F>
  void watch(Node& node, F&& run) noexcept {
    if (!watched()) return run();
    const std::int64_t began = steady_now();
    if (core_.reads_steady_clock()) core_.counters().note_running_since(began);
    run();
    const std::chrono::nanoseconds ran(steady_now() - began);
    // A task that has destroyed its timer is not reported, because objects that on_slow_task uses may be gone too.
    if (ran > limit_ && !core_.ended_on_worker()) report(node, ran);
    core_.counters().note_none_running();
  }

  /// Notes that the worker has run tasks for so long, in one go.
  void note_held(std::chrono::nanoseconds time) noexcept {
    if (time > kLong && tells_of_long_) [[unlikely]]
      tell_held(time);
  }

 private:
  static constexpr std::chrono::seconds kLong{1};

  void tell_held(std::chrono::nanoseconds time) noexcept;
  void report(Node& node, std::chrono::nanoseconds ran) noexcept;

  Core& core_;
  const std::chrono::nanoseconds limit_;
  const bool tells_of_long_;
  const std::function<void(const Timeout&, std::chrono::nanoseconds)> on_slow_task_;
  LinePerSecond lines_;
};

/// Runs the due tasks that need more than a call on the worker: an executor, two clock readings (Options::slow_task),
/// or a probe. Only the worker uses it. The worker calls look() before each tick. It expires each due node by a CAS
/// that adds claim(). Then it runs the task itself if plain() is true, and calls run() otherwise.
class TaskRunner {
 public:
  TaskRunner(Core& core, const Options& options)
      : core_(core),
        executor_(options.executor),
        slow_tasks_(core, options),
        claim_(Node::kReference + (executor_ ? Node::kHandedOver : Node::kBusy)),
        plain_(!executor_ && !slow_tasks_.watched() && !(probes::kThere && core.traces_origins())) {}

  /// Finds out whether a task may have an executor of its own. Call it before the tasks of each tick.
  void look() noexcept {
    if (!core_.expects_executors()) [[likely]]
      return;
    // The worker is busy with each task until it knows the task's executor.
    claim_ = Node::kReference + Node::kBusy;
    plain_ = false;
  }
  /// Returns the value that expiry adds to Node::word: a reference for the Timeout that the task gets, and kBusy or
  /// kHandedOver.
  std::uint64_t claim() const noexcept { return claim_; }
  /// Returns whether the caller may run the tasks of this tick itself. Otherwise it must call run().
  bool plain() const noexcept { return plain_; }

  /// Counts the nanoseconds of steady_clock that tasks have just taken in one go.
  void note_in_tasks(std::int64_t time) noexcept {
    core_.counters().in_tasks.add(time);
    slow_tasks_.note_held(std::chrono::nanoseconds(time));
  }

  /// Runs the task of a node that the worker has claimed, or hands it to its executor. If the executor throws, the task
  /// runs here. Returns whether it has dropped the last reference, so that the caller must give the node back.
  bool run(Node& node, TaskScope& inside) noexcept;

 private:
  template <class Executor>
  void run_by_executor(Node& node, const Executor& executor) noexcept;
  bool run_watched(Node& node) noexcept;

  Core& core_;
  const std::function<void(std::function<void()>)> executor_;
  SlowTasks slow_tasks_;
  std::uint64_t claim_;
  bool plain_;
};

}  // namespace hwt::internal
