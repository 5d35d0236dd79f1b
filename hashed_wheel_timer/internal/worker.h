#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "hashed_wheel_timer/internal/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/driver.h"
#include "hashed_wheel_timer/internal/tick_grid.h"
#include "hashed_wheel_timer/internal/worker_thread.h"

namespace hwt::internal {

/// The thread that turns a wheel.
template <class Wheel>
class Worker final : public WorkerThread {
 public:
  Worker(Timer& timer, const Options& options, std::int64_t wheel_size)
      : WorkerThread(timer, options),
        tick_duration_(options.tick_duration.count()),
        linger_(kLinger / tick_duration_),
        driver_(core(), options, wheel_size) {}

 private:
  TickGrid grid() noexcept { return {core().start_time, tick_duration_}; }

  /// Netty: Worker.run. The order of Netty 4.1, and of 4.2 after #15899, with two differences: ticks in which nothing
  /// is due are jumped over, and the worker sleeps for as long as nothing is due.
  void turn() noexcept override {
    while (core().running()) {
      const bool collected = driver_.collect_cancelled();
      const Tick current = grid().at(steady_now());
      const auto transfer = driver_.transfer(current);
      const Tick due = driver_.next_due();
      if (due < current) {
        // Nothing was late where nothing was due: a timeout may have been looked at, or come down a level, since it
        // came in long after the slot that it came into had begun.
        if (driver_.expire(due) != 0) core().note_lag(steady_now() - grid().end_of(due));
        core().count_tick();
      } else if (transfer.starved || (!transfer.more && driver_.backlog() < Core::kCollectEvery)) {
        sleep(current, due, collected || transfer.any);
      }
    }
  }

  /// Waits for the end of the tick in which something is due. After a `busy` pass not much longer, so that the next
  /// nodes are collected in time although nobody wakes the worker for them; and where more of them come all the time,
  /// or a cancelled() has been called, which is promised within a tick, only for the end of the current tick: for that
  /// nobody has to wake it at all.
  void sleep(Tick current, Tick due, bool busy) noexcept {
    const Tick patience = driver_.has_called_cancelled() || !driver_.queues_empty() ? 0 : linger_;
    Tick until = busy ? std::min(due, current + patience) : due;
    if (until > current && !announce(until)) {
      if (!busy) return;
      until = current;
    }
    if (until == current) core().sleeper.announce(grid().begin_of(current));
    core().sleeper.sleep_until(grid().end_of(until));
    core().count_wakeup();
  }

  /// A timeout of an earlier tick must wake the worker from now on. False, and nothing announced: there may be one.
  bool announce(Tick until) noexcept {
    core().sleeper.announce(grid().begin_of(until));
    AsymmetricFence::heavy();
    if (driver_.queues_empty()) return true;
    core().sleeper.retract();
    return false;
  }

  Node* empty() noexcept override { return driver_.empty(); }

  /// How long nodes may wait in the queues of a busy timer. A wake-up costs as much as some hundred timeouts: a worker
  /// that woke up in every tick of 1 ms would cost more than its timeouts, up to some 100,000 of them a second.
  static constexpr std::int64_t kLinger = 20'000'000;

  const std::int64_t tick_duration_;
  const Tick linger_;  // kLinger in ticks
  Driver<Wheel> driver_;
};

}  // namespace hwt::internal
