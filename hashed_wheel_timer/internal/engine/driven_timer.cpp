// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/detail/driven_timer.h"

#include "hashed_wheel_timer/internal/engine/checked_options.h"
#include "hashed_wheel_timer/internal/engine/driven_engine.h"
#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt::detail {

using internal::DrivenEngine;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

LoopDriver::LoopDriver(std::shared_ptr<DrivenEngine> engine) noexcept : engine_(std::move(engine)) {}

std::optional<steady_clock::time_point> LoopDriver::run_due(std::size_t max_tasks, std::size_t* ran) {
  const std::optional<std::int64_t> next = engine_->drive(max_tasks, ran);
  if (!next) return {};
  return steady_clock::time_point(nanoseconds(*next));
}

namespace {

Options checked(const char* name, const Options& options) {
  return internal::checked_options(
      name, options,
      {.shortest_tick = nanoseconds(1), .default_tick = std::chrono::milliseconds(1), .has_thread = false});
}

}  // namespace

DrivenTimer::DrivenTimer(const char* name, const Options& options)
    : engine_(std::make_shared<DrivenEngine>(*this, checked(name, options), internal::steady_now(),
                                             internal::Core::Clock::Cycles)) {}

DrivenTimer::DrivenTimer(const char* name, const Options& options, std::optional<steady_clock::time_point> start)
    : engine_(std::make_shared<DrivenEngine>(*this, checked(name, options),
                                             start ? internal::nanoseconds_of(*start) : internal::steady_now(),
                                             internal::Core::Clock::Given)) {}

DrivenTimer::~DrivenTimer() = default;

void DrivenTimer::on_earlier(std::function<void()> call) { engine_->on_earlier(std::move(call)); }

void DrivenTimer::end() noexcept { engine_->destroy(); }

std::vector<Timeout> DrivenTimer::stop() { return engine_->stop(); }

}  // namespace hwt::detail
