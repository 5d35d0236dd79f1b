#include "hashed_wheel_timer/manual_timer.h"

#include <utility>

#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/internal/engine/manual_engine.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/platform/refuse.h"
#include "hashed_wheel_timer/options.h"

namespace hwt {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

steady_clock::time_point time_point(std::int64_t time) { return steady_clock::time_point(nanoseconds(time)); }

}  // namespace

ManualTimer::ManualTimer(nanoseconds tick_duration, steady_clock::time_point start,
                         std::function<void(std::exception_ptr, const Timeout&)> on_task_error) {
  const Options options{.tick_duration = internal::positive("tick_duration", tick_duration),
                        .on_task_error = std::move(on_task_error)};
  driven_ = new internal::ManualEngine(*this, options, internal::nanoseconds_of(start));
}

ManualTimer::~ManualTimer() { driven_->destroy(); }

std::size_t ManualTimer::advance(Delay by) {
  const nanoseconds passing = detail::number("by", by);
  if (passing < nanoseconds::zero()) internal::refuse("by", passing, "0 ns or more");
  return driven_->advance(passing.count());
}

std::size_t ManualTimer::advance_to(steady_clock::time_point now, std::size_t max_tasks) {
  return driven_->advance_to(internal::nanoseconds_of(now), max_tasks);
}

std::optional<steady_clock::time_point> ManualTimer::next_wakeup() const {
  const std::optional<std::int64_t> next = driven_->next_wakeup();
  if (!next) return {};
  return time_point(*next);
}

std::vector<Timeout> ManualTimer::stop() { return driven_->stop(); }

std::int64_t ManualTimer::pending_timeouts() const noexcept { return driven_->core().pending(); }

steady_clock::time_point ManualTimer::now() const noexcept { return time_point(driven_->core().now()); }

Timeout ManualTimer::schedule(const detail::TaskSource& task, nanoseconds delay, OnRefusal on_refusal) {
  const std::int64_t deadline = internal::deadline_after(driven_->core().now(), delay.count());
  return driven_->schedule(task, deadline, on_refusal == OnRefusal::Throw);
}

Timeout ManualTimer::schedule_at(const detail::TaskSource& task, steady_clock::time_point deadline,
                                 OnRefusal on_refusal) {
  return driven_->schedule(task, internal::nanoseconds_of(deadline), on_refusal == OnRefusal::Throw);
}

}  // namespace hwt
