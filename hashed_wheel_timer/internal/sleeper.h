#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>

namespace hwt::internal {

/// Nanoseconds of steady_clock.
inline std::int64_t steady_now() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// The worker's sleep, and what others must know to end it: only a timeout that the worker would wake up too late for
/// needs to wake it. Times are nanoseconds of steady_clock.
///
/// Going to sleep races with enqueueing (Dekker). The worker announces its sleep, passes the heavy fence and looks at
/// the queues once more; a producer enqueues, passes the light fence and looks at the announcement: one of them sees
/// the other.
class Sleeper {
 public:
  /// The worker: a timeout with a deadline before `wake_before` must wake it.
  void announce(std::int64_t wake_before) noexcept { wake_before_.store(wake_before, std::memory_order_relaxed); }
  /// The worker: takes the announcement back.
  void retract() noexcept { announce(kAwake); }

  /// The worker: sleeps until `time` or wake(), and takes the announcement back.
  void sleep_until(std::int64_t time) {
    {
      std::unique_lock lock(mutex_);
      if (time == kForever) {
        woken_.wait(lock, [this] { return wake_requested_; });
      } else {
        woken_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time)),
                          [this] { return wake_requested_; });
      }
      wake_requested_ = false;
    }
    retract();
  }

  /// Any thread: wakes the worker if it would sleep too long for a deadline.
  void wake_for(std::int64_t deadline) noexcept {
    if (deadline < wake_before_.load(std::memory_order_relaxed)) wake_if_asleep();
  }
  /// Any thread: wakes the worker if it has announced a sleep.
  void wake_if_asleep() noexcept {
    // One of those who want to wake it does so; the others find it awake.
    if (wake_before_.load(std::memory_order_relaxed) != kAwake &&
        wake_before_.exchange(kAwake, std::memory_order_relaxed) != kAwake) {
      wake();
    }
  }
  /// Any thread: ends the present sleep, or the next.
  void wake() noexcept {
    {
      const std::lock_guard lock(mutex_);
      wake_requested_ = true;
    }
    woken_.notify_one();
  }

  bool awake() const noexcept { return wake_before_.load(std::memory_order_relaxed) == kAwake; }

  static constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

 private:
  static constexpr std::int64_t kAwake = std::numeric_limits<std::int64_t>::min();

  // Read by every producer, written when the worker goes to sleep and wakes up.
  std::atomic<std::int64_t> wake_before_{kAwake};

  std::mutex mutex_;
  std::condition_variable woken_;
  bool wake_requested_ = false;  // guarded by mutex_
};

}  // namespace hwt::internal
