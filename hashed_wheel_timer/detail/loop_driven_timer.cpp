#include "hashed_wheel_timer/detail/loop_driven_timer.h"

#include <limits>
#include <utility>

#include "hashed_wheel_timer/internal/engine/manual_engine.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/platform/refuse.h"
#include "hashed_wheel_timer/options.h"

namespace hwt::detail {

using internal::ManualEngine;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

LoopDriver::LoopDriver(std::shared_ptr<ManualEngine> engine) noexcept : engine_(std::move(engine)) {}

std::optional<steady_clock::time_point> LoopDriver::turn() {
  const std::optional<std::int64_t> next = engine_->drive();
  if (!next) return {};
  return steady_clock::time_point(nanoseconds(*next));
}

namespace {

/// With a limit that nothing reaches, what is pending is counted exactly: so the cancel() that leaves nothing knows it.
Options options_of(nanoseconds tick_duration) {
  return {.tick_duration = internal::positive("tick", tick_duration),
          .max_pending_timeouts = std::numeric_limits<std::int64_t>::max()};
}

}  // namespace

LoopDrivenTimer::LoopDrivenTimer(nanoseconds tick_duration)
    : engine_(std::make_shared<ManualEngine>(*this, options_of(tick_duration), internal::steady_now(),
                                             internal::Core::Clock::Steady)) {}

LoopDrivenTimer::~LoopDrivenTimer() = default;

LoopDriver LoopDrivenTimer::driver() const noexcept { return LoopDriver(engine_); }

void LoopDrivenTimer::on_earlier(std::function<void()> call) { engine_->on_earlier(std::move(call)); }

void LoopDrivenTimer::end() noexcept { engine_->destroy(); }

std::vector<Timeout> LoopDrivenTimer::stop() { return engine_->stop(); }

std::int64_t LoopDrivenTimer::pending_timeouts() const noexcept { return engine_->core().pending(); }

steady_clock::time_point LoopDrivenTimer::now() const noexcept { return steady_clock::now(); }

Timeout LoopDrivenTimer::schedule(const TaskSource& task, nanoseconds delay, OnRefusal on_refusal) {
  const std::int64_t deadline = internal::deadline_after(internal::steady_now(), delay.count());
  return engine_->schedule(task, deadline, on_refusal == OnRefusal::Throw);
}

Timeout LoopDrivenTimer::schedule_at(const TaskSource& task, steady_clock::time_point deadline, OnRefusal on_refusal) {
  return engine_->schedule(task, internal::nanoseconds_of(deadline), on_refusal == OnRefusal::Throw);
}

}  // namespace hwt::detail
