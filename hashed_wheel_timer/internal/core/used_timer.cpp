// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/used_timer.h"

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/lifecycle.h"
#include "hashed_wheel_timer/internal/platform/threads.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::detail {

UsedTimer::UsedTimer(const Timer& timer) noexcept
    : sleeper_(timer.core_->sleeper()),
      process_of_timer_(timer.core_->lifecycle().place_of_process()),
      made_in_(internal::this_process()) {}
UsedTimer::~UsedTimer() = default;

bool UsedTimer::in_forked_child() const noexcept {
  return internal::is_lost_to_child(made_in_, process_of_timer_->load(std::memory_order_relaxed));
}

bool UsedTimer::is_of_another_process() const noexcept {
  const std::int64_t process = process_of_timer_->load(std::memory_order_relaxed);
  return process != 0 && process != internal::this_process();
}

}  // namespace hwt::detail
