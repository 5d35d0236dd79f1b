#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "hashed_wheel_timer/timeout.h"

namespace hwt::detail {

/// The timeout that what repeats is waiting for: the thread that arms puts it here, which may be the worker, and users
/// look at it. So who arms waits for nobody, whatever users are at.
///
/// A user who looks takes the timeout out, for that while, leaves a mark in its place, and puts it back only if it
/// finds the mark: otherwise it has been replaced, and goes with the user. Users keep each other out by a mutex, so
/// there is one mark at most.
class HWT_API PendingTimeout {
 public:
  PendingTimeout() noexcept = default;
  /// No other thread is at it any more.
  ~PendingTimeout() { set({}); }
  PendingTimeout(const PendingTimeout&) = delete;
  PendingTimeout& operator=(const PendingTimeout&) = delete;

  /// Instead of what is there. One thread at a time.
  void set(Timeout timeout) noexcept;
  /// The same, unless something is there. By a thread that may come late with it; but no user has looked before.
  void set_first(Timeout timeout) noexcept;
  /// In a forked child: what is there stays as it is for ever.
  void abandon() noexcept { place_.store(kNone, std::memory_order_relaxed); }

  // A user's, who waits for other users only.

  /// Takes it out for good.
  Timeout take();

  /// The timeout while one looks at it; null if there is none.
  class HWT_API Loan {
   public:
    explicit Loan(PendingTimeout& pending);
    ~Loan();
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

    const Timeout& operator*() const noexcept { return timeout_; }
    const Timeout* operator->() const noexcept { return &timeout_; }

   private:
    PendingTimeout& pending_;
    Timeout timeout_;  // if it goes here, then after the lock: what it holds may be a user's
    const std::lock_guard<std::mutex> lock_;
  };

 private:
  // An address of a node, with a reference to it, or one of these.
  static constexpr std::uintptr_t kNone = 0;
  static constexpr std::uintptr_t kLent = 1;

  static std::uintptr_t place_of(Timeout& timeout) noexcept;
  static Timeout timeout_of(std::uintptr_t place) noexcept;

  // release where something is put, acquire where it is taken: the timeout is as it was left. And who finds nothing
  // here sees what the thread that took it away had done before.
  std::atomic<std::uintptr_t> place_{kNone};
  std::mutex users_;
};

}  // namespace hwt::detail
