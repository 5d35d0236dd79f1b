// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/parking.h"
#include "hashed_wheel_timer/internal/time/clock.h"

namespace hwt::internal {

/// The worker's sleep, and the state by which other threads end it. Only a timeout for which the worker would wake up
/// too late has to wake it. Times are nanoseconds of the timer's clock; sleep_until() takes a time of steady_clock.
///
/// Going to sleep races with new entries (Dekker). The worker announces its sleep, passes a full fence, and reads once
/// more what its inbox lists and which requests were noted. A thread that lists an entry there, or notes a request,
/// passes a full fence and reads the announcement. At least one of them sees the other. A producer whose entries are
/// listed already, for this deadline or an earlier one, need not read the announcement: the worker sleeps no longer
/// than that.
///
/// No thread relies on one that may be preempted. The announcement stays until the worker takes it back. Each producer
/// that needs the worker wakes it, unless another one has *finished* waking it from the same sleep. So in a herd, the
/// threads that come within the few microseconds of the first wake-up wake the worker too. The others find that it is
/// done.
///
/// A timer without a worker has a driver outside, which sleeps somewhere else. A thread that would wake the worker
/// calls the driver instead. It takes the announcement away first, so each announcement leads to one call at most.
class Sleeper {
 public:
  /// The function to call instead of waking a worker.
  class Outside {
   public:
    /// Any thread calls it. It must not wait, because the driver may be waiting for the call to end.
    virtual void call() noexcept = 0;

   protected:
    ~Outside() = default;
  };

  /// An argument for announce(): no deadline ends the sleep, only wake() and wake_if_asleep() do.
  static constexpr std::int64_t kNoDeadline = std::numeric_limits<std::int64_t>::min() + 1;

  /// The worker: announces that a timeout with a deadline up to `wake_until` must wake it. A deadline of kForever never
  /// wakes it. Then passes the full fence.
  void announce(std::int64_t wake_until) noexcept {
    sleep_.store(sleep_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    wake_until_.store(std::min(wake_until, kForever - 1), std::memory_order_release);
    AsymmetricFence::full();
  }
  /// The worker: announces an earlier time than `before`, which it has announced. Does nothing if a thread has taken
  /// that announcement away, because it calls the Outside.
  ///
  /// relaxed: a thread that acquires the new time sees all that came before announce(), as with the old one.
  void announce_earlier(std::int64_t before, std::int64_t wake_until) noexcept {
    before = std::min(before, kForever - 1);
    wake_until_.compare_exchange_strong(before, wake_until, std::memory_order_relaxed);
  }
  /// The worker: takes the announcement back.
  void retract() noexcept { wake_until_.store(kAwake, std::memory_order_relaxed); }

  /// The worker: sleeps until `time` or wake(), and takes the announcement back.
  void sleep_until(std::int64_t time) noexcept {
    parking_.park_until(time);
    retract();
  }

  /// Any thread: passes the full fence, and wakes the worker if it would sleep too long for a deadline.
  void wake_for(std::int64_t deadline) noexcept {
    AsymmetricFence::full();
    if (deadline <= wake_until_.load(std::memory_order_relaxed)) wake_announced();
  }
  /// Any thread: passes the full fence, and wakes the worker if it has announced a sleep.
  void wake_if_asleep() noexcept {
    AsymmetricFence::full();
    wake_announced();
  }
  /// Any thread: calls the Outside if there is one and a sleep is announced. Passes the light fence, and the full one
  /// only if there is one.
  void call_if_asleep() noexcept {
    AsymmetricFence::light();  // pairs with set_outside()
    if (has_outside()) wake_if_asleep();
  }
  /// Any thread: ends the worker's present sleep, or its next one. Not for a timer that has an Outside.
  void wake() noexcept { parking_.unpark(); }

  // The driver of the timer, one thread at a time.

  /// Takes the announcement back, so that no call begins before the next announcement. Returns false if a call is under
  /// way. Call it before announce() too, which only stores. Without this exchange the driver might not see the count of
  /// a thread that has taken the last announcement away.
  bool end_calls() noexcept;
  /// Waits until no thread calls the driver. Deadlocks inside such a call.
  void wait_for_calls() noexcept;
  /// Any thread: returns whether there is a function to call.
  bool has_outside() const noexcept { return outside_.load(std::memory_order_relaxed) != nullptr; }
  /// Sets the function to call, or none if null. Then passes the heavy fence. So the driver finds all that a thread has
  /// stored before call_if_asleep() found no function. Call it after end_calls().
  void set_outside(Outside* outside) noexcept {
    outside_.store(outside, std::memory_order_relaxed);
    AsymmetricFence::heavy();
  }
  /// Begin and end of a call. The driver uses them for a call that came while it was busy, and that it makes itself
  /// afterwards. So does detail::HeldCalls. Between them, end_calls() returns false.
  void begin_call() noexcept { calls_.fetch_add(1, std::memory_order_relaxed); }
  void finish_call() noexcept;
  /// Makes a call between begin_call() and finish_call(), on the thread that took the announcement away.
  void make_call() noexcept { outside_.load(std::memory_order_relaxed)->call(); }

  bool awake() const noexcept { return wake_until_.load(std::memory_order_relaxed) == kAwake; }

 private:
  static constexpr std::int64_t kAwake = std::numeric_limits<std::int64_t>::min();

  void wake_announced() noexcept;
  void call_outside() noexcept;

  // Read by every producer, written when the worker goes to sleep and wakes up. By release and acquire, a thread that
  // sees an announcement sees the number of its sleep, or a later one.
  std::atomic<std::int64_t> wake_until_{kAwake};

  // Counts the announcements. Only the worker writes it. release and acquire: a thread that sees the number sets the
  // permit after the worker has left the previous sleep. So the previous sleep does not consume the permit.
  std::atomic<std::uint64_t> sleep_{0};

  // The number of a sleep from which a thread has finished waking the worker. A thread that was preempted may write an
  // old one over a new one: then the worker is woken once too often. The worker finds entries that were enqueued
  // during this sleep before its next one, so it is enough that this one ends.
  std::atomic<std::uint64_t> woken_from_{0};

  // relaxed: the caller has taken away an announcement with acquire, and this was set before the announcement.
  std::atomic<Outside*> outside_{nullptr};
  // The threads that call the driver, or are about to find that another does. A thread counts itself before it takes
  // the announcement away by an exchange. So the thread that takes the announcement back, by another exchange, finds
  // the count. release when a call has ended, acquire by the thread that then destroys the called object.
  std::atomic<std::uint32_t> calls_{0};

 protected:  // for tests
  Parking parking_;
};

}  // namespace hwt::internal
