// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/timer.h"
#include "hashed_wheel_timer/when.h"

namespace hwt::internal {

/// Schedules a callable for a class of this library. `origin`: the name for Options::trace_origins. Throws what
/// Timer::new_timeout() throws, but the messages begin with `caller`.
template <class F>
Timeout named_timeout(Timer& timer, F callable, When when, const char* origin, const char* caller) {
  const detail::Scheduled scheduled = detail::schedule_named(timer, detail::source_of<F>(callable), when, origin);
  if (scheduled.node == nullptr) detail::raise(scheduled, caller);
  return Node::adopt(scheduled.node);
}

}  // namespace hwt::internal
