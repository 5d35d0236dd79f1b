// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>

#include "hashed_wheel_timer/c.h"
#include "hashed_wheel_timer/detail/driven_timer.h"
#include "hashed_wheel_timer/detail/scheduled.h"
#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/detail/used_timer.h"
#include "hashed_wheel_timer/manual_timer.h"
#include "hashed_wheel_timer/threaded_timer.h"

namespace hwt::internal {

/// Ends the program with a line on stderr that tells the exception being handled.
[[noreturn]] void end_program() noexcept;

/// Calls a function of the program. If it throws a C++ exception, ends the program, because the caller may be C.
template <class... Arguments>
void call(void (*function)(Arguments...), Arguments... arguments) noexcept {
  try {
    function(arguments...);
  } catch (...) {
    end_program();
  }
}

/// The task of each timeout of the C interface. hwt_stop() takes its members out again.
class CTask final : public TimerTask {
 public:
  struct Source {
    hwt_callback callback;
    void* argument;
  };

  explicit CTask(const Source& source) noexcept : source_(source) {}
  void run(Timeout&) override { call(source_.callback, source_.argument); }
  const Source& source() const noexcept { return source_; }

  /// Builds the task: a function for detail::TaskSource.
  static TimerTask* build(void* storage, void* source) { return ::new (storage) CTask(*static_cast<Source*>(source)); }

 private:
  Source source_;
};
static_assert(sizeof(CTask) <= detail::kTaskStorageSize);

/// The timer of an event loop, which counts the tasks that ran.
class CLoopTimer final : public detail::DrivenTimer {
 public:
  explicit CLoopTimer(const Options& options) : DrivenTimer("LoopTimer", options) {}
  ~CLoopTimer() override { end(); }

  std::optional<std::chrono::steady_clock::time_point> run_due(std::size_t max_tasks, std::size_t& ran) {
    return driver().run_due(max_tasks, &ran);
  }
  using DrivenTimer::on_earlier;
};

}  // namespace hwt::internal

struct hwt_timer {
  std::unique_ptr<hwt::Timer> timer;
  // One of them is the timer. The others are null.
  hwt::ThreadedTimer* threaded = nullptr;
  hwt::internal::CLoopTimer* loop = nullptr;
  hwt::ManualTimer* manual = nullptr;
  std::optional<hwt::detail::UsedTimer> used;  // always has a value
  // c_process of the latest process that begin_use() has let use the timer. relaxed: only fork() changes c_process, and
  // the child has a copy of everything that the forking thread did.
  mutable std::atomic<std::uint64_t> process{0};
};

namespace hwt::internal {

/// Differs in a forked child. Costs less to read than getpid(), which is a system call.
extern std::atomic<std::uint64_t> c_process;

/// Returns the options that hwt_options_init() sets.
hwt_options default_options() noexcept;

/// Returns whether a version of the library has had options of this size.
bool is_known_size(std::size_t size) noexcept;

/// Makes the timer. Throws std::invalid_argument that names the option, its value and the valid range, and what making
/// the timer throws.
std::unique_ptr<hwt_timer> make_timer(const hwt_options& options);

/// A call of a function of the C interface. At its end, errno is that of its error. If it has not failed, errno is as
/// it was before, although system calls, malloc() and callbacks may have changed it. The text of hwt_last_error()
/// belongs to the thread.
class CCall {
 public:
  /// `function` is the name of the function. It must be a literal, because its address is kept.
  explicit CCall(const char* function) noexcept : function_(function) {}
  ~CCall() { errno = errno_; }
  CCall(const CCall&) = delete;
  CCall& operator=(const CCall&) = delete;

  /// Sets the text to the function and `text`. Returns `error`.
  int fail(int error, const char* text) noexcept;

  /// Fails for the exception that is being handled. `illegal` is the errno for an IllegalState. Returns the error.
  int fail_by_exception(int illegal) noexcept;

  /// Fails for a timeout that was refused. last_error() makes the text, because a server at max_pending refuses many
  /// and reads few.
  void fail_by_refusal(detail::Scheduled refused) noexcept;

 private:
  const char* const function_;
  int errno_ = errno;
};

/// Called by check() for the first use of the timer in this process. Asks the timer, notes the process, and returns 0.
/// Returns an error if `timer` is null, or another process has started it.
int begin_use(const hwt_timer* timer, CCall& call) noexcept;

/// Returns 0, or an error for a timer that cannot be used in this process.
inline int check(const hwt_timer* timer, CCall& call) noexcept {
  if (timer != nullptr && timer->process.load(std::memory_order_relaxed) == c_process.load(std::memory_order_relaxed))
      [[likely]]
    return 0;
  return begin_use(timer, call);
}

/// See hwt_last_error().
const char* last_error() noexcept;

}  // namespace hwt::internal
