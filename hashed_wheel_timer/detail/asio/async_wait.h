// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <vector>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/scheduled.h"
#include "hashed_wheel_timer/timeout.h"
#include "hashed_wheel_timer/when.h"

// The parts of async_wait(), which is in wait.h, of WheelTimer and of cancel_after() that do not depend on Asio. Not
// for users.

namespace hwt {

class Timer;

namespace detail {

class AsyncWait;

/// A link of a circular intrusive list. The list itself is a link too.
struct WaitLink {
  WaitLink() = default;
  WaitLink(const WaitLink&) = delete;
  WaitLink& operator=(const WaitLink&) = delete;

  bool linked() const noexcept { return next != this; }
  void insert(WaitLink& link) noexcept {
    link.next = this;
    link.previous = previous;
    previous->next = &link;
    previous = &link;
  }
  void unlink() noexcept {
    previous->next = next;
    next->previous = previous;
    previous = next = this;
  }

  WaitLink* previous = this;
  WaitLink* next = this;
};

/// The waits whose handlers belong to one execution context, and are destroyed with it. Any thread may use it.
class HWT_API WaitRegistry {
 public:
  WaitRegistry() = default;
  WaitRegistry(const WaitRegistry&) = delete;
  WaitRegistry& operator=(const WaitRegistry&) = delete;

  /// Called when the context is destroyed, and only timers and discard() still use it. Claims all waits and destroys
  /// their handlers, uncalled. When it returns, neither uses the context any more.
  void close() noexcept;

 private:
  friend class AsyncWait;
  friend class WaitGroup;

  std::mutex mutex_;
  // Guarded by mutex_.
  WaitLink waits_;   // waits without a WaitGroup, and those with a cancellation slot
  WaitLink groups_;  // mutex_ does not guard WaitGroup::waits_: one thread at a time uses a group
  // The number of waits that have left waits_ and are about to end: to complete, or to be abandoned. Raised under the
  // lock. release when one has ended; acquire by close(), before the context is destroyed.
  std::atomic<int> ending_{0};
};

/// A timeout that an asynchronous operation waits for. WaitOperation derives from it and has the handler. It ends once:
/// by complete(), or by abandon(). It has no reference count: exactly one thread claims it and ends it. The states and
/// the protocol are in async_wait.cpp.
class HWT_API AsyncWait {
 public:
  AsyncWait(const AsyncWait&) = delete;
  AsyncWait& operator=(const AsyncWait&) = delete;

  /// Begins the wait. Called once. The wait may end on any thread, even before this call returns. If the timer refuses
  /// the timeout, completes the wait. Returns the handle for discard(), or null after a refusal. Throws what complete()
  /// throws. Passes on an exception of a thread_factory, except std::bad_alloc, std::system_error and IllegalState.
  /// After an exception the handler was destroyed. Precondition: `when` is no NaN.
  Timeout start(WaitRegistry& registry, Timer& timer, When when);

  /// Completes the wait as Stopped, unless it has ended. For a cancellation slot. Must not race a call of the handler.
  /// Does nothing for a wait that is in no registry.
  void cancel();
  /// Abandons the wait of this handle, unless it has ended. Any thread.
  static void discard(const Timeout& wait) noexcept;

 protected:
  static constexpr std::size_t kRoom = 6 * sizeof(void*);  // an operation of Asio needs this

  AsyncWait() = default;
  /// If the wait was cancelled for a next wait that has not begun yet, takes its idle timeout out of the timer.
  virtual ~AsyncWait() {
    if (idle_) retire(idle_);
  }

  // complete() and abandon() destroy this object.

  /// Posts the completion. `end`: Ok if the wait expired; Stopped if it was cancelled, the timer ended, or the timer's
  /// executor dropped the task; otherwise why the timer refused it. Throws std::bad_alloc without memory to post; then
  /// the handler was destroyed.
  virtual void complete(Result end) = 0;
  /// Destroys the handler.
  virtual void abandon() noexcept = 0;

  /// Returns kRoom bytes, aligned as a pointer. They share memory with pending_, which cancel() reads. So they may be
  /// used from complete() on, if no thread calls cancel().
  std::byte* room() noexcept { return room_; }

 private:
  friend class WaitGroup;
  friend class WaitRegistry;
  class Task;
  struct Source;
  /// Members that the wait needs until it ends. Only cancel() reads them later.
  struct Pending : WaitLink {
    // The registry that lists the wait; null if none does, as when the wait is about to end. Written by the thread that
    // starts or ends the wait. cancel() may read it later, when the registry is gone. relaxed: nothing is handed over.
    std::atomic<WaitRegistry*> registry{nullptr};
    Task* task = nullptr;  // in the timeout's node
  };

  /// `held`: a null handle, or nullptr. It becomes a handle of the timeout, without a reference, before the timeout is
  /// published.
  static TimerTask* build_task(void* storage, void* source);
  static Scheduled schedule(AsyncWait& wait, Timer& timer, When when, Timeout* held);
  template <class Schedule>
  Timeout start_by(Schedule schedule);
  static void retire(const Timeout& idle) noexcept;
  void enter(WaitRegistry& registry);
  template <class End>
  void leave(End end);
  void finish(Result end);

  Timeout idle_;  // the timeout of this wait, if it was left idle for the next wait
  union {
    Pending pending_{};
    alignas(void*) std::byte room_[kRoom];
  };
};

/// The waits of one WheelTimer, which are cancelled together. One thread at a time uses it. Meanwhile other threads may
/// end its waits, and a later call of the group forgets those. WaitRegistry::close() empties the group.
class HWT_API WaitGroup : private WaitLink {
 public:
  WaitGroup(WaitRegistry& registry, Timer& timer);
  /// Takes over the waits of `other`, which can still be used. No wait refers to its group.
  WaitGroup(WaitGroup&& other) noexcept;
  /// Ends its waits as the destructor does. Then takes over the waits of `other`, its timer and its registry.
  WaitGroup& operator=(WaitGroup&& other) noexcept;
  /// Cancels all waits. Then waits for other threads that are completing a wait or are still in start().
  ~WaitGroup();

  Timer& timer() const noexcept { return timer_; }

  /// Begins a wait: see AsyncWait::start(). `stoppable`: the wait has a cancellation slot.
  void start(AsyncWait& wait, std::chrono::steady_clock::time_point deadline, bool stoppable);

  /// Returns whether all waits have ended and no idle timeout is left. Forgets the ended waits.
  bool empty() noexcept {
    forget_ended();
    return waits_.empty();
  }
  /// Completes up to `most` waits as Stopped, the oldest first. Returns how many.
  std::size_t cancel(std::size_t most);
  /// Completes all waits as Stopped, and returns how many. Called when a next wait is likely. If there is only one
  /// wait, and it has no cancellation slot, its timeout stays in the timer, idle, for the next wait. If none begins
  /// before the completion is destroyed, its destructor takes the timeout out.
  std::size_t cancel_for_next();
  /// Prefetches the memory that cancel_for_next() will write.
  void prefetch() const noexcept;

 private:
  friend class WaitRegistry;

  void forget_ended() noexcept;

  WaitRegistry& registry_;
  Timer& timer_;
  std::vector<Timeout> waits_;  // the oldest first; some may have ended, one may be idle
};

}  // namespace detail
}  // namespace hwt
