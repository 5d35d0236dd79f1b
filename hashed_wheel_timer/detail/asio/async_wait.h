#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/scheduled.h"
#include "hashed_wheel_timer/detail/when.h"
#include "hashed_wheel_timer/timeout.h"

// The parts of async_wait_for() and its kin that know no Asio; not for users.

namespace hwt {

class Timer;

namespace detail {

class AsyncWait;

/// A circular list; each of its links knows its neighbours.
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

/// The waits whose handlers belong to one execution context, and go with it. Any thread.
class HWT_API WaitRegistry {
 public:
  WaitRegistry() = default;
  WaitRegistry(const WaitRegistry&) = delete;
  WaitRegistry& operator=(const WaitRegistry&) = delete;

  /// Called when the context is destroyed, and only timers still use it. Claims all waits and destroys their handlers,
  /// uncalled. When it returns, no timer uses the context any more.
  void close() noexcept;

 private:
  friend class AsyncWait;
  friend class WaitGroup;

  std::mutex mutex_;
  // Guarded by it.
  WaitLink waits_;   // waits that are found by others than their timer and their WaitGroup
  WaitLink groups_;  // the contents of each group belong to the thread that uses it
  // The number of waits that have left waits_ and are about to complete. Raised under the lock. release when one has
  // completed; acquire by close(), before the context is destroyed.
  std::atomic<int> completing_{0};
};

/// A timeout that an asynchronous operation waits for. It ends once: by complete(), or by abandon(). It has no
/// reference count: exactly one thread claims it and ends it. The protocol is in async_wait.cpp.
class HWT_API AsyncWait {
 public:
  AsyncWait(const AsyncWait&) = delete;
  AsyncWait& operator=(const AsyncWait&) = delete;

  /// Begins it, once. It may end at any time from then on, on any thread, even before this returns. A refusal of the
  /// timer completes it. Throws for errors of the caller, after it has abandoned the wait. Returns the handle for
  /// discard(), or null if it was refused.
  Timeout start(WaitRegistry& registry, Timer& timer, When when);

  /// For a cancellation slot: completes it as Aborted, unless it has ended. Not concurrent with a call of the handler,
  /// and only for a wait in a registry.
  void cancel();
  /// Abandons it, unless it has ended. Any thread.
  static void discard(const Timeout& wait) noexcept;

 protected:
  static constexpr std::size_t kRoom = 6 * sizeof(void*);  // an operation of Asio has so many

  AsyncWait() = default;
  /// If it was cancelled for a next wait that has not begun by now, takes the timeout out of the timer.
  ~AsyncWait() {
    if (idle_) retire(idle_);
  }

  // Each of the next two destroys this wait.

  /// Posts the completion. `end`: Ok when it expired, Stopped when it was cancelled or the timer ended, else why it was
  /// refused.
  virtual void complete(Result end) = 0;
  /// Destroys the handler.
  virtual void abandon() noexcept = 0;

  /// From complete() on, if no thread calls cancel(): kRoom bytes, aligned as a pointer.
  std::byte* room() noexcept { return room_; }

 private:
  friend class WaitGroup;
  friend class WaitRegistry;
  class Task;
  struct Source;
  /// Used until the wait ends; by cancel() also later.
  struct Pending : WaitLink {
    // The registry that lists the wait; or null, also once the wait has left it to complete. Written by the thread that
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
  void leave(int completing = 0) noexcept;
  void finish(Result end);

  Timeout idle_;  // its own, if it was cancelled for a next one
  union {
    Pending pending_{};
    alignas(void*) std::byte room_[kRoom];
  };
};

/// Waits of one context on one timer that are cancelled together. Used by one thread at a time.
class HWT_API WaitGroup : private WaitLink {
 public:
  WaitGroup(WaitRegistry& registry, Timer& timer);
  /// Completes all of them, as cancel(). Then waits for other threads that are completing some, or are still in
  /// start().
  ~WaitGroup();
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  Timer& timer() const noexcept { return timer_; }

  /// Begins one of them: see AsyncWait::start(). `stoppable`: it has a cancellation slot.
  void start(AsyncWait& wait, std::chrono::steady_clock::time_point deadline, bool stoppable);

  /// Returns whether all have ended. Forgets those that have.
  bool empty() noexcept {
    forget_ended();
    return waits_.empty();
  }
  /// Completes up to `most` of them as Aborted, the oldest first. Returns how many.
  std::size_t cancel(std::size_t most);
  /// Completes all of them, before the next one is started. If there is only one, its timeout stays in the timer for
  /// the next one. If none is started before the completion is destroyed, that takes the timeout out.
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
