// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/loop_timer.h"

namespace hwt {

using std::chrono::steady_clock;

LoopTimer::LoopTimer(std::chrono::nanoseconds tick_duration) : LoopTimer(Options{.tick_duration = tick_duration}) {}

LoopTimer::LoopTimer(const Options& options) : DrivenTimer("LoopTimer", options) {}

LoopTimer::~LoopTimer() { end(); }

std::optional<steady_clock::time_point> LoopTimer::run_due(std::size_t max_tasks) {
  return driver().run_due(max_tasks);  // the driver keeps the engine when a task destroys this object
}

int poll_timeout(std::optional<steady_clock::time_point> next) noexcept {
  if (!next) return -1;
  const steady_clock::time_point now = steady_clock::now();
  if (*next <= now) return 0;
  const std::int64_t wait = std::chrono::ceil<std::chrono::milliseconds>(*next - now).count();
  return static_cast<int>(std::min<std::int64_t>(wait, (std::numeric_limits<int>::max)()));
}

}  // namespace hwt
