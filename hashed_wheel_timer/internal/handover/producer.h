// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/handover/inbox.h"
#include "hashed_wheel_timer/internal/handover/producer_counters.h"
#include "hashed_wheel_timer/internal/handover/seat.h"
#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"
#include "hashed_wheel_timer/internal/time/request_clock.h"
#include "hashed_wheel_timer/internal/tuning.h"

// Each schedule and each cancel reads a thread_local. In a shared library the default model makes that a call. This
// model makes it one load, from the space that glibc keeps for libraries that dlopen() loads: 1.6 KiB, of which this
// library takes 200 bytes. Other C libraries refuse to load such a library with dlopen().
#if defined(__GLIBC__)
#define HWT_INITIAL_EXEC [[gnu::tls_model("initial-exec")]]
#else
#define HWT_INITIAL_EXEC
#endif

namespace hwt::internal {

/// The state by which one thread at a time schedules and cancels on one timer: nodes, a place in the inbox, and
/// counters. When the thread ends, the next new thread takes it over, so many short-lived threads cost no more than a
/// few long ones. Only its owner writes it, except for parts of `place` (the worker) and of `pool` (threads that return
/// nodes, the worker that collects those, and the closer).
struct Producer {
  Producer(Depot& depot, Inbox& its_inbox, Sleeper& its_sleeper)
      : pool(depot), inbox(its_inbox), sleeper(its_sleeper) {}

  /// Enqueues a new timeout. Sifts the place first if that is due. May call the user's on_earlier(). Returns false
  /// without memory.
  bool put(NodeName entry) noexcept {
    if (Inbox::put(place, entry)) [[likely]]
      return true;
    return put_with_more_room(entry);
  }

  /// Call it when pool.look_is_due(). Leaves free nodes to other threads if there are many, or at the end of a burst.
  /// Drops dead entries if there may be many. May call the user's on_earlier(). Precondition: the timer exists, or
  /// pool.is_closing() was false inside a NodePool::Inside.
  void look() noexcept;
  /// Keeps a free node of any pool, and calls look(). Returns false if the pool is closing.
  [[gnu::noinline, gnu::cold]] bool put_back_and_look(Node* node) noexcept;

  NodePool pool;
  Inbox::Place place;
  ProducerCounters counters;
  RequestClock clock;
  Inbox& inbox;
  Sleeper& sleeper;

  // Only the owner uses these. A sift drops the dead entries of the place. It begins when the place has a multiple of
  // the entries that the last sift has kept, so the live timeouts bound the number of entries. It has steps, so that no
  // call of the user takes long. put() makes a step when `until_step` entries have come, and look() may make one after
  // many cancels.
  std::size_t until_step = Tuning::kFirst;  // entries until the next step, less those for which there is room
  std::size_t until_end = Tuning::kFirst;   // the same until the end of the sift
  std::size_t seen = 0;                     // in this sift
  std::size_t kept = 0;                     // in this sift
  std::size_t kept_before = 0;              // in the last sift. They are the oldest, until the worker takes some
  std::size_t kept_twice = 0;               // in both sifts, if the worker has taken none
  bool settled = false;                     // so many are alive that they belong in the wheel
  std::int64_t cancelled_before = 0;        // counters.cancelled when it last made room for entries, or ended a sift
  bool ends_burst = false;                  // it has cancelled many timeouts, and made no room for entries since
  bool came_back = false;                   // it has made room for entries after the end of a burst
  std::size_t rechecks = 0;                 // since the worker was last called for them
  std::size_t dead = 0;  // timeouts of other producers, cancelled since the worker was last called for them

  Producer* next = nullptr;  // all producers of the core, newest first; fixed once published

 private:
  [[gnu::noinline, gnu::cold]] bool put_with_more_room(NodeName entry) noexcept;
  Node* sift() noexcept;
  void take_back(Node* dropped) noexcept;
};

/// All producers of one core. Any thread; none waits for another.
class ProducerSet {
 public:
  ProducerSet(std::uint64_t core_id, Depot& depot, Inbox& inbox, Sleeper& sleeper)
      : core_id_(core_id), depot_(depot), inbox_(inbox), sleeper_(sleeper) {}
  ProducerSet(const ProducerSet&) = delete;
  ProducerSet& operator=(const ProducerSet&) = delete;
  ~ProducerSet();

  /// Takes a seat that no thread has, or makes one. The caller owns it until it gives it back to Seat::home. Returns
  /// null without memory.
  Seat* take() noexcept;

  std::uint64_t core_id() const noexcept { return core_id_; }

  /// Visits all producers; may leave out those that are added meanwhile.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (Producer* producer = all_.top(); producer != nullptr; producer = producer->next) {
      visit(*producer);
    }
  }

 private:
  const std::uint64_t core_id_;
  Depot& depot_;
  Inbox& inbox_;
  Sleeper& sleeper_;
  detail::IntrusiveStack<Producer, &Producer::next> all_;  // none is taken out before the core goes
  FreeSeats& seats_ = *new FreeSeats;                      // deletes itself
};

namespace thread_cache {
struct Entry {
  std::uint64_t core_id;
  Producer* producer;
};
// The producer that this thread used last. Ids are never used twice, so an entry of a core that is gone never matches.
HWT_INITIAL_EXEC extern constinit thread_local Entry latest;

/// Returns whether the calling thread has a producer for a core, and used that last. Then it is latest.producer.
inline bool has(std::uint64_t core_id) noexcept { return latest.core_id == core_id; }
/// Returns the calling thread's producer for a core if it was the last one that the thread used, otherwise null.
inline Producer* find(std::uint64_t core_id) noexcept { return has(core_id) ? latest.producer : nullptr; }
/// Returns the calling thread's producer for a core, or null if it has none. For a thread that uses several timers in
/// turn. Takes O(1) time for any number of timers.
Producer* find_held(std::uint64_t core_id) noexcept;
}  // namespace thread_cache

/// Gets the calling thread's producer for a core while the object lives. A thread takes a producer from the core at the
/// first use, and keeps it until the thread ends. Then the core's next new thread takes it over. A thread that uses the
/// timer after that, in a late destructor, borrows a producer for each call. The cost does not depend on the number of
/// threads or timers, and no thread waits for another.
class ProducerLease {
 public:
  /// `mine`: the result of thread_cache::find().
  ProducerLease(ProducerSet& producers, Producer* mine) noexcept : producer_(mine) {
    if (mine == nullptr) take(producers);
  }
  /// `mine`: the result of thread_cache::find() or find_held(). If it is null, the first get(producers) takes one.
  explicit ProducerLease(Producer* mine) noexcept : producer_(mine) {}
  ~ProducerLease() {
    if (borrowed_ != nullptr) borrowed_->home->give_back(borrowed_);
  }
  ProducerLease(const ProducerLease&) = delete;
  ProducerLease& operator=(const ProducerLease&) = delete;

  /// Returns null if there was no memory.
  Producer* get() const noexcept { return producer_; }
  Producer* get(ProducerSet& producers) noexcept {
    if (producer_ == nullptr) [[unlikely]]
      take(producers);
    return producer_;
  }

 private:
  [[gnu::noinline]] void take(ProducerSet& producers) noexcept;

  Producer* producer_;
  Seat* borrowed_ = nullptr;  // given back at the end of this call, because no end of the thread would be noticed
};

/// Ends the life of a node whose last reference was dropped, and gives it back. Destroys the task if it still exists,
/// and may call the user's on_earlier(). Any thread. If it has used this timer last, its producer keeps the node. This
/// may destroy the core: do not use that afterwards.
void recycle(Node* node) noexcept;

/// Returns the id of a new core. Throws std::system_error if the process has no thread key left.
std::uint64_t new_core_id();

}  // namespace hwt::internal
