// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/threaded_timer.h"

#include "hashed_wheel_timer/internal/engine/threaded_engine.h"

namespace hwt {

ThreadedTimer::~ThreadedTimer() = default;

void ThreadedTimer::end() noexcept { engine_->destroy(); }

void ThreadedTimer::start() { engine_->start("start"); }

void ThreadedTimer::run() { engine_->run(); }

std::vector<Timeout> ThreadedTimer::stop() { return engine_->stop(); }

void ThreadedTimer::begin() { engine_->start("new_timeout"); }

}  // namespace hwt
