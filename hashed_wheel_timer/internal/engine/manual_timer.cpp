// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/manual_timer.h"

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/internal/engine/driven_engine.h"
#include "hashed_wheel_timer/internal/report/refuse.h"
#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

ManualTimer::ManualTimer(nanoseconds tick_duration) : ManualTimer(Options{.tick_duration = tick_duration}) {}

ManualTimer::ManualTimer(nanoseconds tick_duration, detail::PresentTime start,
                         std::function<void(std::exception_ptr, const Timeout&)> on_task_error)
    : ManualTimer(Options{.tick_duration = tick_duration, .on_task_error = std::move(on_task_error)}, start) {}

ManualTimer::ManualTimer(const Options& options, std::optional<detail::PresentTime> start)
    : DrivenTimer("ManualTimer", options, start) {}

ManualTimer::~ManualTimer() { end(); }

std::size_t ManualTimer::advance(Delay by) {
  const nanoseconds passing = detail::number("ManualTimer: by", by);
  if (passing < nanoseconds::zero()) internal::refuse("ManualTimer: by", passing, "0 ns or more");
  return engine().advance(passing.count());
}

std::size_t ManualTimer::advance_to(detail::PresentTime now, std::size_t max_tasks) {
  return engine().advance_to(internal::nanoseconds_of(now), max_tasks);
}

std::optional<steady_clock::time_point> ManualTimer::next_wakeup() const {
  const std::optional<std::int64_t> next = engine().next_wakeup();
  if (!next) return {};
  return steady_clock::time_point(nanoseconds(*next));
}

}  // namespace hwt
