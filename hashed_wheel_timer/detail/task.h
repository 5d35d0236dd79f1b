#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/timeout.h"

// How a callable or a shared TimerTask becomes the task of a timeout.

namespace hwt::detail {

/// What the task of a timeout is, and when it is destroyed.
enum class TaskKind : std::uint8_t {
  Gone,      // destroyed
  Trivial,   // a callable that needs no destruction
  Callable,  // a callable, destroyed as soon as it can never run again
  Shared,    // a shared TimerTask, kept until the last handle goes
};

/// Why a task will not run, for what waits for it and must not wait for ever: a coroutine, an asynchronous operation.
/// It is told by its timer, and before the call returns which decides that; not when the last handle goes. The ways in
/// which nobody is told are those in which someone knows: cancel(), cancel_and_wait(), and a forked child.
///
///   struct Waiter {                          // any callable that has this member
///     void operator()();                     // expired
///     void will_not_run(hwt::detail::NotRun why);
///   };
///   timer.new_timeout(Waiter{...}, delay);
///
/// Guarantees: of operator() and will_not_run() one is called, and once, unless the timeout is cancelled. No lock is
/// held, and stop() does not touch the timer after it has told the first, so what is told may destroy it. What it
/// throws goes to Options::on_task_error. Whoever has got it from stop() may still run it by hand, which it has to
/// expect.
enum class NotRun : unsigned char {
  Stopped,  // by Timer::stop() or the timer's destructor, in its thread; if that runs inside a task, after that task
  Refused,  // by new_timeout(), in its thread, when it has taken the callable already, which it then destroys. One that
            // it has not taken is as it was, and is not told
  Dropped,  // it has expired, and the executor has dropped its job: in the thread that drops it
};

template <class F>
concept ToldWhenNotRun = requires(F& callable, NotRun why) { callable.will_not_run(why); };

inline constexpr std::size_t kTaskStorageSize = 32;  // a vtable pointer and 24 bytes of captures
inline constexpr std::size_t kTaskStorageAlign = 16;

/// How Timer::schedule builds a task in the storage of its node: `build` constructs it from `source` and returns it, or
/// null when there is no memory for it.
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

  void will_not_run([[maybe_unused]] NotRun why) override {
    if constexpr (ToldWhenNotRun<F>) callable_.will_not_run(why);
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
  void will_not_run(NotRun why) override { callable_->will_not_run(why); }

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
concept TimeoutCallable = std::is_invocable_v<std::decay_t<F>&, Timeout&> || std::is_invocable_v<std::decay_t<F>&>;

template <class F>
inline constexpr bool kFitsNode =
    sizeof(CallableTask<F>) <= kTaskStorageSize && alignof(CallableTask<F>) <= kTaskStorageAlign;

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

template <class F>
TaskSource source_of(std::remove_reference_t<F>& callable) {
  return {&build_callable<F>, const_cast<void*>(static_cast<const volatile void*>(std::addressof(callable))),
          kind_of_callable<std::decay_t<F>>()};
}

/// Building it moves out of `task`.
inline TaskSource source_of_shared(std::shared_ptr<TimerTask>& task) noexcept {
  const auto build = [](void* storage, void* source) -> TimerTask* {
    return ::new (storage) SharedTask(std::move(*static_cast<std::shared_ptr<TimerTask>*>(source)));
  };
  return {build, &task, TaskKind::Shared};
}

}  // namespace hwt::detail
