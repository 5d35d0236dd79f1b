#pragma once

// clang-format off: first, since <coroutine> has errors of its own below C++20
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

/// Why a sleep has ended.
enum class Wake : std::uint8_t {
  Expired,  // the time is over
  Stopped,  // by the stop_token; or the timer had been stopped, or ended meanwhile; or the executor has dropped its job
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
/// It is resumed when the time is over: where the timer runs tasks. Or by a stop request: inside request_stop(), on its
/// thread. Or by Timer::stop() or the timer's destructor: on its thread, before it returns, or if that is called in a
/// task, after that task; do not touch the timer then. Or where an executor drops its job. With a stop that was
/// requested before, a stopped timer, or a delay of zero or less, it goes on at once; the latter is Expired, and does
/// not ask the timer.
/// Throws std::invalid_argument for a NaN; and out of co_await what Timer::new_timeout() throws, but for the
/// IllegalState of a stopped timer. What a coroutine throws out of its resumption goes to Options::on_task_error;
/// inside request_stop() it ends the program.
/// Not for: code that ignores Stopped in a loop, which spins.
[[nodiscard]] HWT_API Sleep sleep_for(Timer& timer, Delay delay, std::stop_token stop = {});

/// The same until a point of the timer's own clock. One that has passed: Expired at once.
[[nodiscard]] HWT_API Sleep sleep_until(Timer& timer, std::chrono::steady_clock::time_point deadline,
                                        std::stop_token stop = {});

/// What sleep_for() and sleep_until() return, for co_await in a coroutine of any kind. A copy is another sleep of the
/// same length; one object may be awaited again and again.
///
/// Guarantees: a coroutine that sleeps is resumed exactly once, and where and when those functions say; nothing
/// allocates memory beyond the timeout.
/// Threads: as the coroutine itself. It may be destroyed while it sleeps if nobody can resume it at that moment: on the
/// thread that turns a ManualTimer, on the timer's worker if that runs its tasks, or when the timer has been stopped;
/// otherwise request the stop and join. Then it is not touched again, also when its job waits in an executor.
class HWT_API Sleep {
 public:
  /// Another sleep of the same length, which has not begun.
  Sleep(const Sleep& other) noexcept;
  Sleep& operator=(const Sleep&) = delete;
  ~Sleep();

  // For the compiler.

  /// True: it has ended already, or cannot begin.
  bool await_ready();
  /// Throws what Timer::new_timeout() throws; but a timer that has been stopped only ends the sleep.
  bool await_suspend(std::coroutine_handle<> sleeper);
  /// Why it has ended.
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

  // While it sleeps. Whose all of it is, the protocol in coroutine.cpp says.
  std::coroutine_handle<> sleeper_;
  Waker* waker_ = nullptr;  // in the timeout's node; counts as no handle
  std::optional<std::stop_callback<OnStopRequest>> on_stop_;
  Wake wake_ = Wake::Expired;
};

}  // namespace hwt
