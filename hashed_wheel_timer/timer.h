#pragma once

// The interface that a framework programs against: a Timer runs a task once, after a delay, unless its Timeout is
// cancelled first. Made for request timeouts: scheduled for every request from any thread, and nearly all cancelled.
//
//   hwt::HashedWheelTimer timer{std::chrono::milliseconds(10)};
//   hwt::Timeout timeout = timer.new_timeout([id] { fail_request(id); }, 250ms);
//   ...
//   if (timeout.cancel()) deliver_answer(id);   // true: the task has not run and never will
//
// Guarantees: never early by the timer's clock; a task runs at most once; a timeout ends in exactly one of expired,
// cancelled, or returned by stop().
// Not for: intervals shorter than a tick, wall-clock alarms, or work that runs long on the worker thread.
//
// Everything here compiles with -fno-exceptions and -fno-rtti.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/export.h"
#include "hashed_wheel_timer/saturating_duration.h"

namespace hwt {

class Timer;
class TimerTask;

namespace internal {
struct Node;
}

/// Handle of one scheduled timeout: a reference, 8 bytes, null by default. Several threads may use different handles
/// of the same timeout at once; one handle object is like any value and needs outside locking when shared. Handles may
/// outlive the timer. Netty: Timeout.
class HWT_API Timeout {
 public:
  Timeout() noexcept = default;
  Timeout(const Timeout& other) noexcept;
  Timeout(Timeout&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Timeout& operator=(const Timeout& other) noexcept {
    Timeout copy(other);
    swap(copy);
    return *this;
  }
  Timeout& operator=(Timeout&& other) noexcept {
    Timeout(std::move(other)).swap(*this);
    return *this;
  }
  ~Timeout() {
    if (node_ != nullptr) release(node_);
  }

  /// True exactly once, and only if the task has not started and never will. False when it lost against expiry, another
  /// cancel or stop(), and on a null handle. A plain callable is destroyed in here. Any thread, tasks included.
  bool cancel() noexcept;

  /// Puts the deadline to `delay` from now. True: the task runs once, and not before the new deadline. False: it has
  /// started, was cancelled or returned by stop(), or the handle is null. Racing any of these, exactly one wins. Any
  /// thread, tasks included. Made for keep-alives: a later deadline costs no allocation and no queue; an earlier one
  /// counts from the next tick. Throws std::invalid_argument for a NaN delay; std::bad_alloc, for an earlier deadline
  /// only; after either nothing has changed.
  template <class Rep, class Period>
  bool reschedule(std::chrono::duration<Rep, Period> delay) {
    if (detail::is_nan(delay)) refuse_nan();
    return reschedule_in(detail::saturating_nanoseconds(delay));
  }

  /// Cancelled by cancel() or by stop(). False on a null handle.
  bool is_cancelled() const noexcept;

  /// Its task was claimed for execution: it runs, has run, or waits in the executor. False on a null handle.
  bool is_expired() const noexcept;

  /// When the task may start, by the timer's clock; time_point::max() when the delay was beyond its range.
  /// Precondition: not null.
  std::chrono::steady_clock::time_point deadline() const noexcept;

  /// The timer that made it, or null once that timer is gone, and on a null handle.
  Timer* timer() const noexcept;

  /// The task: the shared TimerTask itself, or a wrapper of the plain callable.
  /// Precondition: not null, and a plain callable has neither been cancelled by cancel() nor finished running (one that
  /// was returned by stop() is kept until its last handle goes, so `timeout.task().run(timeout)` runs it).
  TimerTask& task() const noexcept;

  explicit operator bool() const noexcept { return node_ != nullptr; }
  friend bool operator==(const Timeout& a, const Timeout& b) noexcept { return a.node_ == b.node_; }
  void swap(Timeout& other) noexcept { std::swap(node_, other.node_); }

 private:
  friend struct internal::Node;
  friend struct std::hash<Timeout>;
  explicit Timeout(internal::Node* adopted) noexcept : node_(adopted) {}
  static void release(internal::Node* node) noexcept;
  bool reschedule_in(std::chrono::nanoseconds delay);
  [[noreturn]] static void refuse_nan();

  internal::Node* node_ = nullptr;
};

/// Prints "Timeout(deadline: 1234567 ns later, cancelled)", with "ago", "now", "never", "expired" as it is, or
/// "Timeout(null)".
HWT_API std::ostream& operator<<(std::ostream& out, const Timeout& timeout);

/// What runs when a timeout expires; for code that comes from Netty. New code passes a callable instead.
class HWT_API TimerTask {
 public:
  TimerTask() = default;
  TimerTask(const TimerTask&) = default;
  TimerTask& operator=(const TimerTask&) = default;
  virtual ~TimerTask();

  /// Runs once, on the worker or where the executor puts it. An exception goes to Options::on_task_error.
  virtual void run(Timeout& timeout) = 0;

  /// Called once after a successful cancel(), on the worker, within a tick; for those that stop() cancels, before
  /// stop() returns. An exception goes to Options::on_task_error. Netty 4.2: TimerTask.cancelled.
  virtual void cancelled(Timeout& timeout);
};

namespace detail {

/// How Timer::schedule builds a task in the storage of its node: TaskSource::build constructs it from `source` and
/// returns it, or null when there is no memory for it.
enum class TaskKind : std::uint8_t {
  Gone,      // destroyed
  Trivial,   // a callable that needs no destruction
  Callable,  // a callable, destroyed as soon as it can never run again
  Shared,    // a shared TimerTask, kept until the last handle goes
};
inline constexpr std::size_t kTaskStorageSize = 32;  // a vtable pointer and 24 bytes of captures
inline constexpr std::size_t kTaskStorageAlign = 16;

struct TaskSource {
  TimerTask* (*build)(void* storage, void* source);
  void* source;
  TaskKind kind;
};

template <class F>
class CallableTask final : public TimerTask {
 public:
  template <class Source>
  CallableTask(std::in_place_t, Source&& source) : callable_(std::forward<Source>(source)) {}

  void run([[maybe_unused]] Timeout& timeout) override {
    if constexpr (std::is_invocable_v<F&, Timeout&>) {
      std::invoke(callable_, timeout);
    } else {
      std::invoke(callable_);
    }
  }

 private:
  F callable_;
};

/// A callable too large or too strictly aligned for the node.
template <class F>
class BoxedTask final : public TimerTask {
 public:
  explicit BoxedTask(CallableTask<F>* adopted) noexcept : callable_(adopted) {}
  void run(Timeout& timeout) override { callable_->run(timeout); }

 private:
  std::unique_ptr<CallableTask<F>> callable_;
};

class HWT_API SharedTask final : public TimerTask {
 public:
  explicit SharedTask(std::shared_ptr<TimerTask>&& task) noexcept : task_(std::move(task)) {}
  ~SharedTask() override;
  void run(Timeout& timeout) override;
  void cancelled(Timeout& timeout) override;
  TimerTask& task() const noexcept { return *task_; }

 private:
  std::shared_ptr<TimerTask> task_;
};

template <class F>
concept TimeoutCallable = std::is_invocable_v < std::decay_t<F>
&, Timeout& > || std::is_invocable_v<std::decay_t<F>&>;

template <class F>
inline constexpr bool kFitsNode = sizeof(CallableTask<F>) <= kTaskStorageSize &&
                                  alignof(CallableTask<F>) <= kTaskStorageAlign;

/// True for an empty std::function or a null function pointer.
template <class F>
bool is_null_callable([[maybe_unused]] const F& callable) {
  if constexpr (std::is_pointer_v<F> || std::is_member_pointer_v<F>) {
    return callable == nullptr;
  } else if constexpr (std::is_constructible_v<F, std::nullptr_t> &&
                       requires { static_cast<bool>(callable == nullptr); }) {
    return static_cast<bool>(callable == nullptr);
  } else {
    return false;
  }
}

template <class F>
constexpr TaskKind kind_of_callable() {
  return kFitsNode<F> && std::is_trivially_destructible_v<F> ? TaskKind::Trivial : TaskKind::Callable;
}

/// F&& is what new_timeout received; Callable its decayed type.
template <class F>
TimerTask* build_callable(void* storage, void* source) {
  using Callable = std::decay_t<F>;
  F&& callable = static_cast<F&&>(*static_cast<std::remove_reference_t<F>*>(source));
  if constexpr (kFitsNode<Callable>) {
    return ::new (storage) CallableTask<Callable>(std::in_place, std::forward<F>(callable));
  } else {
    auto* boxed = new (std::nothrow) CallableTask<Callable>(std::in_place, std::forward<F>(callable));
    return boxed == nullptr ? nullptr : ::new (storage) BoxedTask<Callable>(boxed);
  }
}

}  // namespace detail

/// What a framework holds. All members may be called from any thread, tasks included, except where they say otherwise.
/// Netty: Timer.
class HWT_API Timer {
 public:
  virtual ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Runs `callable`, f(Timeout&) or f(), once after `delay`. Any duration is good: a negative one is due now, one
  /// beyond the range of the clock is never. Starts the timer if need be.
  /// Throws IllegalState after stop(), RejectedExecution at max_pending_timeouts, std::invalid_argument for a null
  /// callable or a NaN delay, std::bad_alloc, std::system_error when the worker cannot be started, and what copying the
  /// callable throws; after any of them nothing is pending or counted that was not before. (While the callable is being
  /// copied, its place under max_pending_timeouts is taken.)
  template <class F, class Rep, class Period>
  requires detail::TimeoutCallable<F> Timeout new_timeout(F&& callable, std::chrono::duration<Rep, Period> delay) {
    return schedule_callable(std::forward<F>(callable), delay, OnRefusal::Throw);
  }

  /// The same for a shared task; null: std::invalid_argument.
  template <class Rep, class Period>
  Timeout new_timeout(std::shared_ptr<TimerTask> task, std::chrono::duration<Rep, Period> delay) {
    return schedule_shared(std::move(task), delay, OnRefusal::Throw);
  }

  /// As new_timeout, but every refusal, lack of memory and threads included, is a null handle instead of an exception:
  /// for code that is built without exceptions.
  template <class F, class Rep, class Period>
  requires detail::TimeoutCallable<F> Timeout try_new_timeout(F&& callable, std::chrono::duration<Rep, Period> delay)
  noexcept(std::is_nothrow_constructible_v<std::decay_t<F>, F>) {
    return schedule_callable(std::forward<F>(callable), delay, OnRefusal::ReturnNull);
  }
  template <class Rep, class Period>
  Timeout try_new_timeout(std::shared_ptr<TimerTask> task, std::chrono::duration<Rep, Period> delay) noexcept {
    return schedule_shared(std::move(task), delay, OnRefusal::ReturnNull);
  }

  /// Ends the timer for good: no further task starts on the worker or goes to the executor, and new_timeout() refuses.
  /// Waits for a task that is running on the worker, not for the executor. Returns what was still pending, cancelled;
  /// of several concurrent calls one gets it and the others an empty vector, none before the worker has finished.
  /// Again: empty. Throws IllegalState when called from inside a task on the worker, std::bad_alloc (call it again).
  virtual std::vector<Timeout> stop() = 0;

  /// Scheduled and neither cancelled, expired (a running task is not pending) nor returned by stop().
  virtual std::int64_t pending_timeouts() const noexcept = 0;

  /// The clock that deadlines are measured by.
  virtual std::chrono::steady_clock::time_point now() const noexcept = 0;

 protected:
  enum class OnRefusal : bool { Throw, ReturnNull };

  Timer() = default;

  /// The one point of entry for an implementation. `task.build` is called at most once. `delay` is not negative.
  virtual Timeout schedule(const detail::TaskSource& task, std::chrono::nanoseconds delay, OnRefusal on_refusal) = 0;

 private:
  static Timeout refuse_argument(const char* what, OnRefusal on_refusal);

  template <class F, class Rep, class Period>
  Timeout schedule_callable(F&& callable, std::chrono::duration<Rep, Period> delay, OnRefusal on_refusal) {
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
      return schedule_callable(&callable, delay, on_refusal);
    } else {
      if (detail::is_null_callable(callable)) return refuse_argument("task: null (expected: a callable)", on_refusal);
      if (detail::is_nan(delay)) return refuse_argument("delay: NaN (expected: a number)", on_refusal);
      const detail::TaskSource task{&detail::build_callable<F>,
                                    const_cast<void*>(static_cast<const volatile void*>(std::addressof(callable))),
                                    detail::kind_of_callable<std::decay_t<F>>()};
      return schedule(task, detail::saturating_nanoseconds(delay), on_refusal);
    }
  }

  template <class Rep, class Period>
  Timeout schedule_shared(std::shared_ptr<TimerTask> task, std::chrono::duration<Rep, Period> delay,
                          OnRefusal on_refusal) {
    if (detail::is_nan(delay)) return refuse_argument("delay: NaN (expected: a number)", on_refusal);
    return schedule_shared_task(std::move(task), detail::saturating_nanoseconds(delay), on_refusal);
  }
  Timeout schedule_shared_task(std::shared_ptr<TimerTask> task, std::chrono::nanoseconds delay, OnRefusal on_refusal);
};

}  // namespace hwt

template <>
struct std::hash<hwt::Timeout> {
  std::size_t operator()(const hwt::Timeout& timeout) const noexcept { return std::hash<const void*>()(timeout.node_); }
};
