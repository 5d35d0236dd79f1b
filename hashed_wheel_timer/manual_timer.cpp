#include "hashed_wheel_timer/manual_timer.h"

#include <memory>
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
  engine_ = std::make_shared<internal::ManualEngine>(*this, options, internal::nanoseconds_of(start));
}

ManualTimer::~ManualTimer() { engine_->destroy(); }

std::size_t ManualTimer::advance(Delay by) {
  const nanoseconds passing = detail::number("by", by);
  if (passing < nanoseconds::zero()) internal::refuse("by", passing, "0 ns or more");
  return engine_->advance(passing.count());
}

std::size_t ManualTimer::advance_to(steady_clock::time_point now, std::size_t max_tasks) {
  return engine_->advance_to(internal::nanoseconds_of(now), max_tasks);
}

std::optional<steady_clock::time_point> ManualTimer::next_wakeup() const {
  const std::optional<std::int64_t> next = engine_->next_wakeup();
  if (!next) return {};
  return time_point(*next);
}

void ManualTimer::on_earlier(std::function<void()> call) { engine_->on_earlier(std::move(call)); }

std::vector<Timeout> ManualTimer::stop() { return engine_->stop(); }

std::int64_t ManualTimer::pending_timeouts() const noexcept { return engine_->core().pending(); }

steady_clock::time_point ManualTimer::now() const noexcept { return time_point(engine_->core().now()); }

Timeout ManualTimer::schedule(const detail::TaskSource& task, nanoseconds delay, OnRefusal on_refusal) {
  const std::int64_t deadline = internal::deadline_after(engine_->core().now(), delay.count());
  return engine_->schedule(task, deadline, on_refusal == OnRefusal::Throw);
}

Timeout ManualTimer::schedule_at(const detail::TaskSource& task, steady_clock::time_point deadline,
                                 OnRefusal on_refusal) {
  return engine_->schedule(task, internal::nanoseconds_of(deadline), on_refusal == OnRefusal::Throw);
}

}  // namespace hwt
