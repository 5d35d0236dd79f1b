#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "hashed_wheel_timer/internal/node_pool.h"
#include "hashed_wheel_timer/internal/queues.h"

namespace hwt::internal {

class Core;

/// A counter with one writer at a time: a plain addition, not a read-modify-write on a line that others write as well.
class OwnedCounter {
 public:
  void add(std::int64_t n) noexcept {
    // release: who reads the sum with acquire sees whatever happened before, so that sums of counters can be compared.
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_release);
  }
  std::int64_t get() const noexcept { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// What one thread at a time uses to schedule and cancel on one timer: nodes, places in the queues, counters. When the
/// thread ends, the next new thread takes it over, so that many short-lived threads cost no more than a few long ones.
/// Nothing in here is written by two threads at once, so producers share no cache line.
struct Producer {
  Producer(Core& core, PendingQueue& pending_queue) : pool(core), pending(pending_queue) {}

  NodePool pool;
  PendingQueue::Token pending;
  std::optional<NodeQueue::Token> cancelled_place;  // made by the first cancel() that needs it

  OwnedCounter scheduled;
  OwnedCounter cancelled;
  OwnedCounter rejected;
  // Since the worker was last asked to collect early. The owner's alone.
  std::uint32_t queued_since_wake = 0;

  Producer* next_free = nullptr;  // guarded by the lock of threads (producer.cpp)
  Producer* next = nullptr;       // all producers of the core, newest first; fixed once published
};

/// All producers of one core.
class ProducerSet {
 public:
  explicit ProducerSet(PendingQueue& pending) noexcept : pending_(pending) {}
  ProducerSet(const ProducerSet&) = delete;
  ProducerSet& operator=(const ProducerSet&) = delete;
  ~ProducerSet();

  /// Both under the lock of threads. take(): null without memory.
  Producer* take(Core& core) noexcept;
  void give_back(Producer* producer) noexcept;

  /// Visits all producers, those added meanwhile perhaps not.
  template <class Visit>
  void for_each(Visit&& visit) const {
    // acquire: pairs with the release in take().
    for (Producer* producer = all_.load(std::memory_order_acquire); producer != nullptr; producer = producer->next) {
      visit(*producer);
    }
  }

 private:
  PendingQueue& pending_;
  std::atomic<Producer*> all_{nullptr};
  Producer* free_ = nullptr;
};

namespace thread_cache {
struct Entry {
  std::uint64_t core_id;
  Producer* producer;
};
// The producer that this thread used last. Ids are never used twice, so an entry of a core that is gone never matches.
extern constinit thread_local Entry latest;

/// The calling thread's producer for a core if it is the one that it used last, else null.
inline Producer* find(std::uint64_t core_id) noexcept { return latest.core_id == core_id ? latest.producer : nullptr; }
/// The same for a thread that uses several timers in turn: null only if it has none for this core.
Producer* find_held(std::uint64_t core_id) noexcept;
}  // namespace thread_cache

/// The calling thread's producer for a core, for as long as the object lives, where thread_cache::find() knows none.
/// The first time, a thread takes one from the core and keeps it until it ends.
class ProducerLease {
 public:
  explicit ProducerLease(Core& core) noexcept;
  ~ProducerLease() {
    if (borrowed_) return_borrowed();
  }
  ProducerLease(const ProducerLease&) = delete;
  ProducerLease& operator=(const ProducerLease&) = delete;

  /// Null: no memory for one.
  Producer* get() const noexcept { return producer_; }

 private:
  void return_borrowed() noexcept;

  Core& core_;
  Producer* producer_;
  bool borrowed_ = false;  // for this call only: the thread is ending and its cache is gone
};

/// Tells threads of a core, which they give their producers back to when they end, and that it is going.
std::uint64_t announce_core();
void retire_core(std::uint64_t id) noexcept;

}  // namespace hwt::internal
