#include "hashed_wheel_timer/threaded_timer.h"

#include "hashed_wheel_timer/internal/engine/threaded_engine.h"

namespace hwt {

ThreadedTimer::~ThreadedTimer() = default;

void ThreadedTimer::end() noexcept { engine_->destroy(); }

void ThreadedTimer::start() { engine_->start("start"); }

std::vector<Timeout> ThreadedTimer::stop() { return engine_->stop(); }

std::int64_t ThreadedTimer::pending_timeouts() const noexcept { return engine_->core().pending(); }

std::chrono::steady_clock::time_point ThreadedTimer::now() const noexcept { return std::chrono::steady_clock::now(); }

TimerStats ThreadedTimer::stats() const noexcept { return engine_->core().stats(); }

LatencyHistogram ThreadedTimer::lateness() const noexcept { return engine_->core().lateness(); }

void ThreadedTimer::begin() { engine_->start("new_timeout"); }

}  // namespace hwt
