#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/handover/hand_over_queue.h"
#include "hashed_wheel_timer/internal/handover/pairing_heap.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"

namespace hwt::internal {

/// The entries that wait for the worker of one timer: new timeouts, and recheck requests. A new timeout may be
/// withdrawn by the time that the worker takes its entry; see Node::arrive(). A recheck request asks the worker to look
/// at a node in the wheel that was cancelled or is now due earlier. When the worker comes to it, the node may be
/// something else; see Node::recheck().
///
/// Any thread enqueues, in a Place that it owns. Only the worker takes. Places with entries are listed, so that the
/// worker looks only at these, however many places there are. Places with recheck requests have a list of their own:
/// the worker collects cancelled nodes without taking the new timeouts, most of which are cancelled soon.
///
/// Listing races with the worker that empties a place (Dekker). The producer enqueues an entry, passes the light fence,
/// and reads whether the place is listed. The worker unlists it, passes the heavy fence, and reads the queue. One of
/// them sees the other: the worker finds the entry, or the producer lists its place again.
///
/// The worker takes the list and files each place by its earliest deadline, and it unlists a place only when that time
/// has come. A filed place is listed, but not in the list. A producer with an earlier deadline puts it there again.
class Inbox {
 public:
  /// The earliest deadline of a place that is not listed.
  static constexpr std::int64_t kUnlisted = std::numeric_limits<std::int64_t>::max();
  /// A bit of Place::earliest_: the place is not in the list, because the worker has filed it, or because it is
  /// kUnlisted. Deadlines are rounded down to even nanoseconds.
  static constexpr std::int64_t kNotInList = 1;

  /// The place of one producer.
  class Place {
   public:
    /// False after a lack of memory.
    bool valid() const noexcept { return queue_.valid(); }
    ~Place() { delete rechecks_.load(std::memory_order_relaxed); }
    Place() = default;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// The earliest deadline that may wait here, or kUnlisted. Worker.
    std::int64_t earliest() const noexcept { return earliest_.load(std::memory_order_relaxed); }
    /// Returns at least the number of entries that the caller knows to be here. Any thread.
    std::size_t size() const noexcept { return queue_.size() + spilled_.load(std::memory_order_relaxed); }

   private:
    friend class Inbox;
    friend class Intake;

    /// Taken by the thread that dequeues: the worker, or the owner that sifts. Returns false while the other one has
    /// it; no thread waits for it. acquire and release: they hand over the reading end of the queue, and the spill.
    bool try_lock() noexcept {
      return !locked_.load(std::memory_order_relaxed) && !locked_.exchange(true, std::memory_order_acquire);
    }
    void unlock() noexcept { locked_.store(false, std::memory_order_release); }

    std::size_t dequeue(NodeName* entries, std::size_t max) noexcept;

    HandOverQueue<NodeName> queue_;
    // A queue of its own, because the memory of cancelled timeouts must come back even while there is none for new
    // ones. Made by the owner's first recheck request. release and acquire: the worker finds it constructed.
    std::atomic<HandOverQueue<Node*>*> rechecks_{nullptr};
    std::atomic<bool> locked_{false};
    // The owner lowers it. The worker marks it as filed and sets it to kUnlisted. Each is a read-modify-write, so the
    // owner knows whether the place is in the list. acq_rel: next_listed_ goes with it.
    std::atomic<std::int64_t> earliest_{kUnlisted};
    Place* next_listed_ = nullptr;  // the owner's until it has pushed the place, then the worker's until it files it
    // Whether it is in the list of places with recheck requests. Exchanged like earliest_, and for the same reasons.
    std::atomic<bool> asks_{false};
    Place* next_asking_ = nullptr;  // as next_listed_
    // The worker's.
    HeapLinks<Place> filed_;
    Place* next_near_ = nullptr;
    Place* next_far_ = nullptr;
    Place* next_rechecked_ = nullptr;
    bool near_ = false;
    bool far_ = false;
    bool rechecked_ = false;
    std::size_t left_ = 0;  // new timeouts that are to be taken
    std::size_t rechecks_left_ = 0;
    // Entries that sift() could not put back because memory was short. They are younger than all entries in the queue.
    // Guarded by the lock; the number is read without it.
    std::array<NodeName, HandOverQueue<NodeName>::kBlock> spill_;
    std::atomic<std::size_t> spilled_{0};
  };

  // The owner of a place.

  /// False: no memory. After it, the light fence and then list().
  static bool put(Place& place, NodeName entry) noexcept { return place.queue_.enqueue(entry); }
  /// Enqueues a recheck request. Returns false without memory. After it, the light fence and then list_rechecks().
  static bool put_recheck(Place& place, Node& node) noexcept;
  /// Returns whether the place has recheck requests that the worker has not taken yet. Precondition: it has had one.
  static bool has_rechecks(const Place& place) noexcept {
    return place.rechecks_.load(std::memory_order_relaxed)->size() != 0;
  }
  /// Takes all entries out and puts those back that `keep` wants, in their order. Not for a place with fewer entries
  /// than fill some blocks. Returns false, and has done nothing, while the worker dequeues. Afterwards spilled() may be
  /// true: then no put() until unspill() has returned true.
  template <class Keep>
  static bool sift(Place& place, Keep&& keep) noexcept;
  static bool spilled(const Place& place) noexcept { return place.spilled_.load(std::memory_order_relaxed) != 0; }
  /// False: no memory.
  static bool unspill(Place& place) noexcept;
  /// Lists the place, after an entry that is due at `deadline` was enqueued.
  void list(Place& place, std::int64_t deadline) noexcept {
    const std::int64_t earliest = place.earliest();
    if (deadline < earliest || earliest == kUnlisted) [[unlikely]]
      list_anew(place, deadline);
  }

  /// Lists the place, after a recheck request was enqueued. If the worker must come to it by a time, list() too.
  void list_rechecks(Place& place) noexcept {
    if (!place.asks_.load(std::memory_order_relaxed)) [[unlikely]]
      list_rechecks_anew(place);
  }

  // Any thread.

  /// For a recheck request for which there is no memory or no place.
  void put_without_memory(Node& node) noexcept { overflow_.push(node); }
  bool overflown() const noexcept { return !overflow_.empty(); }

  // All of them before the light fence.

  /// Asks the worker to look within this tick, because a timeout is due earlier than its entry says.
  void note_urgent() noexcept { urgent_.store(true, std::memory_order_release); }
  /// Asks the worker to take the recheck requests within kSoon, or this tick if that is longer, because there is memory
  /// that only the worker can give back.
  void note_awaited() noexcept { awaited_.store(true, std::memory_order_release); }
  /// Asks the worker to take everything within the same time. A TimerTask was cancelled and waits for its cancelled(),
  /// or there are many timeouts that belong in the wheel.
  void note_all_awaited() noexcept { all_awaited_.store(true, std::memory_order_release); }
  static constexpr std::int64_t kSoon = 1'000'000;  // ns
  /// Asks the worker to take everything within a second. Threads have cancelled timeouts of other threads, and these
  /// may do nothing more. Returns whether the worker was not asked yet. relaxed: the word of each node tells that it
  /// was cancelled.
  bool note_dead() noexcept {
    return !dead_.load(std::memory_order_relaxed) && !dead_.exchange(true, std::memory_order_relaxed);
  }

  // The worker.

  /// The places that were listed since, linked by next_listed_. They stay listed. Then file() of each.
  Place* take_listed() noexcept { return listed_.take_all(); }
  /// The places with recheck requests that were listed since, linked by next_asking_. Then unlist_rechecks() of each.
  Place* take_asking() noexcept { return asking_.take_all(); }
  /// Returns the earliest deadline. After it, the owner may put the place into the list again.
  static std::int64_t file(Place& place) noexcept {
    return place.earliest_.fetch_or(kNotInList, std::memory_order_acq_rel);
  }

  // After them, the heavy fence, and then a look into the queue.

  /// Unlists a place that was filed with this deadline, unless its owner has put it into the list again.
  static void unlist(Place& place, std::int64_t deadline) noexcept {
    deadline |= kNotInList;
    place.earliest_.compare_exchange_strong(deadline, kUnlisted, std::memory_order_acq_rel, std::memory_order_relaxed);
  }
  static void unlist_rechecks(Place& place) noexcept { place.asks_.exchange(false, std::memory_order_acq_rel); }

  /// A chain linked by Node::next.
  Node* take_overflow() noexcept { return overflow_.take_all(); }
  bool urgent() const noexcept { return urgent_.load(std::memory_order_relaxed); }
  bool awaited() const noexcept { return awaited_.load(std::memory_order_relaxed) || all_awaited(); }
  bool all_awaited() const noexcept { return all_awaited_.load(std::memory_order_relaxed); }
  bool has_dead() const noexcept { return dead_.load(std::memory_order_relaxed); }
  /// Before open() of the Intake.
  void clear_awaited() noexcept {
    if (awaited_.load(std::memory_order_relaxed)) awaited_.exchange(false, std::memory_order_acquire);
  }
  /// Before open_all() of the Intake.
  void clear_notes() noexcept {
    clear_awaited();
    if (urgent()) urgent_.exchange(false, std::memory_order_acquire);
    if (all_awaited()) all_awaited_.exchange(false, std::memory_order_acquire);
    if (has_dead()) dead_.store(false, std::memory_order_relaxed);
  }

 private:
  void list_anew(Place& place, std::int64_t deadline) noexcept;
  void list_rechecks_anew(Place& place) noexcept;

  alignas(kCacheLine) detail::IntrusiveStack<Place, &Place::next_listed_> listed_;
  detail::IntrusiveStack<Place, &Place::next_asking_> asking_;
  // For when a queue has no memory: cancel() must not fail.
  detail::IntrusiveStack<Node, &Node::next> overflow_;
  // release when noted, acquire when cleared. The entry that the note is about was enqueued, and its place listed,
  // before the note. So the pass that clears the note finds the entry.
  std::atomic<bool> urgent_{false};
  std::atomic<bool> awaited_{false};
  std::atomic<bool> all_awaited_{false};
  std::atomic<bool> dead_{false};
};

template <class Keep>
bool Inbox::sift(Place& place, Keep&& keep) noexcept {
  if (!place.try_lock()) return false;
  std::array<NodeName, HandOverQueue<NodeName>::kBlock> batch;
  std::size_t spilled = place.spilled_.load(std::memory_order_relaxed);
  for (std::size_t left = place.queue_.size(); left != 0 && spilled == 0;) {
    // Takes a whole block at a time. That frees the block, and the queue uses it for the entries that are put back.
    // Only if nearly all are kept, the last of them may need one block more.
    const std::size_t count = place.queue_.dequeue(batch.data(), std::min(left, batch.size()));
    if (count == 0) break;
    left -= count;
    for (std::size_t i = 0; i < count; ++i) {
      if (!keep(batch[i]) || (spilled == 0 && place.queue_.enqueue(batch[i]))) continue;
      place.spill_[spilled++] = batch[i];
    }
  }
  place.spilled_.store(spilled, std::memory_order_relaxed);
  place.unlock();
  return true;
}

}  // namespace hwt::internal
