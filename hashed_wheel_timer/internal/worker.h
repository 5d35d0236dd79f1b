#pragma once

#include <cstdint>

#include "hashed_wheel_timer/internal/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/driver.h"
#include "hashed_wheel_timer/internal/worker_thread.h"

namespace hwt::internal {

/// The thread that turns a wheel.
template <class Wheel>
class Worker final : public WorkerThread {
 public:
  Worker(Timer& timer, const Options& options, std::int64_t wheel_size)
      : WorkerThread(timer, options),
        tick_duration_(options.tick_duration.count()),
        driver_(core(), options, wheel_size) {}

 private:
  std::int64_t begin_of(Tick tick) noexcept {
    const Tick last = (Sleeper::kForever - core().start_time) / tick_duration_;
    return tick > last ? Sleeper::kForever : core().start_time + tick * tick_duration_;
  }

  /// Netty: Worker.run. The order of Netty 4.1, and of 4.2 after #15899, with two differences: ticks in which nothing
  /// is due are jumped over, and with nothing to do in the next tick the worker sleeps longer than to its end.
  void turn() noexcept override {
    while (core().running()) {
      const bool collected = driver_.collect_cancelled();
      const auto transfer = driver_.transfer();
      const Tick current = (steady_now() - core().start_time) / tick_duration_;
      const Tick due = driver_.next_due();
      if (due < current) {
        driver_.expire(due);
        core().count_tick(steady_now() - begin_of(due + 1));
      } else if (transfer.starved || (!transfer.more && driver_.backlog() < Core::kCollectEvery)) {
        sleep(current, due, collected || transfer.any);
      }
    }
  }

  /// Waits for the end of the tick in which something is due, or of the current one if it was `busy`: a busy timer's
  /// worker looks at its queues once a tick, for which nobody has to wake it, and an idle one's not at all.
  void sleep(Tick current, Tick due, bool busy) noexcept {
    const Tick until = busy ? current : due;
    // A timeout of an earlier tick than that must wake the worker.
    core().sleeper.announce(begin_of(until));
    if (until > current) {
      AsymmetricFence::heavy();
      if (!driver_.queues_empty()) return core().sleeper.retract();
    }
    core().sleeper.sleep_until(until == kNever ? Sleeper::kForever : begin_of(until + 1));
    core().count_wakeup();
  }

  Node* empty() noexcept override { return driver_.empty(); }

  const std::int64_t tick_duration_;
  Driver<Wheel> driver_;
};

}  // namespace hwt::internal
