// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "hashed_wheel_timer/timeout.h"

namespace hwt::detail {

/// The timeout that a schedule or a RepeatedTimer waits for. The thread that arms, perhaps the worker, stores it here,
/// and users look at it. The arming thread waits for no user.
///
/// A user exchanges the timeout for the mark kLent, and puts it back only if the mark is still there. Otherwise the
/// arming thread has stored another one meanwhile, and the user drops the old one. A mutex keeps users apart, so there
/// is at most one mark.
class HWT_API PendingTimeout {
 public:
  PendingTimeout() noexcept = default;
  /// Precondition: no other thread uses it.
  ~PendingTimeout() { set({}); }
  PendingTimeout(const PendingTimeout&) = delete;
  PendingTimeout& operator=(const PendingTimeout&) = delete;

  /// Stores the timeout in place of the present one. One thread at a time.
  void set(Timeout timeout) noexcept;
  /// Stores the first timeout, unless its task has run already, and has stored a later one by set(). Call it before any
  /// user can look.
  void set_first(Timeout timeout) noexcept;
  /// Leaks the present timeout, in a forked child.
  void abandon() noexcept { place_.store(kNone, std::memory_order_relaxed); }

  // Called by users, which wait only for other users.

  /// Takes the timeout out for good.
  Timeout take();

  /// Borrows the timeout, or null if there is none, while a user looks at it.
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
    // Declared before the lock, and so destroyed after it: to drop the last reference may run code of the user.
    Timeout timeout_;
    const std::lock_guard<std::mutex> lock_;
  };

 private:
  // place_ is the address of a node, with a reference to it, or one of these.
  static constexpr std::uintptr_t kNone = 0;
  static constexpr std::uintptr_t kLent = 1;

  static std::uintptr_t place_of(Timeout& timeout) noexcept;
  static Timeout timeout_of(std::uintptr_t place) noexcept;

  // release when a timeout is stored, acquire when it is taken: the taker sees it as it was left. A thread that finds
  // none here sees everything that the taker did before.
  std::atomic<std::uintptr_t> place_{kNone};
  std::mutex users_;
};

}  // namespace hwt::detail
