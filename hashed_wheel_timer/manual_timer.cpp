#include "hashed_wheel_timer/manual_timer.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "hashed_wheel_timer/internal/caller_driven.h"
#include "hashed_wheel_timer/options.h"

namespace hwt {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

namespace {

std::int64_t since_epoch(steady_clock::time_point time) { return time.time_since_epoch() / nanoseconds(1); }

steady_clock::time_point time_point(std::int64_t since_epoch) {
  return steady_clock::time_point(nanoseconds(since_epoch));
}

[[noreturn]] void refuse(const char* what, nanoseconds value, const char* expected) {
  throw std::invalid_argument(std::string(what) + ": " + std::to_string(value.count()) +
                              " nanoseconds (expected: " + expected + ")");
}

}  // namespace

ManualTimer::ManualTimer(nanoseconds tick_duration, steady_clock::time_point start,
                         std::function<void(std::exception_ptr, const Timeout&)> on_task_error) {
  if (tick_duration <= nanoseconds::zero()) refuse("tick_duration", tick_duration, "1 or more");
  const Options options{.tick_duration = tick_duration, .on_task_error = std::move(on_task_error)};
  driven_ = new internal::CallerDriven(*this, options, since_epoch(start));
}

ManualTimer::~ManualTimer() { driven_->destroy(); }

std::size_t ManualTimer::advance(detail::Span span) {
  const nanoseconds by = span;
  if (by < nanoseconds::zero()) refuse("advance", by, "0 or more");
  return driven_->advance(by.count());
}

std::size_t ManualTimer::advance_to(steady_clock::time_point now, std::size_t max_tasks) {
  return driven_->advance_to(since_epoch(now), max_tasks);
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
  return driven_->schedule(task, delay.count(), on_refusal == OnRefusal::Throw);
}

}  // namespace hwt
