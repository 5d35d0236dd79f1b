// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/keyed/entry.h"
#include "hashed_wheel_timer/detail/used_timer.h"
#include "hashed_wheel_timer/timer.h"

// The parts of KeyedTimer that do not depend on its types; not for users.

namespace hwt::detail {

/// The object that the timeouts of a KeyedTimer call when they expire. Each of their tasks has a reference to it.
class HWT_API KeyedExpiry {
 public:
  explicit KeyedExpiry(const Timer& timer) noexcept : used(timer) {}
  KeyedExpiry(const KeyedExpiry&) = delete;
  KeyedExpiry& operator=(const KeyedExpiry&) = delete;

  /// Ends the value of the record, unless the record was armed again or its value has ended.
  virtual void expire(KeyedRecord& record, std::uint32_t arming) = 0;
  /// Frees a record without references.
  virtual void free(KeyedRecord& record) noexcept = 0;

  const UsedTimer used;

  // A new object has one reference, which belongs to its maker.
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  virtual ~KeyedExpiry();

 private:
  std::atomic<std::size_t> references_{1};
};

/// Schedules a call of expiry.expire(record, arming) and stores its handle in `timeout`. Takes over one reference to
/// the record, even if it fails. Returns Ok, Stopped or Full. Throws std::bad_alloc, and what starting the timer
/// throws.
HWT_API Result arm(Timer& timer, KeyedExpiry& expiry, KeyedRecord& record, std::uint32_t arming, When when,
                   Timeout& timeout);

[[noreturn]] HWT_API void refuse_empty_on_expire();

/// The secret numbers of one KeyedTimer for mixed_hash(). Without them an attacker could choose keys that collide,
/// because that function is public and can be inverted.
struct HashSeed {
  std::uint64_t added;
  std::uint64_t multiplier;  // odd

  /// Returns a seed from std::random_device. If that fails, makes one from an address and the clock.
  HWT_API static HashSeed random() noexcept;
};

/// Spreads a hash over all bits, because std::hash may return integers and pointers as they are. The lowest two bits of
/// `hash` are not spread, so that four consecutive keys are neighbours in the table. Keys that were made together are
/// often used together, and then one cache miss fetches several of them.
///
/// Measured with a million keys that are moved in order, a move takes 155 ns instead of 280 ns. With 16 neighbours it
/// takes 90 to 120 ns, but all 16 share a lock, and runs of taken cells grow to hundreds. The function is Moremur, a
/// variant of the finalizer of MurmurHash3. An addend and the second multiplier are secret.
inline std::uint32_t mixed_hash(std::size_t hash, const HashSeed& seed) noexcept {
  std::uint64_t x = (hash >> 2) + seed.added;
  x ^= x >> 27;
  x *= 0x3c79ac492ba7b653;
  x ^= x >> 33;
  x *= seed.multiplier;
  return static_cast<std::uint32_t>(x >> 32) ^ static_cast<std::uint32_t>(hash & 3);
}

/// Counts the running calls of expire() of one KeyedTimer, so that its destructor can wait for them. Takes no lock,
/// because the worker makes these calls.
class HWT_API RunningExpiries {
 public:
  /// One call, on the stack of the thread that makes it.
  class HWT_API Scope {
   public:
    explicit Scope(RunningExpiries& all) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// Returns whether this call is not nested in another one of the same KeyedTimer.
    bool outermost() const noexcept;

   private:
    friend class RunningExpiries;
    RunningExpiries& all_;
    const Scope* const outer_;  // the call around this one, of any KeyedTimer
  };

  /// Waits until no other thread is in a call. Returns whether the calling thread is in none either.
  bool wait_for_others() noexcept;

 private:
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace hwt::detail
