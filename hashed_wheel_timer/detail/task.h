// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
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

/// The kind of a timeout's task, which decides when it is destroyed.
enum class TaskKind : std::uint8_t {
  Gone,      // destroyed
  Trivial,   // a callable that needs no destruction
  Callable,  // a callable, destroyed as soon as it can never run again
  Shared,    // a shared TimerTask, kept until the last handle goes
};

/// The reason why a task will not run. The timer notifies a task that waits, such as a coroutine or an asynchronous
/// operation, which otherwise would wait for ever. It does so at the moment that each reason below names, not when the
/// last handle goes. No task is notified after cancel() and cancel_and_wait(), because the caller knows, nor in a
/// forked child on a timer of its parent.
///
///   struct Waiter {                          // any callable that has this member
///     void operator()();                     // expired
///     void will_not_run(hwt::detail::NotRun why);
///   };
///   timer.new_timeout(Waiter{...}, delay);
///
/// Guarantees: once the timer has taken the callable, it calls exactly one of operator() and will_not_run(), once. It
/// calls neither after cancel() and cancel_and_wait(), nor in a forked child on a timer of its parent. No
/// lock is held. stop() does not use the timer once it has notified the first task, so that task may destroy the timer.
/// An exception goes to Options::on_task_error. A program that got the timeout from stop() may still run the task by
/// hand.
enum class NotRun : unsigned char {
  Stopped,  // notified by Timer::stop() or the destructor; if a task destroys its timer, after that task
  Refused,  // notified by new_timeout(), if it has already taken the callable, which it then destroys
  Dropped,  // notified by the thread that drops the executor's job of an expired task
};

template <class F>
concept ToldWhenNotRun = requires(F& callable, NotRun why) { callable.will_not_run(why); };

/// A callable to which on() has given an executor.
template <class F>
concept HasExecutor = requires(const F& callable) {
  { callable.executor() } noexcept -> std::same_as<const BatchExecutor&>;
};

// A vtable pointer and 32 bytes of captures, the size of libstdc++'s std::function.
inline constexpr std::size_t kTaskStorageSize = 40;
// The part of the storage that a cancelled task which is not destroyed keeps: see Node::next_in_overflow().
inline constexpr std::size_t kKeptStorageSize = kTaskStorageSize - sizeof(void*);
inline constexpr std::size_t kTaskStorageAlign = 16;

/// The way to build a task in the storage of its node. `build` constructs it from `source` and returns it, or null
/// without memory.
struct TaskSource {
  TimerTask* (*build)(void* storage, void* source);
  void* source;
  TaskKind kind;
  bool named = false;  // the timeout gets an id instead of a handle
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

  void hwt_will_not_run([[maybe_unused]] NotRun why) override {
    if constexpr (ToldWhenNotRun<F>) callable_.will_not_run(why);
  }

  const BatchExecutor* hwt_executor() const noexcept override {
    if constexpr (HasExecutor<F>) {
      return &callable_.executor();
    } else {
      return nullptr;
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
  void hwt_will_not_run(NotRun why) override { callable_->hwt_will_not_run(why); }
  const BatchExecutor* hwt_executor() const noexcept override { return callable_->hwt_executor(); }

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

/// Returns whether the callable is an empty std::function or a null function pointer.
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

/// Builds a CallableTask or a BoxedTask. F&& is the type that new_timeout() received.
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
TaskSource source_of(std::remove_reference_t<F>& callable, bool named = false) {
  return {&build_callable<F>, const_cast<void*>(static_cast<const volatile void*>(std::addressof(callable))),
          kind_of_callable<std::decay_t<F>>(), named};
}

/// Returns the source of a SharedTask. Building it moves out of `task`.
inline TaskSource source_of_shared(std::shared_ptr<TimerTask>& task) noexcept {
  const auto build = [](void* storage, void* source) -> TimerTask* {
    return ::new (storage) SharedTask(std::move(*static_cast<std::shared_ptr<TimerTask>*>(source)));
  };
  return {build, &task, TaskKind::Shared};
}

}  // namespace hwt::detail
