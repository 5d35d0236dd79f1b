#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/platform/parking.h"

namespace hwt::internal {

/// The worker's sleep, and what others must know to end it: only a timeout for which the worker would wake up too late
/// has to wake it. Times are nanoseconds of steady_clock.
///
/// Going to sleep races with what comes in (Dekker). The worker announces its sleep, passes the heavy fence and looks
/// into its inbox once more; a producer puts an entry there, passes the light fence and looks at the announcement: at
/// least one of them sees the other.
///
/// Nobody relies on a thread that may not run. The announcement stays until the worker itself takes it back, and each
/// producer that needs the worker wakes it, unless another one has *finished* waking it from the same sleep: one that
/// has only begun may have been preempted. So of a herd, those wake it that come within the few microseconds of the
/// first wake-up; the others find that it is done.
class Sleeper {
 public:
  /// A sleep that no deadline ends.
  static constexpr std::int64_t kNobody = std::numeric_limits<std::int64_t>::min() + 1;

  /// The worker: a timeout with a deadline up to `wake_until` must wake it; but not one that is never due.
  void announce(std::int64_t wake_until) noexcept {
    sleep_.store(sleep_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    wake_until_.store(std::min(wake_until, kForever - 1), std::memory_order_release);
  }
  /// The worker: takes the announcement back.
  void retract() noexcept { wake_until_.store(kAwake, std::memory_order_relaxed); }

  /// The worker: sleeps until `time` or wake(), and takes the announcement back.
  void sleep_until(std::int64_t time) noexcept {
    parking_.park_until(time);
    retract();
  }

  /// Any thread: wakes the worker if it would sleep too long for a deadline.
  void wake_for(std::int64_t deadline) noexcept {
    if (deadline <= wake_until_.load(std::memory_order_relaxed)) wake_if_asleep();
  }
  /// Any thread: wakes the worker if it has announced a sleep.
  void wake_if_asleep() noexcept {
    if (wake_until_.load(std::memory_order_acquire) == kAwake) return;
    const std::uint64_t sleep = sleep_.load(std::memory_order_acquire);
    if (woken_from_.load(std::memory_order_acquire) == sleep) return;
    wake();
    woken_from_.store(sleep, std::memory_order_release);
  }
  /// Any thread: ends the present sleep, or the next.
  void wake() noexcept { parking_.call(); }

  bool awake() const noexcept { return wake_until_.load(std::memory_order_relaxed) == kAwake; }

 private:
  friend class SleeperTest;

  static constexpr std::int64_t kAwake = std::numeric_limits<std::int64_t>::min();

  // Read by every producer, written when the worker goes to sleep and wakes up. release and acquire, where somebody is
  // woken: who sees an announcement sees the number of its sleep, or a later one. (For a producer the two fences see to
  // that; some wake the worker without one, to have it collect early.)
  std::atomic<std::int64_t> wake_until_{kAwake};

  // Counts the announcements. The worker's to write. release and acquire: who sees the number calls after the worker
  // has left the sleep before, so that the call is not taken for one to that.
  std::atomic<std::uint64_t> sleep_{0};

  // The number of a sleep that somebody has finished waking the worker from. A thread that was preempted may write an
  // old one over a new one: then the worker is called once too often. What a producer has put into the inbox while it
  // found this sleep announced, the worker finds before its next sleep, as above; so it is enough that this one ends.
  std::atomic<std::uint64_t> woken_from_{0};

  Parking parking_;
};

}  // namespace hwt::internal
