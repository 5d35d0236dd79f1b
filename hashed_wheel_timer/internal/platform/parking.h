#pragma once

#include <atomic>
#include <cstdint>

#if !defined(__linux__)
#include <condition_variable>
#include <mutex>
#endif

namespace hwt::internal {

/// Where one thread sleeps until a time, or until another thread calls it. Times are nanoseconds of steady_clock.
///
/// On Linux a futex word: who calls needs no lock, so it waits for nobody, and a fork() finds none locked. Elsewhere a
/// mutex and a condition variable, which need both.
class Parking {
 public:
  /// The one thread. A call that has come before ends it at once; when it returns, no earlier call is left.
  void park_until(std::int64_t time) noexcept;

  /// Any thread: ends the present sleep, or the next.
  void call() noexcept {
    leave_call();
    wake();
  }

  // The two steps of call(). Whoever does both may rely on it that the sleep ends, whatever other callers are at.

  void leave_call() noexcept;
  void wake() noexcept;

 private:
#if defined(__linux__)
  // 0, or 1 for a call. Always exchanged, so that the sleeper's acquire gets the release of every caller before, and
  // not of the latest alone: it sees what each of them had done.
  std::atomic<std::uint32_t> called_{0};
#else
  std::mutex mutex_;
  std::condition_variable changed_;
  bool called_ = false;  // guarded by mutex_
#endif
};

}  // namespace hwt::internal
