#pragma once

#include <cstdint>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/handover/inbox.h"
#include "hashed_wheel_timer/internal/handover/producer_counters.h"
#include "hashed_wheel_timer/internal/handover/seat.h"
#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"

namespace hwt::internal {

/// What one thread at a time uses to schedule and cancel on one timer: nodes, a place in the inbox, counters. When the
/// thread ends, the next new thread takes it over, so that many short-lived threads cost no more than a few long ones.
/// Only its owner writes it, except for the stack of returned nodes, which has a cache line of its own.
struct Producer {
  Producer(Depot& depot, Inbox& its_inbox, Sleeper& its_sleeper)
      : pool(depot), inbox(its_inbox), sleeper(its_sleeper) {}

  /// False: no memory.
  bool put(Arrived entry) noexcept {
    if (++queued > tidy_at && !tidy()) [[unlikely]]
      return false;
    return Inbox::put(place, entry);
  }

  NodePool pool;
  Inbox::Place place;
  ProducerCounters counters;
  Inbox& inbox;
  Sleeper& sleeper;

  // The owner's alone. A producer cleans up behind itself, however busy the worker is: when its place has twice as many
  // entries as were alive the last time, it drops those that are dead. So what is queued is bounded by what is alive,
  // each entry is looked at some two times, and while they are young, in this thread's own cache.
  std::size_t queued = 0;  // entries in the place, those included that the worker has taken since the last tidy()
  std::size_t tidy_at = kTidyAt;
  std::size_t rechecks = 0;  // since the worker was last called for them

  /// At least so many: a block or two more would not be worth the walk, and what fits into the nearest cache is cheap.
  static constexpr std::size_t kTidyAt = 1024;
  /// The worker is called for so many that are alive: they are better off in the wheel. And for so many recheck
  /// requests at what is due earlier: until then it may be moved again, at no cost.
  static constexpr std::size_t kHandOver = 16384;
  /// And when a timeout is cancelled, for so many recheck requests: its memory is what only the worker can give back.
  /// Promise 7 of README.md has this number.
  static constexpr std::size_t kRechecks = 4096;

  Producer* next = nullptr;  // all producers of the core, newest first; fixed once published

 private:
  [[gnu::noinline]] bool tidy() noexcept;
  static bool keep_or_drop(Node& node, std::uint32_t generation) noexcept;
};

/// All producers of one core. Any thread; none waits for another.
class ProducerSet {
 public:
  ProducerSet(std::uint64_t core_id, Depot& depot, Inbox& inbox, Sleeper& sleeper)
      : core_id_(core_id), depot_(depot), inbox_(inbox), sleeper_(sleeper) {}
  ProducerSet(const ProducerSet&) = delete;
  ProducerSet& operator=(const ProducerSet&) = delete;
  ~ProducerSet();

  /// One that no thread has, or else a new one; it is the caller's until Seat::home gets it back. Null: no memory.
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

}  // namespace hwt::internal
