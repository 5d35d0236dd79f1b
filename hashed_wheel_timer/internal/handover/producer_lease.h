#pragma once

#include <cstdint>

#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/handover/seat.h"

// Each schedule and each cancel reads a variable of its thread. In a shared library that would be a call, for which the
// compiler would also save registers. With this model it is one load, from the space that glibc keeps for libraries
// that are loaded later (512 bytes; these are 16). Other C libraries refuse to load such a library late.
#if defined(__GLIBC__)
#define HWT_INITIAL_EXEC [[gnu::tls_model("initial-exec")]]
#else
#define HWT_INITIAL_EXEC
#endif

namespace hwt::internal {

namespace thread_cache {
struct Entry {
  std::uint64_t core_id;
  Producer* producer;
};
// The producer that this thread used last. Ids are never used twice, so an entry of a core that is gone never matches.
HWT_INITIAL_EXEC extern constinit thread_local Entry latest;

/// The calling thread's producer for a core if it is the one that it used last, else null.
inline Producer* find(std::uint64_t core_id) noexcept {
  if (latest.core_id != core_id) [[unlikely]]
    return nullptr;
  return latest.producer;
}
/// The calling thread's producer for a core, for a thread that uses several timers in turn. O(1), whatever their
/// number. Null: the thread has none for this core.
Producer* find_held(std::uint64_t core_id) noexcept;
}  // namespace thread_cache

/// The calling thread's producer for a core, for as long as the object lives; for when thread_cache::find() knows none.
/// A thread takes one from the core the first time, and keeps it until it ends; then the core's next new thread takes
/// it over. The cost does not depend on the number of threads or timers, and no thread waits for another.
class ProducerLease {
 public:
  explicit ProducerLease(ProducerSet& producers) noexcept;
  ~ProducerLease() {
    if (borrowed_ != nullptr) borrowed_->home->give_back(borrowed_);
  }
  ProducerLease(const ProducerLease&) = delete;
  ProducerLease& operator=(const ProducerLease&) = delete;

  /// Returns null if there was no memory.
  Producer* get() const noexcept { return producer_; }

 private:
  Producer* producer_;
  Seat* borrowed_ = nullptr;  // for this call only: nobody would tell when the thread ends
};

/// Gives back a node whose last reference was dropped, and ends its life. Any thread; a producer of the timer keeps the
/// node for itself.
void recycle(Node* node) noexcept;

/// A new core's id. Throws std::system_error when the process has no key left by which threads tell of their end.
std::uint64_t announce_core();

}  // namespace hwt::internal
