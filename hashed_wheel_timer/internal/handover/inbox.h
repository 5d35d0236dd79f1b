// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/handover/entry_buffer.h"
#include "hashed_wheel_timer/internal/handover/hand_over_queue.h"
#include "hashed_wheel_timer/internal/handover/pairing_heap.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"

namespace hwt::internal {

/// The entries that wait for the worker of one timer: new timeouts, and recheck requests. A new timeout may be
/// cancelled before the worker takes its entry; see Node::arrive(). A recheck request asks the worker to look at a node
/// in the wheel that was cancelled or is now due earlier. By then another timeout may use the node; see
/// Node::recheck().
///
/// Each producer enqueues in the Place that it owns. The worker dequeues: first entries of the queue, then younger ones
/// of the EntryBuffer. Places with entries are listed, so that the worker reads only these, however many places there
/// are. Places with recheck requests have a second list. With it the worker collects cancelled nodes without taking the
/// new timeouts, most of which are cancelled soon.
///
/// For its new timeouts, a place is in the list, filed, or unlisted. In the first two states it is listed. The owner
/// pushes the place onto the list. The worker takes the list, and files each place in a heap by its earliest deadline.
/// When that time has come, the worker unlists the place and dequeues its entries. If the owner of a filed place
/// enqueues an earlier deadline, it pushes the place again.
///
/// Listing races with the worker that empties a place (Dekker). The producer enqueues an entry, passes the light fence,
/// and reads whether the place is listed. The worker unlists it, passes the heavy fence, and reads the entries. One of
/// them sees the other: the worker finds the entry, or the producer lists its place again.
class Inbox {
 public:
  /// The earliest deadline of a place that is not listed.
  static constexpr std::int64_t kUnlisted = std::numeric_limits<std::int64_t>::max();
  /// A bit of Place::earliest_. It is set while the place is not in the list, because it is filed or unlisted
  /// (kUnlisted is odd). Deadlines are rounded down to even nanoseconds, so the bit is free.
  static constexpr std::int64_t kNotInList = 1;
  /// The latest deadline, which never comes, rounded down.
  static constexpr std::int64_t kLatest = kUnlisted & ~kNotInList;

  /// The place of one producer.
  class Place {
   public:
    /// Returns false if the constructor found no memory.
    bool valid() const noexcept { return queue_.valid(); }

    /// Returns whether the place is in the list or filed. For the owner.
    bool is_listed() const noexcept { return earliest_.load(std::memory_order_relaxed) != kUnlisted; }
    /// Returns the number of entries of new timeouts. See EntryBuffer::size().
    std::size_t size() const noexcept { return queue_.size() + young_.size(); }

   private:
    friend class Inbox;
    friend class Intake;

    /// Locks the reading end: the worker to dequeue, the owner to sift or to hand over. Returns false while the other
    /// thread has the lock, so no thread waits. acquire and release hand over the reading ends of `queue_` and
    /// `young_`.
    bool try_lock() noexcept {
      return !locked_.load(std::memory_order_relaxed) && !locked_.exchange(true, std::memory_order_acquire);
    }
    void unlock() noexcept { locked_.store(false, std::memory_order_release); }

    /// Dequeues new timeouts, at most `max`, the oldest first. Returns their number. That may be less than `max`
    /// although more are left, because one call takes either from the queue or from the buffer. Precondition: the
    /// caller has the lock.
    std::size_t dequeue(NodeName* entries, std::size_t max) noexcept;

    // New timeouts. The entries in the queue are older. Most timeouts are cancelled before their entries get there.
    EntryBuffer<NodeName> young_;
    HandOverQueue queue_;
    // A second buffer, so that the worker can collect cancelled nodes even while it has no memory for new timeouts. Its
    // owner does not sift it, so the worker takes from it without the lock.
    EntryBuffer<Node*> rechecks_;
    std::atomic<bool> locked_{false};
    // The owner lowers it. The worker sets kNotInList when it files the place, and kUnlisted when it unlists it. Each
    // is a read-modify-write, so the owner knows whether the place is in the list. acq_rel hands over next_listed_.
    std::atomic<std::int64_t> earliest_{kUnlisted};
    // The deadline for which the owner has listed the place last. Not rounded, so that a timeout that is due a
    // nanosecond earlier, and so perhaps in an earlier tick, wakes the worker. Only the owner uses it.
    std::int64_t listed_for_ = 0;
    Place* next_listed_ = nullptr;  // the owner's until it has pushed the place, then the worker's until it files it
    // Whether it is in the list of places with recheck requests. Exchanged like earliest_, and for the same reasons.
    std::atomic<bool> rechecks_listed_{false};
    Place* next_listed_recheck_ = nullptr;  // like next_listed_, until the worker unlists it
    // Only the worker uses these.
    HeapLinks<Place> filed_;
    Place* next_near_ = nullptr;
    Place* next_far_ = nullptr;
    Place* next_rechecked_ = nullptr;
    bool near_ = false;
    bool far_ = false;
    bool rechecked_ = false;
    std::size_t left_ = 0;           // new timeouts that Intake has still to take
    std::int64_t opened_until_ = 0;  // the earliest deadline that those may have
    std::size_t rechecks_left_ = 0;
  };

  // Called by the owner of the place.

  /// Appends a new timeout. Returns false if there is no room; then call make_room(). Afterwards pass the light fence
  /// and call list().
  static bool put(Place& place, NodeName entry) noexcept { return place.young_.append(entry); }
  /// See EntryBuffer::extend().
  static std::size_t make_room(Place& place, std::size_t most, std::size_t planned) noexcept {
    return place.young_.extend(most, planned);
  }
  /// See EntryBuffer::trim().
  static void trim(Place& place, std::size_t planned) noexcept { place.young_.trim(planned); }
  /// Makes sure that there is room for the next recheck request. Returns false without memory.
  static bool reserve_recheck(Place& place) noexcept { return place.rechecks_.reserve(); }
  /// Enqueues a recheck request. Precondition: reserve_recheck(). Afterwards pass the light fence and call
  /// list_rechecks().
  static void put_recheck(Place& place, Node& node) noexcept {
    [[maybe_unused]] const bool has_room = place.rechecks_.append(&node);
    assert(has_room);
  }
  /// See EntryBuffer::sift(). Does nothing and returns false while the worker dequeues.
  template <class Keep>
  static bool sift(Place& place, std::size_t most, Keep&& keep) noexcept;
  /// Moves the oldest young entries to the queue, at most so many. Moves fewer without memory, and none while the
  /// worker dequeues or has not taken the last ones. Returns their number.
  static std::size_t hand_over(Place& place, std::size_t most) noexcept;
  /// Lists the place, after an entry that is due at `deadline` was enqueued.
  void list(Place& place, std::int64_t deadline) noexcept {
    if (must_list(place, deadline)) [[unlikely]]
      list_anew(place, deadline);
  }
  /// Returns whether list() does anything.
  static bool must_list(const Place& place, std::int64_t deadline) noexcept {
    return deadline < place.listed_for_ || !place.is_listed();
  }

  /// Lists the place, after a recheck request was enqueued. If the worker must take it by a certain time, call list()
  /// too.
  void list_rechecks(Place& place) noexcept {
    if (!place.rechecks_listed_.load(std::memory_order_relaxed)) [[unlikely]]
      list_rechecks_anew(place);
  }

  // Any thread may call these.

  /// A pass for which a thread asks. Bits of one word.
  enum Request : std::uint32_t {
    /// Within this tick: a timeout is due earlier than the time for which its place is listed.
    kUrgent = 1,
    /// Over the recheck requests, within Tuning::kSoon, or this tick if that is longer: only the worker can free the
    /// nodes.
    kRechecks = 2,
    /// Over everything, within Tuning::kSoon, or this tick if that is longer: a cancelled TimerTask waits for its
    /// cancelled(), or many timeouts have stayed pending and belong in the wheel.
    kEverything = 4,
    /// Over everything, within a second: a thread has cancelled timeouts of another thread, which may never sift.
    kDead = 8,
  };
  /// Notes a request. Afterwards wake the worker if it would sleep too long.
  ///
  /// release: the pass that takes the request finds all that the caller has enqueued and listed before.
  void note(Request request) noexcept { requests_.fetch_or(request, std::memory_order_release); }
  /// Asks for a pass: notes the request and wakes the worker if it sleeps. In a timer without a worker it calls the
  /// driver, so it may call the user's on_earlier().
  void ask(Request request, Sleeper& sleeper) noexcept;
  /// Returns the requests that no pass has taken yet.
  std::uint32_t asked() const noexcept { return requests_.load(std::memory_order_relaxed); }
  /// Enqueues a cancelled node of the wheel, whose canceller has no memory for a recheck request. Afterwards ask for
  /// kRechecks. Preconditions: its word lacks kRecheckQueued, the caller has a reference, and a callable was destroyed.
  void put_without_memory(Node& node) noexcept { overflow_.push(node); }

  // Called by the worker.

  /// Returns the places that were pushed onto the list since the last call, linked by next_listed_. They stay listed.
  /// Call file() for each.
  Place* take_listed() noexcept { return listed_.take_all(); }
  /// Returns the places with recheck requests that were pushed since the last call, linked by next_listed_recheck_.
  /// Call unlist_rechecks() for each.
  Place* take_listed_rechecks() noexcept { return listed_rechecks_.take_all(); }
  /// Marks the place as filed and returns its earliest deadline. From now on the owner may push the place again.
  static std::int64_t file(Place& place) noexcept {
    return place.earliest_.fetch_or(kNotInList, std::memory_order_acq_rel);
  }

  // After these, pass the heavy fence and then read the entries of the place.

  /// Unlists a place that was filed with this deadline, unless its owner has pushed it again.
  static void unlist(Place& place, std::int64_t deadline) noexcept {
    deadline |= kNotInList;
    place.earliest_.compare_exchange_strong(deadline, kUnlisted, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  static void unlist_rechecks(Place& place) noexcept {
    place.rechecks_listed_.exchange(false, std::memory_order_acq_rel);
  }

  /// Takes these requests. Call it before Intake::open(), so that a request that comes during the pass asks for another
  /// one.
  void take_requests(std::uint32_t requests) noexcept {
    if ((asked() & requests) != 0) requests_.fetch_and(~requests, std::memory_order_acquire);
  }

  /// Returns the nodes of put_without_memory(), linked by Node::next_in_overflow().
  Node* take_overflow() noexcept { return overflow_.take_all(); }

 private:
  void list_anew(Place& place, std::int64_t deadline) noexcept;
  void list_rechecks_anew(Place& place) noexcept;

  alignas(kCacheLine) detail::IntrusiveStack<Place, &Place::next_listed_> listed_;
  detail::IntrusiveStack<Place, &Place::next_listed_recheck_> listed_rechecks_;
  // Cancelled nodes of the wheel, without kRecheckQueued: cancel() must not fail for lack of memory.
  detail::IntrusiveStack<Node, &Node::next_in_overflow> overflow_;
  std::atomic<std::uint32_t> requests_{0};  // release when set, acquire when taken
};

template <class Keep>
bool Inbox::sift(Place& place, std::size_t most, Keep&& keep) noexcept {
  if (!place.try_lock()) return false;
  const bool ended = place.young_.sift(most, keep);
  place.unlock();
  return ended;
}

}  // namespace hwt::internal
