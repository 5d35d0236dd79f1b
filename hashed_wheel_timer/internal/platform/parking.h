// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

// The way to sleep on this system. Each has a file, parking_*.cpp, which is empty unless its macro is defined.
#if defined(__linux__)
#define HWT_PARKING_LINUX
#elif defined(_WIN32)
#define HWT_PARKING_WINDOWS
#else
#define HWT_PARKING_CONDITION
#endif

#if defined(HWT_PARKING_CONDITION)
#include <condition_variable>
#include <mutex>
#endif

namespace hwt::internal {

/// Where one thread sleeps until a time, or until another thread unparks it. Times are nanoseconds of steady_clock.
///
/// unpark() sets a permit, and park_until() ends by clearing it. So an unpark() before the sleep is not lost, and
/// several of them end one sleep.
///
/// On Linux a futex word, on Windows an event. unpark() needs no lock, so it waits for no thread, and a fork() finds
/// none locked. On other systems a mutex and a condition variable, so unpark() waits for the mutex, and a fork() may
/// find it locked.
class Parking {
 public:
#if defined(HWT_PARKING_WINDOWS)
  /// Throws std::system_error if the system has no more handles.
  Parking();
#endif

  /// The one thread: sleeps until `time`, or until it has a permit. A permit that was set before ends the sleep at
  /// once. When it returns, no earlier permit is left.
  void park_until(std::int64_t time) noexcept;

  /// Any thread: ends the present sleep, or the next.
  void unpark() noexcept {
    set_permit();
    wake_sleeper();
  }

  // The two steps of unpark(), apart for the tests. A thread that takes both ends the sleep, even if another thread is
  // preempted between its two.

  void set_permit() noexcept;
  void wake_sleeper() noexcept;

 private:
#if defined(HWT_PARKING_LINUX)
  // 0, or 1 for a permit. Always exchanged, so that the sleeper's acquire pairs with the release of every thread that
  // has set the permit, not of the latest alone. So the sleeper sees everything that each of them did before.
  std::atomic<std::uint32_t> permit_{0};
#elif defined(HWT_PARKING_WINDOWS)
  struct Handle {
    explicit Handle(void* made) noexcept : object(made) {}
    ~Handle();
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    void* const object;
  };
  const Handle permit_;  // an event, which is set while there is a permit
  const Handle timer_;   // the one thread alone uses it
#else
  std::mutex mutex_;
  std::condition_variable changed_;
  bool permit_ = false;  // guarded by mutex_
#endif
};

}  // namespace hwt::internal
