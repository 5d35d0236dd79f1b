#pragma once

// clang-format off: first, because below C++20 export.h names the mistake, before <coroutine> reports its errors
#include "hashed_wheel_timer/detail/export.h"
// clang-format on

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <optional>
#include <stop_token>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

/// Why a sleep ended.
enum class Wake : std::uint8_t {
  Expired,  // the deadline has come
  Stopped,  // a stop was requested, the timer was stopped or destroyed, or the executor dropped the job
};

class Sleep;

/// Suspends a coroutine for `delay`.
///
///   Task poll(hwt::Timer& timer, std::stop_token stop) {
///     for (;;) {
///       const hwt::Wake wake = co_await hwt::sleep_for(timer, 1s, stop);
///       if (wake == hwt::Wake::Stopped) co_return;
///       look();
///     }
///   }
///
/// The coroutine is resumed by exactly one of these:
/// - the deadline: where the timer runs tasks;
/// - a stop request: inside request_stop(), on its thread;
/// - Timer::stop() or the timer's destructor: on its thread, before it returns, or after the task in which it is
/// called. The coroutine must not use the timer from then on;
/// - an executor that drops the job: on the thread that drops it.
/// The coroutine is not suspended if a stop was requested before (Stopped), or if the timer was stopped (Stopped). A
/// delay of zero or less does not suspend it either, and gives Expired, also on a stopped timer.
/// Throws std::invalid_argument for a NaN. co_await throws what Timer::new_timeout() throws, except the IllegalState of
/// a stopped timer. An exception that leaves the resumed coroutine goes to Options::on_task_error; inside
/// request_stop() it ends the program.
/// Not for: a loop that ignores Stopped, which spins.
[[nodiscard]] HWT_API Sleep sleep_for(Timer& timer, Delay delay, std::stop_token stop = {});

/// Suspends a coroutine until `deadline`, a time of the timer's own clock. Returns Expired at once if it has passed.
/// See sleep_for().
[[nodiscard]] HWT_API Sleep sleep_until(Timer& timer, std::chrono::steady_clock::time_point deadline,
                                        std::stop_token stop = {});

/// The result of sleep_for() and sleep_until(), for co_await in a coroutine of any kind but asio::awaitable, which
/// awaits only operations of Asio. A copy is another sleep of the same length. An object may be awaited several times,
/// one after the other.
///
/// Guarantees: a sleeping coroutine is resumed exactly once; see sleep_for(). A sleep allocates nothing beyond the
/// timeout.
/// Threads: only the coroutine itself uses it. A sleeping coroutine may be destroyed if nothing can resume it at that
/// moment. That holds on the thread that turns a ManualTimer, on the timer's worker if that runs its tasks, and after
/// the timer was stopped. But it holds only if no other thread can request the stop meanwhile. Otherwise request the
/// stop and join. After the coroutine was destroyed, a job that still waits in an executor does nothing.
class HWT_API Sleep {
 public:
  /// Makes another sleep of the same length, which has not begun.
  Sleep(const Sleep& other) noexcept;
  Sleep& operator=(const Sleep&) = delete;
  ~Sleep();

  // For the compiler.

  /// Returns whether the sleep has ended already, or cannot begin.
  bool await_ready();
  /// Begins the sleep. Throws what Timer::new_timeout() throws; a stopped timer only ends the sleep.
  bool await_suspend(std::coroutine_handle<> sleeper);
  /// Returns why the sleep has ended.
  Wake await_resume() const noexcept { return wake_; }

 private:
  friend Sleep sleep_for(Timer& timer, Delay delay, std::stop_token stop);
  friend Sleep sleep_until(Timer& timer, std::chrono::steady_clock::time_point deadline, std::stop_token stop);

  class Waker;
  struct OnStopRequest {
    Sleep* sleep;
    void operator()() const noexcept { sleep->stop_requested(); }
  };
  Sleep(Timer& timer, detail::When when, std::stop_token stop) noexcept;

  static TimerTask* build_waker(void* storage, void* sleep);
  Timeout handle() const noexcept;
  void stop_requested() noexcept;
  void end(Wake why) noexcept;

  Timer& timer_;
  const detail::When when_;
  const std::stop_token stop_;

  // Used while the coroutine sleeps. The protocol in coroutine.cpp states which thread owns these.
  std::coroutine_handle<> sleeper_;
  Waker* waker_ = nullptr;  // in the timeout's node; counts as no handle
  std::optional<std::stop_callback<OnStopRequest>> on_stop_;
  Wake wake_ = Wake::Expired;
};

}  // namespace hwt
