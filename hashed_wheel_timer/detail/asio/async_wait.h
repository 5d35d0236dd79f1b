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

  /// The context goes, and nobody uses it but its timers: takes all waits from those, and destroys their handlers,
  /// uncalled. When it returns, no timer is at the context any more.
  void close() noexcept;

 private:
  friend class AsyncWait;
  friend class WaitGroup;

  std::mutex mutex_;
  // Guarded by it.
  WaitLink waits_;   // those that others find than their timer, or the WaitGroup that they are of
  WaitLink groups_;  // what is in each of them is its user's
  // Of those that were in waits_, so many are about to complete. Raised under the lock; release when one has, acquire
  // by who then lets the context go.
  std::atomic<int> completing_{0};
};

/// A timeout that an asynchronous operation waits for. It ends once: by complete(), or by abandon(). Nobody counts
/// references to it: whoever is to end it has it alone. Who that is, the protocol in async_wait.cpp says.
class HWT_API AsyncWait {
 public:
  AsyncWait(const AsyncWait&) = delete;
  AsyncWait& operator=(const AsyncWait&) = delete;

  /// Begins it, once. From then on it may end at any time, on any thread, and be gone: also before this returns. What
  /// the timer refuses completes; throws what is the caller's fault, and has abandoned it then. The handle is for
  /// discard(), null where it was refused.
  Timeout start(WaitRegistry& registry, Timer& timer, When when);

  /// For a cancellation slot: completes it as Aborted, unless it has ended. Only while nobody calls the handler, and
  /// only of a wait in a registry.
  void cancel();
  /// Abandons it, unless it has ended. Any thread.
  static void discard(const Timeout& wait) noexcept;

 protected:
  static constexpr std::size_t kRoom = 6 * sizeof(void*);  // an operation of Asio has so many

  AsyncWait() = default;
  /// If it was cancelled for a next one that has not been begun by now, it takes the timeout out of the timer.
  ~AsyncWait() {
    if (idle_) retire(idle_);
  }

  // Each of the two is the end of this.

  /// Posts the completion. `end`: Ok when it expired, Stopped when it was cancelled or the timer ended, else why it was
  /// refused.
  virtual void complete(Result end) = 0;
  /// Destroys the handler.
  virtual void abandon() noexcept = 0;

  /// From complete() on, if nobody calls cancel(): kRoom bytes for whatever is aligned as a pointer.
  std::byte* room() noexcept { return room_; }

 private:
  friend class WaitGroup;
  friend class WaitRegistry;
  class Task;
  struct Source;
  /// Of use until it ends, but for cancel().
  struct Pending : WaitLink {
    // The registry that lists the wait; or null, also once the wait has left it to complete. Written by the thread that
    // starts or ends the wait. cancel() may read it later, when the registry is gone. relaxed: nothing is handed over.
    std::atomic<WaitRegistry*> registry{nullptr};
    Task* task = nullptr;  // in the timeout's node
  };

  /// `held`: a null handle, which becomes one of the timeout before that is published, without a reference of its own.
  /// Or null.
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

/// Some waits of one context on one timer, for who cancels them together. Used by one thread at a time.
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

  /// All have ended, and it has forgotten them.
  bool empty() noexcept {
    forget_ended();
    return waits_.empty();
  }
  /// Completes up to `most` of them as Aborted, the oldest first. Returns how many.
  std::size_t cancel(std::size_t most);
  /// Completes all of them, for who is about to start the next one. The timeout of an only one stays in the timer until
  /// then; but not beyond its completion, whose destruction takes it out if nothing was started meanwhile.
  std::size_t cancel_for_next();
  /// Fetches what cancel_for_next() will write, while the caller reads a clock, say.
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
