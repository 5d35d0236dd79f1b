// SPDX-License-Identifier: Apache-2.0
#pragma once

// clang-format off: first, because below C++20 export.h names the mistake, before <coroutine> reports its errors
#include "hashed_wheel_timer/detail/export.h"
// clang-format on

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
/// - Timer::stop() or the timer's destructor: on the calling thread, before the call returns. If a task destroys its
/// timer, after that task;
/// - an executor that drops the job: on the thread that drops it.
/// A stopped timer may still be used, a destroyed one may not, and Stopped does not tell the two apart. So after
/// Stopped, use the timer only if the program knows that it still exists.
/// In three cases the coroutine is not suspended. If a stop was requested before, the result is Stopped. Otherwise a
/// delay of zero or less gives Expired, also on a stopped timer. Otherwise a stopped timer gives Stopped.
/// Throws std::invalid_argument for a NaN. co_await throws what Timer::new_timeout() throws, except the IllegalState of
/// a stopped timer. An exception that leaves the resumed coroutine goes to Options::on_task_error; inside
/// request_stop() it ends the program.
/// Not for: a loop that ignores Stopped, which spins.
[[nodiscard]] HWT_API Sleep sleep_for(Timer& timer, Delay delay, std::stop_token stop = {});

/// Suspends a coroutine until `deadline`, a time of the timer's own clock. A deadline that has passed counts as a delay
/// of zero. See sleep_for().
[[nodiscard]] HWT_API Sleep sleep_until(Timer& timer, detail::Point deadline, std::stop_token stop = {});

/// The result of sleep_for() and sleep_until(), for co_await in a coroutine of any kind but asio::awaitable, which
/// awaits only operations of Asio. A copy is another sleep of the same length. An object may be awaited several times,
/// one after the other.
///
/// Guarantees: a sleeping coroutine is resumed exactly once; see sleep_for(). A sleep allocates nothing beyond the
/// timeout.
/// Threads: only the coroutine itself uses it. A sleeping coroutine may be destroyed only while no other thread can
/// resume it, and so never while another thread may request its stop. Apart from stop requests:
/// - without Options::executor, destroy it inside a task on the thread that turns the timer: the worker, or the caller
/// of advance() or run_due(). A stop() on another thread waits for that task. You may also destroy it in a coroutine
/// that stop() or the timer's destructor has resumed, or on the only thread that drives and stops a timer;
/// - with an executor, destroy it only while no other thread runs or drops jobs of this timer, or stops the timer. The
/// executor must refuse no job meanwhile, because the worker would run its task. A stop() does not wait for the
/// executor.
/// Otherwise request the stop, and wait until the coroutine has ended. After the coroutine was destroyed, a job that
/// still waits in an executor does nothing.
class HWT_API Sleep {
 public:
  /// Makes another sleep of the same length, which has not begun.
  Sleep(const Sleep& other) noexcept;
  Sleep& operator=(const Sleep&) = delete;
  ~Sleep();

  // For the compiler.

  /// Returns whether the coroutine goes on at once: a stop was requested, or the deadline has passed.
  bool await_ready();
  /// Begins the sleep. Returns false if the coroutine goes on at once: the timer was stopped, or a stop was requested
  /// during this call. Throws what Timer::new_timeout() throws, except the IllegalState of a stopped timer.
  bool await_suspend(std::coroutine_handle<> sleeper);
  /// Returns why the sleep has ended.
  Wake await_resume() const noexcept { return wake_; }

 private:
  friend Sleep sleep_for(Timer& timer, Delay delay, std::stop_token stop);
  friend Sleep sleep_until(Timer& timer, detail::Point deadline, std::stop_token stop);

  class Waker;
  struct OnStopRequest {
    Sleep* sleep;
    void operator()() const noexcept { sleep->stop_requested(); }
  };
  Sleep(Timer& timer, When when, std::stop_token stop, bool until) noexcept;

  static TimerTask* build_waker(void* storage, void* sleep);
  Timeout handle() const noexcept;
  void stop_requested() noexcept;
  void end(Wake why) noexcept;

  Timer& timer_;
  const When when_;
  const std::stop_token stop_;

  // Used while the coroutine sleeps. The protocol in coroutine.cpp states which thread owns these.
  std::coroutine_handle<> sleeper_;
  Waker* waker_ = nullptr;  // in the timeout's node; counts as no handle
  std::optional<std::stop_callback<OnStopRequest>> on_stop_;
  Wake wake_ = Wake::Expired;
  const bool until_;  // made by sleep_until()
};

}  // namespace hwt
