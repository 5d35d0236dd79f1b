// SPDX-License-Identifier: Apache-2.0
// Wherever the system has nothing better: a mutex and a condition variable.

#include "hashed_wheel_timer/internal/platform/parking.h"

#if defined(HWT_PARKING_CONDITION)

#include <chrono>

#if defined(__APPLE__)
#include <pthread.h>

#include <ctime>
#endif

#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt::internal {

namespace {

#if defined(__APPLE__)
/// Waits for a length of time. libc++ would wait for a time of the wall clock, and timeouts would be late after that
/// was set back.
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::int64_t time) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t left = time - steady_now();
  if (left <= 0) return;
  const std::timespec length{static_cast<std::time_t>(left / kSecond), static_cast<long>(left % kSecond)};
  pthread_cond_timedwait_relative_np(changed.native_handle(), lock.mutex()->native_handle(), &length);
}
#else
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, std::int64_t time) noexcept {
  changed.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time)));
}
#endif

}  // namespace

void Parking::park_until(std::int64_t time) noexcept {
  std::unique_lock lock(mutex_);
  while (!permit_ && (time == kForever || steady_now() < time)) {
    if (time == kForever) {
      changed_.wait(lock);
    } else {
      wait_until(changed_, lock, time);
    }
  }
  permit_ = false;
}

void Parking::set_permit() noexcept {
  const std::lock_guard lock(mutex_);
  permit_ = true;
}

void Parking::wake_sleeper() noexcept { changed_.notify_one(); }

}  // namespace hwt::internal

#endif
