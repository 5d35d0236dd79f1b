#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/detail/export.h"
#include "hashed_wheel_timer/detail/keyed/entry.h"
#include "hashed_wheel_timer/timer.h"

// The parts of KeyedTimer that do not depend on its types; not for users.

namespace hwt::detail {

/// The target of the timeouts that arm() makes. They keep it alive by references.
class HWT_API KeyedExpiry {
 public:
  KeyedExpiry() noexcept;
  KeyedExpiry(const KeyedExpiry&) = delete;
  KeyedExpiry& operator=(const KeyedExpiry&) = delete;

  virtual void expire(KeyedRecord& record, std::uint32_t arming) = 0;
  virtual void free(KeyedRecord& record) noexcept = 0;

  /// This process is a copy of the one that made it: there is no knowing what other threads were changing at fork(), or
  /// which locks they held.
  bool in_forked_child() const noexcept;

  // The maker has the first reference.
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reference() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 protected:
  virtual ~KeyedExpiry();

 private:
  std::atomic<std::size_t> references_{1};
  const std::int64_t process_;
};

/// Schedules expiry.expire(record, arming) and stores the timeout; takes over a reference to the record. Returns Ok,
/// Stopped or Full. Throws std::bad_alloc, and what starting the timer throws.
HWT_API Result arm(Timer& timer, KeyedExpiry& expiry, KeyedRecord& record, std::uint32_t arming, When when,
                   Timeout& timeout);

[[noreturn]] HWT_API void refuse_empty_on_expire();

/// Secrets of one KeyedTimer, so that nobody can choose keys that collide: the mixing below is known and
/// can be undone.
struct HashSeed {
  std::uint64_t added;
  std::uint64_t multiplier;  // odd

  /// Returns a seed from std::random_device, or if that fails from addresses and the clock.
  HWT_API static HashSeed random() noexcept;
};

/// Spreads a hash over all bits, since std::hash leaves integers and pointers as they are. But four keys in a row
/// differ in the lowest two bits only, so that they are neighbours in the table. Keys that were made together are used
/// together, and fetched together. (A move among a million keys, one after the other: 155 ns instead of 280. With 16 in
/// a row it would be 90 to 120, but then all 16 share a lock, and runs of taken cells grow to hundreds.) Moremur, after
/// the finalizer of MurmurHash3, with a seed and its second multiplier secret.
inline std::uint32_t mixed_hash(std::size_t hash, const HashSeed& seed) noexcept {
  std::uint64_t x = (hash >> 2) + seed.added;
  x ^= x >> 27;
  x *= 0x3c79ac492ba7b653;
  x ^= x >> 33;
  x *= seed.multiplier;
  return static_cast<std::uint32_t>(x >> 32) ^ static_cast<std::uint32_t>(hash & 3);
}

/// The running calls of an on_expire. No locks: the worker comes here.
class HWT_API RunningExpiries {
 public:
  /// One call, by this thread.
  class HWT_API Scope {
   public:
    explicit Scope(RunningExpiries& all) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    /// This thread has no other call going on around this one.
    bool outermost() const noexcept;

   private:
    friend class RunningExpiries;
    RunningExpiries& all_;
    const Scope* const outer_;  // of this thread
  };

  /// Returns when other threads have no call going on; true if this thread has none either.
  bool wait_for_others() noexcept;

 private:
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace hwt::detail
