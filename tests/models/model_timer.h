#pragma once

// A timer that has only a Core and a Worker, so a model takes fewer steps than with a ManualTimer. One thread turns it.

#include <algorithm>
#include <functional>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/worker.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "hashed_wheel_timer/timer.h"
#include "tests/models/checker.h"

namespace model {

class ModelTimer final : public hwt::Timer {
 public:
  using Executor = std::function<void(std::function<void()>)>;

  explicit ModelTimer(Executor executor = {})
      : options_{.tick_duration = std::chrono::nanoseconds(1), .executor = std::move(executor)} {
    core_.lifecycle().finish_start(0);
  }
  ~ModelTimer() override {
    core_.forget_timer();
    if (core_.running()) stop();
    unprocessed_.drop();
    core_.close();
  }

  hwt::internal::Core& core() { return core_; }

  /// Runs all tasks that are due by then, in ticks of a nanosecond. A timeout that this turn finds in the inbox waits
  /// for the next turn.
  void turn(std::int64_t now) {
    core_.set_now(now);
    worker_.close_before(now);
    worker_.transfer();
    while (worker_.is_unfinished()) {
      yield();
      worker_.transfer();
    }
    while (core_.running() && worker_.next_due() < now) worker_.expire(worker_.next_due(), now);
  }

  /// Makes a pass over the places with a deadline up to `until`, as WorkerThread does. Then sleeps for ever, unless a
  /// timeout is due by then or a thread has asked for a pass in this tick.
  void sleep(std::int64_t until) {
    worker_.transfer(until, false);
    const auto wanted = [this] { return std::min(worker_.next_due(), worker_.next_waiting()); };
    const hwt::internal::Tick tick = hwt::internal::announce_sleep(core_.sleeper(), {0, 1}, wanted(), 0, wanted);
    if (tick < until || (core_.inbox().asked() & hwt::internal::Inbox::kUrgent) != 0) return;
    core_.sleeper().sleep_until(hwt::internal::kForever);
  }

  /// Called by the thread that turns the timer.
  std::vector<hwt::Timeout> stop() override {
    core_.lifecycle().begin_stop();
    hwt::internal::AsymmetricFence::heavy();
    unprocessed_.set(worker_.cancel_all());
    core_.lifecycle().finish_stop();
    std::vector<hwt::Timeout> timeouts;
    unprocessed_.take(timeouts);
    return timeouts;
  }

 private:
  const hwt::Options options_;
  hwt::internal::Core& core_ = *new hwt::internal::Core(*this, options_, hwt::internal::Core::Clock::Given);
  hwt::internal::Worker<hwt::internal::HierarchicalWheel> worker_{core_, options_, 64};
  hwt::internal::Unprocessed unprocessed_;
};

}  // namespace model
