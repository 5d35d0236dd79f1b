#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "hashed_wheel_timer/internal/wheel_item.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

class Core;

/// What a timeout is in its life. Each arrow is one compare-exchange of Node::word, so exactly one thread wins it; the
/// winner owns the task from then on.
///
///   from      to         by
///   Queued    InWheel    the worker, when it takes the node from the pending queue
///   Queued    Cancelled  cancel(), new_timeout() that finds the timer stopped
///   InWheel   Expired    the worker
///   InWheel   Cancelled  cancel(), the worker that empties a stopped timer
enum class State : std::uint32_t { Queued = 0, InWheel = 1, Expired = 2, Cancelled = 3 };

/// One timeout in one cache line, its task inside.
///
/// References: one for each handle, and one for the timer, which moves with the node from the pending queue to the
/// wheel and from there to whoever takes it out: the worker that expires it or collects it after a cancel. The last one
/// to go gives the node back to its pool.
///
/// Withdrawn: a producer that cancels its own timeout before the worker has seen it takes the timer's reference along
/// and raises the generation, all in one exchange. What is left in the queue then names a generation that is gone, and
/// the worker passes over it; the node is free for the producer's next timeout while it is still in its cache. That is
/// the life of most timeouts, and it needs one read-modify-write in all.
struct alignas(kCacheLine) Node : WheelItem {
  // The word, from its lowest bit: the state, the task's kind, a flag, the number of references, and the generation.
  // The generation tells apart the lives of a node, and, in the wheel, the deadlines of a timeout. That it comes around
  // while an entry of the pending queue names it would take as many more entries, 64 GiB of them.
  static constexpr std::uint64_t kStateMask = 3;
  static constexpr int kKindShift = 2;
  static constexpr std::uint64_t kKindMask = std::uint64_t{3} << kKindShift;
  static constexpr std::uint64_t kMoving = std::uint64_t{1} << 4;  // a thread is changing the deadline
  static constexpr std::uint64_t kReference = std::uint64_t{1} << 5;
  static constexpr int kGenerationShift = 32;
  static constexpr std::uint64_t kGeneration = std::uint64_t{1} << kGenerationShift;
  static constexpr std::uint64_t kReferences = kGeneration - kReference;

  /// The memory order of every change is acq_rel where it hands the task or the node over, so that all that was written
  /// to the node before is seen by the next owner.
  std::atomic<std::uint64_t> word;

  alignas(detail::kTaskStorageAlign) std::byte storage[detail::kTaskStorageSize];

  /// Nanoseconds of steady_clock. Written by the producer before the node is published, then by who has set kMoving.
  /// Relaxed, with the order of `word`: who takes the node out of the queue, and who wins the exchange to Expired, has
  /// read the latest.
  std::atomic<std::int64_t> deadline;

  /// Link of whichever list the node is in: free nodes; the overflow of the cancelled queue; the unprocessed ones of a
  /// stopped timer. Only one of them is ever followed.
  Node* next;

  static State state_of(std::uint64_t word) noexcept { return static_cast<State>(word & kStateMask); }
  static std::uint64_t with_state(std::uint64_t word, State state) noexcept {
    return (word & ~kStateMask) | static_cast<std::uint64_t>(state);
  }
  static detail::TaskKind kind_of(std::uint64_t word) noexcept {
    return static_cast<detail::TaskKind>((word & kKindMask) >> kKindShift);
  }
  static std::uint32_t generation_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word >> kGenerationShift);
  }
  static bool pending(std::uint64_t word) noexcept {
    return state_of(word) == State::Queued || state_of(word) == State::InWheel;
  }

  State state(std::memory_order order) const noexcept { return state_of(word.load(order)); }
  detail::TaskKind kind() const noexcept { return kind_of(word.load(std::memory_order_relaxed)); }
  bool shared() const noexcept { return kind() == detail::TaskKind::Shared; }

  // always_inline: gcc drops calls of a function that only prefetches.
  [[gnu::always_inline]] void prefetch() const noexcept {
#if defined(__GNUC__)
    __builtin_prefetch(this, 1);
#endif
  }

  /// The core that it belongs to, from the header of its slab.
  Core& core() const noexcept;

  /// The task as a user sees it.
  TimerTask& task() noexcept;
  TimerTask& stored_task() noexcept { return *std::launder(reinterpret_cast<TimerTask*>(storage)); }

  /// Destroys the task if it is still there: a callable for the owner of the task, as soon as it can never run again; a
  /// shared one for whoever drops the last reference.
  void destroy_task() noexcept;

  /// The producer, with the task in place: Queued, with a reference for the timer and one for the handle. Returns the
  /// generation, which the queue carries. release: pairs with the worker's first look at the word.
  std::uint32_t publish(detail::TaskKind task_kind) noexcept {
    const std::uint64_t generation = word.load(std::memory_order_relaxed) & ~(kGeneration - 1);
    word.store(generation | 2 * kReference | static_cast<std::uint64_t>(task_kind) << kKindShift |
                   static_cast<std::uint64_t>(State::Queued),
               std::memory_order_release);
    return static_cast<std::uint32_t>(generation >> kGenerationShift);
  }

  /// What the worker finds at an entry of the pending queue.
  enum class Arrival {
    Taken,      // now InWheel, and the worker's to insert
    Cancelled,  // the timer's reference is the worker's to drop
    Withdrawn,  // nothing is left of it; the node may be another timeout by now
  };
  Arrival arrive(std::uint32_t generation) noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    for (;;) {
      if (generation_of(seen) != generation) return Arrival::Withdrawn;
      if (state_of(seen) == State::Cancelled) return Arrival::Cancelled;
      if (word.compare_exchange_weak(seen, with_state(seen, State::InWheel), std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        return Arrival::Taken;
      }
    }
  }

  /// cancel(): leaves Queued or InWheel for Cancelled. Returns the word that it left, or one that is not pending when
  /// another thread was faster. A callable counts as gone from then on: the caller destroys it. `own`: the caller is
  /// the producer of the node, and withdraws it if it is still queued; not a shared task, whose cancelled() the worker
  /// calls.
  std::uint64_t cancel(bool own) noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while (pending(seen)) {
      std::uint64_t left = with_state(seen, State::Cancelled);
      if (kind_of(seen) == detail::TaskKind::Callable) left = (left & ~kKindMask) + kReference;
      if (own && state_of(seen) == State::Queued && kind_of(seen) != detail::TaskKind::Shared) {
        left += kGeneration - kReference;
      }
      if (word.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_acquire)) break;
    }
    return seen;
  }

  /// The producer withdraws a node that the timer had no right to any more. False: the worker has it already.
  bool withdraw() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while (state_of(seen) == State::Queued) {
      const std::uint64_t left = with_state(seen, State::Cancelled) + kGeneration - kReference;
      if (word.compare_exchange_weak(seen, left, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
    }
    return false;
  }

  /// The worker takes back what it has in its hands: from InWheel to Cancelled; false: it has been cancelled already.
  bool abandon() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while (pending(seen)) {
      if (word.compare_exchange_weak(seen, with_state(seen, State::Cancelled), std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }

  /// reschedule(): sets kMoving, which one thread at a time can do. Returns the word before, or one that is not
  /// pending. acquire: the deadline that the one before has stored.
  std::uint64_t begin_move() noexcept {
    std::uint64_t seen = word.load(std::memory_order_acquire);
    while (pending(seen)) {
      if ((seen & kMoving) != 0) {
        std::this_thread::yield();
        seen = word.load(std::memory_order_acquire);
      } else if (word.compare_exchange_weak(seen, seen | kMoving, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
        break;
      }
    }
    return seen;
  }
  /// Returns the word before. If it was in the wheel when the move began, the generation rises, so that a worker that
  /// has read the old deadline fails to expire it; one that takes it into the wheel meanwhile finds kMoving. release:
  /// the new deadline.
  std::uint64_t end_move(std::uint64_t begun) noexcept {
    const std::uint64_t raised = state_of(begun) == State::InWheel ? kGeneration : 0;
    return word.fetch_add(raised - kMoving, std::memory_order_acq_rel);
  }

  void add_reference() noexcept { word.fetch_add(kReference, std::memory_order_relaxed); }

  /// True: it was the last one, and the caller must give the node back.
  bool drop_references(std::uint64_t count) noexcept {
    // Sole owner: nobody else can add or drop one, so the read-modify-write is not needed. acquire: what the others
    // did before they dropped theirs (release below).
    if ((word.load(std::memory_order_acquire) & kReferences) == count * kReference) return true;
    return (word.fetch_sub(count * kReference, std::memory_order_acq_rel) & kReferences) == count * kReference;
  }

  static Timeout adopt(Node* node) noexcept { return Timeout(node); }
  static Node* of(const Timeout& timeout) noexcept { return timeout.node_; }
  static Node* disown(Timeout& timeout) noexcept { return std::exchange(timeout.node_, nullptr); }

  std::chrono::steady_clock::time_point deadline_point() const noexcept {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline.load(std::memory_order_relaxed)));
  }
};
static_assert(sizeof(Node) == kCacheLine);
static_assert(sizeof(Timeout) == sizeof(void*));

}  // namespace hwt::internal
