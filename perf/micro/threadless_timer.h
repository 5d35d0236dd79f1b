#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/worker.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::perf {

/// A timer without worker and clock. Scheduling and cancelling use a Core as usual. The caller of driver() does the
/// worker's part and sets the time. So each part can be measured alone, with the same instructions each time.
class ThreadlessTimer final : public Timer {
 public:
  using Worker = internal::Worker<internal::HashedWheel>;

  explicit ThreadlessTimer(const Options& options = {.tick_duration = std::chrono::milliseconds(1)})
      : core_(new internal::Core(*this, options, internal::Core::Clock::Given)),
        worker_(*core_, options, options.ticks_per_wheel),
        grid_{0, options.tick_duration.value().count()} {
    core_->lifecycle().finish_start(0);
  }

  ~ThreadlessTimer() override {
    core_->lifecycle().begin_stop();
    for (internal::Node* node = worker_.cancel_all(); node != nullptr;) {
      internal::Node* const next = node->next();
      if (!node->shared()) node->destroy_task();
      internal::Node::adopt(node);
      node = next;
    }
    core_->close();
  }

  Worker& worker() noexcept { return worker_; }
  internal::Core& core() noexcept { return *core_; }

  /// Sets the present time of new_timeout() in nanoseconds. The timer started at 0. Do not call it during
  /// new_timeout().
  void set_time(std::int64_t time) noexcept { core_->set_now(time); }
  std::int64_t time() const noexcept { return core_->now(); }

  /// Takes everything that is new or cancelled from the inbox, in as many passes as that needs.
  void transfer_all() noexcept {
    while (worker_.transfer() == Worker::Pass::More) {
    }
  }

  /// Runs all timeouts in the wheel, each at the end of its tick.
  void expire_all() noexcept {
    for (internal::Tick due = worker_.next_due(); due != internal::kNever; due = worker_.next_due()) {
      worker_.expire(due, grid_.end_of(due));
    }
  }

  std::vector<Timeout> stop() override { return {}; }

 private:
  internal::Core* const core_;  // deletes itself after close()
  Worker worker_;
  const internal::TickGrid grid_;
};

}  // namespace hwt::perf
