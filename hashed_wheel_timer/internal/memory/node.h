// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/detail/task.h"
#include "hashed_wheel_timer/internal/memory/node_word.h"
#include "hashed_wheel_timer/internal/platform/waiting.h"
#include "hashed_wheel_timer/internal/report/log.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"
#include "hashed_wheel_timer/timeout.h"

namespace hwt::internal {

class Core;
struct Producer;

/// One timeout in one cache line, its task inside.
///
/// References: one for each handle, and one for the timer. The timer's moves with the node from the inbox to the wheel,
/// and then to the worker, which expires the timeout or drops it after a cancel. The thread that drops the last one
/// keeps the node in its own pool, or gives it back to another.
///
/// Lives: a node is one timeout after another. A life begins with publish(), and ends with end_life() or
/// withdraw_life(). A parameter `life` is the even generation with which it began, as an entry or an id names it.
///
/// Withdrawn: a producer that cancels its own timeout before the worker has seen it takes the timer's reference along
/// and raises the generation, all in one exchange. The entry that stays in the inbox names an old generation, and the
/// worker skips it. The producer reuses the node for its next timeout while the node is still in its cache. Most
/// timeouts end so, and need one read-modify-write in all.
struct alignas(kCacheLine) Node : WheelItem, NodeWord {
  constexpr Node() noexcept : Node(kFirstGeneration) {}
  constexpr explicit Node(std::uint32_t generation) noexcept : word(free_word(generation)), storage{}, deadline(0) {}

  /// A change that hands over the task or the node releases, and the next owner acquires. So it sees all writes to the
  /// node.
  std::atomic<std::uint64_t> word;

  alignas(detail::kTaskStorageAlign) std::byte storage[detail::kTaskStorageSize];

  /// Nanoseconds of the timer's clock. Written by the producer before the node is published, then exchanged by
  /// reschedule() in any thread. Relaxed, ordered by `word`; but see Slab::trace(). A thread that exchanges the
  /// deadline exchanges the word afterwards. A thread that acts on a deadline has read the word before, and acts by an
  /// exchange of that same value. So it has read the deadline of every reschedule() that has returned.
  std::atomic<std::int64_t> deadline;

  /// The link of a node, read and written like a pointer. It has the memory of `position`, because a node in a list is
  /// neither Queued nor in the wheel. Relaxed, as `position` is: the hand-over of the list orders the links. Other
  /// threads only compare the value with their producer, in published_by().
  class Link {
   public:
    explicit Link(RelaxedPosition& memory) noexcept : memory_(&memory) {}
    Link(const Link&) = default;
    Link& operator=(const Link&) = delete;  // would not say whether it changes the link or the node that is meant
    operator Node*() const noexcept { return reinterpret_cast<Node*>(static_cast<Position>(*memory_)); }
    Link& operator=(Node* node) noexcept {
      *memory_ = reinterpret_cast<Position>(node);
      return *this;
    }
    Node* exchange(Node* node) noexcept {
      Node* const before = *this;
      *this = node;
      return before;
    }

   private:
    RelaxedPosition* memory_;
  };
  /// Link of the one list that the node is in. A free node is in a pool, in a batch, or with the Collector
  /// (Page::home). Other lists are of retired nodes, of nodes that a sift has dropped, and of the unprocessed timeouts
  /// of a stopped timer.
  Link next() noexcept { return Link(position); }

  /// Link of a cancelled node in the inbox's overflow. The node is still in the wheel, so the link is where the last
  /// bytes of a large callable were. A shared task does not need these bytes.
  Node*& next_in_overflow() noexcept {
    static_assert(sizeof(detail::SharedTask) <= detail::kKeptStorageSize);
    return *std::launder(reinterpret_cast<Node**>(storage + detail::kKeptStorageSize));
  }

  NodeState state(std::memory_order order) const noexcept { return state_of(word.load(order)); }
  detail::TaskKind kind() const noexcept { return kind_of(word.load(std::memory_order_relaxed)); }
  bool shared() const noexcept { return kind() == detail::TaskKind::Shared; }

  /// The core that it belongs to, from the header of its slab.
  Core& core() const noexcept;

  /// The task as a user sees it.
  TimerTask& task() noexcept;
  /// The node that a task was built in.
  static Node& around(TimerTask& task) noexcept {
    return *reinterpret_cast<Node*>(reinterpret_cast<std::uintptr_t>(&task) & ~std::uintptr_t{kCacheLine - 1});
  }
  TimerTask& stored_task() noexcept { return *std::launder(reinterpret_cast<TimerTask*>(storage)); }

  /// Where on() makes the task run, or null. Called by the owner of the task.
  const BatchExecutor* executor() noexcept { return stored_task().hwt_executor(); }

  /// Notifies the task that it will not run. Called by the owner of the task, which has a reference.
  void tell(detail::NotRun why) noexcept;

  /// Destroys the task if it still exists. The owner of a callable calls it as soon as that can never run again. For a
  /// shared task, the thread that drops the last reference calls it.
  void destroy_task() noexcept;

  std::uint32_t generation() const noexcept { return generation_of(word.load(std::memory_order_relaxed)); }

  /// Begins a life, with the task in place: Queued, with a reference for the timer, and one for a handle unless it gets
  /// an id. The producer calls it. Returns the generation, for the entry of the inbox. A refused timeout is
  /// Cancelled from the start, so that no other thread comes to it. The release pairs with the acquire load of
  /// arrive(), and with that of a thread with an id.
  std::uint32_t publish(detail::TaskKind task_kind, bool named, Producer& producer,
                        NodeState state = NodeState::Queued) noexcept {
    position = reinterpret_cast<Position>(&producer);
    const std::uint64_t before = word.load(std::memory_order_relaxed);
    word.store(published(before, task_kind, named) + static_cast<std::uint64_t>(state), std::memory_order_release);
    return generation_of(before);
  }

  /// Ends a life: destroys a task that still exists, and raises the generation, so that no id and no entry names the
  /// node any more. Returns false if the node must be retired, because its generations are used up. Called by the
  /// thread that has dropped the last reference, before the node is free. release: a thread that waits by an id sees
  /// all that the task did.
  bool end_life() noexcept {
    destroy_task();
    const std::uint32_t later = next_life(generation());
    word.store(free_word(later), std::memory_order_release);
    return usable(later);
  }

  /// Returns whether this producer published the node, if it is Queued. Until it is in the wheel, `position` stores its
  /// producer. Otherwise the result is arbitrary, because `position` is a place in the wheel or a link. Any thread.
  bool published_by(const Producer& producer) const noexcept {
    return position == reinterpret_cast<Position>(const_cast<Producer*>(&producer));
  }

  /// The result of arrive(), which the worker calls for the node of an entry.
  enum class Arrival {
    Taken,      // the node is InWheel now, and the worker must insert it
    Cancelled,  // the worker must drop the timer's reference
    Withdrawn,  // the node may be another timeout by now
  };
  Arrival arrive(std::uint32_t generation) noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    for (;;) {
      if (generation_of(seen) != generation) return Arrival::Withdrawn;
      if (state_of(seen) == NodeState::Cancelled) return Arrival::Cancelled;
      if (word.compare_exchange_weak(seen, with_state(seen, NodeState::InWheel), std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        return Arrival::Taken;
      }
    }
  }

  /// Adds a reference for a thread that has an id and no handle. Returns false unless the timeout of this life is
  /// pending, or a thread or an executor has its task. Only an exchange of a word with a reference can add one, because
  /// the thread that has dropped the last one owns the node. Tests kNamed, because the number may be no id that was
  /// given out. Masks `~1U`, because a timeout that was withdrawn has the odd generation while its callable is
  /// destroyed.
  bool add_reference_of(std::uint32_t life) noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while ((generation_of(seen) & ~1U) == life && (seen & kNamed) != 0 && (seen & kReferences) != 0 &&
           (pending(seen) || (seen & (kBusy | kHandedOver)) != 0)) {
      if (too_many_references(seen)) [[unlikely]]
        die("more than 2^21 handles of one timeout");
      if (word.compare_exchange_weak(seen, seen + kReference, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  /// Returns whether the task of this life, which has an id, runs or is with an executor. acquire: if it returns false,
  /// the caller sees everything that the task did.
  bool is_claimed(std::uint32_t life) const noexcept {
    const std::uint64_t seen = word.load(std::memory_order_acquire);
    return generation_of(seen) == life && (seen & kNamed) != 0 && state_of(seen) == NodeState::Expired &&
           (seen & (kBusy | kHandedOver)) != 0;
  }

  /// Returns whether this life, which has an id, is pending or claimed, or a canceller is destroying its callable.
  /// acquire: as in is_claimed().
  bool is_live(std::uint32_t life) const noexcept {
    const std::uint64_t seen = word.load(std::memory_order_acquire);
    return (generation_of(seen) & ~1U) == life && (seen & kNamed) != 0 &&
           (pending(seen) || (seen & (kBusy | kHandedOver)) != 0);
  }

  /// The result of cancel().
  struct Cancel {
    std::uint64_t before;  // the word; not pending if another thread was faster
    bool asks;             // the caller must enqueue a recheck request
  };
  /// For Core::cancel(): replaces Queued or InWheel with Cancelled.
  ///
  /// If the task is a callable, kBusy is set and the caller has one more reference. It must destroy the callable and
  /// call finish(). `own`: the caller is the producer, and withdraws a node that is still Queued. A shared task is not
  /// withdrawn, because the worker calls its cancelled().
  ///
  /// If the node is InWheel, reserve() makes room for a recheck request. Without memory it returns false. If no other
  /// request is queued then, the caller must call Inbox::put_without_memory().
  template <class Reserve>
  Cancel cancel(bool own, const Reserve& reserve) noexcept {
    return cancel_if([](std::uint64_t) { return true; }, own, 0, reserve);
  }

  /// cancel() for a thread that has an id and no handle. Returns a word that is not pending if there is no timeout with
  /// an id in this life. If it was InWheel, the caller has a reference more, because it must enqueue a recheck request.
  template <class Reserve>
  Cancel cancel_life(std::uint32_t life, bool own, const Reserve& reserve) noexcept {
    constexpr std::uint64_t kNamedLife = kNamed | ~(kGeneration - 1);
    const std::uint64_t name = std::uint64_t{life} << kGenerationShift | kNamed;
    return cancel_if([name](std::uint64_t seen) { return (seen & kNamedLife) == name; }, own, kReference, reserve);
  }

  /// The producer cancels its own timeout, which has an id, no handle, and a task that needs no destruction. If it is
  /// still Queued, this ends its life in the same exchange, and the node is free. Returns false otherwise.
  bool withdraw_life(std::uint32_t life) noexcept {
    std::uint64_t expected = published(free_word(life), detail::TaskKind::Trivial, true);
    return has_next(life) && word.compare_exchange_strong(expected, free_word(life + 2), std::memory_order_acq_rel,
                                                          std::memory_order_relaxed);
  }

  /// cancel() by a thread with a handle, of a timeout that is Queued and whose task is of this kind, which is not
  /// Shared. Returns false for any other timeout, and if another thread changed the word at the same time.
  ///
  /// `own`: published_by() has returned true for the caller's producer. The handle keeps the node in this life, which
  /// is Queued only until it is in the wheel. So an exchange of Queued shows that the answer was not an arbitrary one.
  template <detail::TaskKind kKind>
  bool cancel_queued(bool own) noexcept {
    constexpr std::uint64_t kQueued = queued(kKind);
    const std::uint64_t change = cancelled(kQueued, own, false) - kQueued;  // a constant where `own` is one
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    return is_queued(seen, kKind) &&
           word.compare_exchange_strong(seen, seen + change, std::memory_order_acq_rel, std::memory_order_relaxed);
  }

  /// Returns whether a producer's cancel of its own timeout, whose word was `before`, has dropped the last reference.
  static bool leaves_no_reference(std::uint64_t before) noexcept {
    return is_queued(before, detail::TaskKind::Trivial) && (before & kReferences) == kReference;
  }

  /// The producer takes a node back that it has published in this life, with the timer's reference. Returns false if
  /// another thread was faster, because the worker has the node or the timeout was cancelled. Then the node may be
  /// another timeout by now.
  bool withdraw(std::uint32_t life) noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while (generation_of(seen) == life && state_of(seen) == NodeState::Queued) {
      const std::uint64_t left = withdrawn(with_state(seen, NodeState::Cancelled));
      if (word.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
    }
    return false;
  }

  /// Cancels a node, for the worker that empties a stopped timer. Returns false if it was cancelled before.
  bool abandon() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while (pending(seen)) {
      if (word.compare_exchange_weak(seen, with_state(seen, NodeState::Cancelled), std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  /// The result of recheck().
  enum class Sight {
    Nothing,    // the node has changed meanwhile, or another recheck request was first
    Cancelled,  // the worker must take it out of the wheel and drop the timer's reference
    Moved,      // it is pending, and may have another deadline
  };
  /// Handles a recheck request, on the worker. Without kRecheckQueued it is an old one, of an earlier life of the node.
  Sight recheck() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    for (;;) {
      const bool moved = state_of(seen) == NodeState::InWheel;
      if ((seen & kRecheckQueued) == 0 || (!moved && state_of(seen) != NodeState::Cancelled)) return Sight::Nothing;
      const std::uint64_t left = seen & ~(kRecheckQueued | kMoved);
      if (word.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return moved ? Sight::Moved : Sight::Cancelled;
      }
    }
  }

  /// Claims a due timeout for the worker. `seen`: the word before it read the deadline. `claim`: the bits to add.
  /// Returns false if the word has changed, or if it had kMoved, which this clears. Then `seen` is the present word,
  /// and the worker must read the deadline again.
  bool claim(std::uint64_t& seen, std::uint64_t claim) noexcept {
    if ((seen & kMoved) != 0) [[unlikely]] {
      seen = word.fetch_and(~kMoved, std::memory_order_acq_rel) & ~kMoved;
      return false;
    }
    return word.compare_exchange_weak(seen, with_state(seen, NodeState::Expired) + claim, std::memory_order_acq_rel,
                                      std::memory_order_relaxed);
  }

  /// Takes the task of an expired timeout over from an executor. The caller is then busy with the task and has one more
  /// reference, until it calls finish(). Returns false if the task was not handed over, or another thread has it.
  bool take_over() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while ((seen & kHandedOver) != 0) {
      if (word.compare_exchange_weak(seen, seen - kHandedOver + kBusy + kReference, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  /// Waits until no other thread is busy with the task, and sees all that it did. Any thread that has a reference.
  void wait_while_busy() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while ((seen & kBusy) != 0) {
      // No release: the flag hands nothing over, and the exchange continues the release sequence of the word.
      if ((seen & kAwaited) == 0 && !word.compare_exchange_weak(seen, seen | kAwaited, std::memory_order_acquire))
        continue;
      await_change(word, seen | kAwaited);
      seen = word.load(std::memory_order_acquire);
    }
  }

  void add_reference() noexcept {
    if (too_many_references(word.fetch_add(kReference, std::memory_order_relaxed))) [[unlikely]] {
      die("more than 2^21 handles of one timeout");
    }
  }

  /// Returns whether it was the last reference; then the caller must give the node back.
  bool drop_references(std::uint64_t count) noexcept {
    if (is_sole_owner(count)) return true;
    return (word.fetch_sub(count * kReference, std::memory_order_acq_rel) & kReferences) == count * kReference;
  }

  /// Clears kBusy and drops references, in one exchange. The node may be gone afterwards. Returns what
  /// drop_references() returns.
  bool finish(std::uint64_t count) noexcept {
    // A waiter has a reference, so no thread waits for the sole owner.
    if (is_sole_owner(count)) return true;
    // release: pairs with the acquire of wait_while_busy().
    const std::uint64_t before = word.fetch_sub(count * kReference + kBusy, std::memory_order_acq_rel);
    if ((before & kAwaited) != 0) [[unlikely]]
      announce_change(word);  // the node may be gone: see announce_change()
    return (before & kReferences) == count * kReference;
  }

  static Timeout adopt(Node* node) noexcept { return Timeout(node); }
  static Node* of(const Timeout& timeout) noexcept { return timeout.node_; }
  static Node* disown(Timeout& timeout) noexcept { return std::exchange(timeout.node_, nullptr); }

 private:
  /// Whether all references are the caller's `count`, and no other thread can add one. Then it needs no
  /// read-modify-write to drop them. acquire: pairs with the release by which other threads dropped theirs.
  bool is_sole_owner(std::uint64_t count) const noexcept {
    return (word.load(std::memory_order_acquire) & (kReferences | kNamed)) == count * kReference;
  }

  /// `held`: added to the word if the node is InWheel.
  template <class Matches, class Reserve>
  Cancel cancel_if(const Matches& matches, bool own, std::uint64_t held, const Reserve& reserve) noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    for (bool has_room = false; pending(seen);) {
      if (!matches(seen)) return {with_state(seen, NodeState::Cancelled), false};
      // Even if another thread's request is queued, because that thread may only be about to enqueue it.
      const bool in_wheel = state_of(seen) == NodeState::InWheel;
      const bool asks = in_wheel && (has_room = has_room || reserve());
      if (word.compare_exchange_weak(seen, cancelled(seen, own, asks) + (in_wheel ? held : 0),
                                     std::memory_order_acq_rel, std::memory_order_acquire)) {
        return {seen, asks};
      }
    }
    return {seen, false};
  }
};
inline TimerTask& Node::task() noexcept {
  return shared() ? static_cast<detail::SharedTask&>(stored_task()).task() : stored_task();
}

inline void Node::destroy_task() noexcept {
  const detail::TaskKind destroyed = kind();
  if (destroyed != detail::TaskKind::Callable && destroyed != detail::TaskKind::Shared) return;
  // relaxed: a thread that reads the kind later got the node from this thread, or is this thread.
  word.fetch_and(~kKindMask, std::memory_order_relaxed);
  stored_task().~TimerTask();
}

static_assert(sizeof(Node) == kCacheLine);
static_assert(sizeof(Timeout) == sizeof(void*));

}  // namespace hwt::internal
