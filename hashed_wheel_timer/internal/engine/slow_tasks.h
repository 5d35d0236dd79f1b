// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include "hashed_wheel_timer/internal/core/core.h"
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

}  // namespace hwt::internal
