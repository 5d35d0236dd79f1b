// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/core/core.h"

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

Core::Core(Timer& timer, const Options& options, Clock clock)
    : timer_(&timer),
      cycles_(clock == Clock::Cycles && !options.exact_clock && options.tick_duration >= Tuning::kShortestTickOfCycles),
      clock_(clock == Clock::Cycles && !cycles_.wanted() ? Clock::Steady : clock),
      on_task_error_(options.on_task_error),
      id_(new_core_id()),
      plain_(options.max_pending_timeouts <= 0 && !options.trace_origins),
      tick_duration_(options.tick_duration.value().count()),
      hook_patience_(std::max<std::int64_t>(Tuning::kSoon - options.tick_duration.value().count(), 0)),
      depot_(*this, id_, options.trace_origins, sleeper_, [](Core& core) noexcept { delete &core; }),
      admission_(options.max_pending_timeouts) {
  AsymmetricFence::prepare();
  timer.core_ = this;
}

/// Calls the driver of a timer without a worker, because no timeout is pending any more. Then an event loop that has
/// nothing else to do can end.
[[gnu::noinline]] void Core::wake_for_none_pending() noexcept { sleeper_.call_if_asleep(); }

/// Makes the worker call TimerTask::cancelled(), the hook of a cancelled timeout. Wakes it if it would sleep for longer
/// than hook_patience_.
void Core::wake_for_cancelled_hook() noexcept {
  inbox_.note(Inbox::kEverything);
  AsymmetricFence::full();
  // Announcements are by the worker's clock.
  if (!sleeper_.awake()) sleeper_.wake_for(deadline_after(now() - cycles_.behind(), hook_patience_));
}

}  // namespace hwt::internal
