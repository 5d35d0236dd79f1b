// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/core_hold.h"

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/platform/threads.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::detail {

CoreHold::CoreHold(const Timer& timer) noexcept : core_(*timer.core_), process_(internal::this_process()) {
  core_.hold();
}
CoreHold::~CoreHold() { core_.let_go(); }

bool CoreHold::in_forked_child() const noexcept { return core_.lifecycle().is_lost_to_child_of(process_); }

internal::Sleeper& CoreHold::sleeper() const noexcept { return core_.sleeper(); }

}  // namespace hwt::detail
