#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "hashed_wheel_timer/export.h"
#include "hashed_wheel_timer/timer.h"

// The parts of KeyedTimer that do not depend on its types; not for users.

namespace hwt::detail {

/// Who is called when a timeout that arm() made expires.
class HWT_API KeyedExpiry {
 public:
  KeyedExpiry() = default;
  KeyedExpiry(const KeyedExpiry&) = delete;
  KeyedExpiry& operator=(const KeyedExpiry&) = delete;
  virtual ~KeyedExpiry();
  virtual void expire(std::uint32_t hash, const Timeout& timeout) = 0;
};

enum class Armed { Yes, Stopped, Rejected };

/// Schedules expiry->expire(hash, timeout) and stores the timeout. Throws what Timer::new_timeout() throws, but not
/// IllegalState and RejectedExecution.
HWT_API Armed arm(Timer& timer, std::shared_ptr<KeyedExpiry> expiry, std::uint32_t hash, std::chrono::nanoseconds delay,
                  Timeout& timeout);

[[noreturn]] HWT_API void refuse_empty_on_expire();

/// Spreads what std::hash leaves as it is, integers and pointers, over all bits, but for this: four keys in a row
/// differ in the lowest two bits only, so that they are neighbours in the table. Keys that were made together are used
/// together, and fetched together. (A move among a million keys, one after the other: 155 ns instead of 280. With 16 in
/// a row it would be 90 to 120, but then all 16 share a lock, and runs of taken cells grow to hundreds.) Moremur, after
/// the finalizer of MurmurHash3.
inline std::uint32_t mixed_hash(std::size_t hash) noexcept {
  std::uint64_t x = hash >> 2;
  x ^= x >> 27;
  x *= 0x3c79ac492ba7b653;
  x ^= x >> 33;
  x *= 0x1c69b3f74ac4ae35;
  return static_cast<std::uint32_t>(x >> 32) ^ static_cast<std::uint32_t>(hash & 3);
}

/// The calls of an on_expire that are going on, and on which threads.
class HWT_API RunningExpiries {
 public:
  /// One call, by this thread.
  class HWT_API Scope {
   public:
    explicit Scope(RunningExpiries& all) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class RunningExpiries;
    RunningExpiries& all_;
    const std::thread::id thread_ = std::this_thread::get_id();
    Scope* next_;
  };

  /// Returns when other threads have no call going on; true if this thread has none either.
  bool wait_for_others() noexcept;

 private:
  bool others() const noexcept;

  std::mutex mutex_;
  std::condition_variable left_;
  Scope* first_ = nullptr;  // guarded by mutex_, as their next_
};

}  // namespace hwt::detail
