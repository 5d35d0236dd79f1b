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

/// Where one thread sleeps until a time, or until another thread calls it. Times are nanoseconds of steady_clock.
///
/// On Linux a futex word, on Windows an event. A caller needs no lock, so it waits for no thread, and a fork() finds
/// none locked. Elsewhere a mutex and a condition variable, which need both.
class Parking {
 public:
#if defined(HWT_PARKING_WINDOWS)
  /// Throws std::system_error if the system has no more handles.
  Parking();
#endif

  /// The one thread. A call that has come before ends it at once; when it returns, no earlier call is left.
  void park_until(std::int64_t time) noexcept;

  /// Any thread: ends the present sleep, or the next.
  void call() noexcept {
    leave_call();
    wake();
  }

  // The two steps of call(). After both the sleep ends, whatever other callers do.

  void leave_call() noexcept;
  void wake() noexcept;

 private:
#if defined(HWT_PARKING_LINUX)
  // 0, or 1 for a call. Always exchanged, so that the sleeper's acquire gets the release of every caller before, and
  // not of the latest alone: it sees what each of them had done.
  std::atomic<std::uint32_t> called_{0};
#elif defined(HWT_PARKING_WINDOWS)
  struct Handle {
    explicit Handle(void* made) noexcept : object(made) {}
    ~Handle();
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    void* const object;
  };
  const Handle called_;  // set: a call is left
  const Handle timer_;   // the one thread alone uses it
#else
  std::mutex mutex_;
  std::condition_variable changed_;
  bool called_ = false;  // guarded by mutex_
#endif
};

}  // namespace hwt::internal
