// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/batch_executor.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/origin.h"
#include "hashed_wheel_timer/timeout_id.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt {

namespace internal {
class Core;
struct Node;
}  // namespace internal

/// Owns the timeouts of one object, such as a connection, and ends them with it. So their callables may use the object.
///
///   class Connection {
///     void on_request(Request request) {
///       scope_.add([this, request] { fail(request); }, 250ms);
///     }
///     ...
///     hwt::TimeoutScope scope_{timer};   // the last member, so that it is destroyed first
///   };
///
/// Guarantees: after the destructor no task of the scope runs, except one that destroys the scope, and none will begin,
/// unless the program runs timeouts that Timer::stop() returned. The scope drops the ids of timeouts that have ended.
/// Threads: any thread may call any member, also inside a task of the scope. The destructor must not race other calls,
/// except those that tasks of the scope make.
/// Lifetime: the scope may outlive its timer, which ends the timeouts. Then every member but add() may be called,
/// and the destructor waits for tasks in an executor. But no call may race the timer's destructor.
/// Ownership: a callable may own its scope, but must not be the last owner during an add() or cancel_all() of it. These
/// may destroy callables, and use the scope afterwards.
/// Not for: timeouts that outlive the object.
/// Costs: add() takes a mutex twice, cancel() takes none. The first add() takes 64 bytes until the scope ends, and an
/// id takes up to 16 bytes. The scope keeps the memory of a peak until about as many timeouts were added again. Then it
/// keeps at most 64 bytes for each live timeout, or 8 KiB.
class HWT_API TimeoutScope {
 public:
  /// Makes a scope without timeouts.
  explicit TimeoutScope(Timer& timer) noexcept;
  /// Makes a scope without timeouts, whose tasks run on `executor` instead of the worker, or instead of
  /// Options::executor. A callable made by on() keeps the executor that on() was given. The scope keeps a copy of
  /// `executor`. Callables of up to 16 bytes need no allocation.
  TimeoutScope(Timer& timer, BatchExecutor executor) noexcept;
  /// Cancels all pending timeouts. Then, one after the other, takes back each task that waits in an executor, and waits
  /// for each task that runs on another thread. While it waits for one, the executor may start another. A task of the
  /// scope may destroy the scope: the destructor does not wait for that task. Do not hold a lock that a task takes. In
  /// a forked child that has neither turned nor started the timer, it cancels nothing, waits for nothing and releases
  /// nothing.
  ~TimeoutScope();
  TimeoutScope(const TimeoutScope&) = delete;
  TimeoutScope& operator=(const TimeoutScope&) = delete;

  /// Runs `callable` once, after a delay or at a deadline, unless the scope ends before. Returns its id, for cancel().
  /// Amortised O(1), but a call that must make room for the id looks up every id under the lock. Throws what
  /// Timer::add() throws, and IllegalState if a task calls it while the destructor waits for that task.
  template <class F>
    requires detail::TimeoutCallable<F>
  TimeoutId add(F&& callable, When when, Terms terms = {{}, __builtin_FILE(), __builtin_LINE()}) {
    if constexpr (!detail::HasExecutor<std::decay_t<F>>) {
      // Leaves a null callable as it is, so that the timer refuses it.
      if (executor_ && !detail::is_null_callable(callable))
        return add_here(hwt::on(*executor_, std::forward<F>(callable)), when, terms);
    }
    return add_here(std::forward<F>(callable), when, terms);
  }

  /// Cancels the timeout of this id on the timer, also one that is not of this scope, and returns what Timer::cancel()
  /// returns. Waits for no task. Before the first add() the timer must exist.
  CancelResult cancel(TimeoutId id) noexcept;

  /// Cancels all timeouts and returns their number. Does not wait for tasks that run now, and takes none back from an
  /// executor. The scope can be used afterwards.
  std::size_t cancel_all() noexcept;

  /// Returns the number of timeouts that are pending, whose task runs or waits in an executor, or whose callable is
  /// being destroyed. Looks up each timeout under the lock, so it is O(n).
  std::size_t size() const noexcept;

 private:
  /// A call of add() in progress. The destructor of the scope waits until there is none.
  class Adding {
   public:
    explicit Adding(TimeoutScope& scope) : scope_(scope) { scope.begin_adding(); }
    ~Adding() { scope_.finish_adding(id_); }
    Adding(const Adding&) = delete;
    Adding& operator=(const Adding&) = delete;

    TimeoutId keep(TimeoutId id) noexcept { return id_ = id; }

   private:
    TimeoutScope& scope_;
    TimeoutId id_;
  };

  /// Adds a callable. Takes a reference, so that its caller destroys a refused callable, after `adding`. Otherwise, if
  /// that callable ends the scope, the destructor would wait for `adding` for ever.
  template <class F>
  TimeoutId add_here(F&& callable, When when, Terms terms) {
    Adding adding(*this);
    return adding.keep(timer_.add(std::forward<F>(callable), when, terms));
  }

  static constexpr std::size_t kAlwaysKept = 1024;  // ids: 8 KiB

  void begin_adding();
  void finish_adding(TimeoutId id) noexcept;
  void keep_core();
  internal::Core* core() const noexcept;

  Timer& timer_;                           // may be gone; see core()
  std::optional<BatchExecutor> executor_;  // never changed
  const std::int64_t process_;             // that made the scope
  // A node of the timer that is no timeout, with a reference, so that the timer's core exists as long as the scope.
  // Null until the first add(), which stores it before it returns an id. release by that add(), acquire by a cancel()
  // without the lock: it sees the node.
  std::atomic<internal::Node*> keeper_{nullptr};
  mutable std::mutex mutex_;  // guards the members below; the scope runs no code of the user while it holds it
  // When the vector is full, the scope removes the ids of ended timeouts and makes room for twice the remaining ids. It
  // shrinks the vector to that room if there is room for more than eight times these ids and more than kAlwaysKept.
  std::vector<TimeoutId> ids_;
  std::size_t adding_ = 0;  // calls of add() in progress; the vector has room for their ids
  bool ending_ = false;
  std::condition_variable none_adding_;  // for the destructor
};

}  // namespace hwt
