// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "hashed_wheel_timer/detail/task.h"

namespace hwt::internal {

/// The states of a timeout. Each transition is one compare-exchange of Node::word, so exactly one thread wins it. The
/// thread that wins the transition to Expired or Cancelled owns the task from then on.
///
///   from      to         by
///   Queued    InWheel    the worker, when it takes the node from the inbox
///   Queued    Cancelled  cancel(), new_timeout() that finds the timer stopped or has no memory for the entry
///   InWheel   Expired    the worker
///   InWheel   Cancelled  cancel(), the worker that empties a stopped timer
///
/// Some threads use the task after that exchange. Flags of the same word announce this to cancel_and_wait():
///
///   from        to          by
///   (none)      Busy        the worker that expires it; a cancel() that has a callable to destroy; in that exchange
///   (none)      HandedOver  the worker that expires it, where there is an executor; in that exchange
///   Busy        HandedOver  the worker, if it had to ask the task for its executor first
///   HandedOver  Busy        the job in the executor, the thread that drops it, cancel_or_disarm()
///                           the worker, if the executor throws
///   Busy        (none)      finish(): the task has run, and a callable is destroyed
enum class NodeState : std::uint32_t { Queued = 0, InWheel = 1, Expired = 2, Cancelled = 3 };

/// Node::word, from its lowest bit: state (2 bits), kind of the task (2), flags (6), number of references (22),
/// generation (32).
///
/// The generation tells the lives of a node apart. It is even; a withdrawn timeout has the next odd one. It never
/// repeats: a node that has used up its generations is retired. See Node::end_life().
///
/// `Word` has 64 bits and `Half` 32, for a generation. They are parameters so that tests/arithmetic can prove it with
/// symbolic integers.
template <class Word, class Half>
struct BasicNodeWord {
  static constexpr std::uint64_t kStateMask = 3;
  static constexpr int kKindShift = 2;
  static constexpr std::uint64_t kKindMask = std::uint64_t{3} << kKindShift;
  // A recheck request for the node, which is in the wheel, is in the inbox or in the worker's hands. Or the thread that
  // has set the flag, by a cancel or a reschedule, is about to enqueue it. It has reserved room, so it cannot fail.
  static constexpr std::uint64_t kRecheckQueued = std::uint64_t{1} << 4;
  // The task of an expired timeout is on its way through the executor. The thread that clears this flag owns the task.
  static constexpr std::uint64_t kHandedOver = std::uint64_t{1} << 5;
  // A thread runs the task, or destroys the callable.
  static constexpr std::uint64_t kBusy = std::uint64_t{1} << 6;
  // Another thread waits until kBusy is cleared, and must be woken. The flag stays: a second wake-up is harmless.
  static constexpr std::uint64_t kAwaited = std::uint64_t{1} << 7;
  // A reschedule() has changed the deadline since the worker last cleared this flag. Only the worker clears it, with
  // acquire, and reads the deadline afterwards. It expires a timeout only by an exchange of a word without the flag. So
  // it has read the deadline of every reschedule() that has returned, even if it reads the word with relaxed.
  static constexpr std::uint64_t kMoved = std::uint64_t{1} << 8;
  // The timeout has an id, so any thread may add a reference while the node has at least one.
  static constexpr std::uint64_t kNamed = std::uint64_t{1} << 9;
  static constexpr std::uint64_t kReference = std::uint64_t{1} << 10;
  static constexpr int kGenerationShift = 32;
  static constexpr std::uint64_t kGeneration = std::uint64_t{1} << kGenerationShift;
  static constexpr std::uint64_t kReferences = kGeneration - kReference;
  // Not 0, because the word of a node whose memory went back to the system may read as 0.
  static constexpr std::uint32_t kFirstGeneration = 2;
  // Not 0xFFFF'FFFE, because next_life() of that would wrap to 0, which usable() would accept.
  static constexpr std::uint32_t kLastGeneration = 0xFFFF'FFFC;

  static constexpr NodeState state_of(Word word) noexcept { return static_cast<NodeState>(word & kStateMask); }
  static constexpr Word with_state(Word word, NodeState state) noexcept {
    return (word & ~kStateMask) | static_cast<std::uint64_t>(state);
  }
  static constexpr detail::TaskKind kind_of(Word word) noexcept {
    return static_cast<detail::TaskKind>((word & kKindMask) >> kKindShift);
  }
  /// The word of a free node: no references, and the generation of its next life.
  static constexpr Word free_word(Half generation) noexcept {
    return (Word{generation} << kGenerationShift) + static_cast<std::uint64_t>(NodeState::Cancelled);
  }
  static constexpr Half generation_of(Word word) noexcept { return static_cast<Half>(word >> kGenerationShift); }
  static constexpr bool pending(Word word) noexcept {
    return state_of(word) == NodeState::Queued || state_of(word) == NodeState::InWheel;
  }
  /// The state and the kind in the word of a Queued node.
  static constexpr Word queued(detail::TaskKind kind) noexcept {
    return static_cast<Word>(NodeState::Queued) | static_cast<Word>(kind) << kKindShift;
  }
  /// Whether it is Queued, with a task of this kind: one comparison.
  static constexpr bool is_queued(Word word, detail::TaskKind kind) noexcept {
    return (word & (kStateMask | kKindMask)) == queued(kind);
  }
  /// Whether a change that the worker must notice needs a recheck request: the node is in the wheel, and no request for
  /// it is queued.
  static constexpr bool needs_recheck(Word word) noexcept {
    return state_of(word) == NodeState::InWheel && (word & kRecheckQueued) == 0;
  }

  /// The word of a life that begins: a free one becomes Queued. A timeout with an id has kNamed, and a reference for
  /// the timer. Any other one has a reference for its handle too.
  static constexpr Word published(Word free, detail::TaskKind kind, bool named) noexcept {
    // Without a branch: two references, less kNamed, are one reference and kNamed.
    static_assert(kReference == 2 * kNamed);
    return free - free_word(0) + 2 * kReference - named * kNamed + (static_cast<std::uint64_t>(kind) << kKindShift);
  }

  /// The word once a pending timeout is cancelled. A callable then belongs to the caller, which destroys it: kBusy is
  /// set, and the caller has one more reference. The kind is Gone, so that no other thread destroys the callable again.
  /// `own`: the caller is the producer. Then a timeout that is still Queued is withdrawn, unless its task is shared.
  /// `asks`: the caller enqueues a recheck request.
  static constexpr Word cancelled(Word seen, bool own, bool asks) noexcept {
    Word left = with_state(seen, NodeState::Cancelled);
    if (asks) left |= kRecheckQueued;
    if (kind_of(seen) == detail::TaskKind::Callable) left = (left & ~kKindMask) + kReference + kBusy;
    if (own && state_of(seen) == NodeState::Queued && kind_of(seen) != detail::TaskKind::Shared) left = withdrawn(left);
    return left;
  }
  /// Takes the timer's reference along, and raises the generation, so that the entry of the inbox is an old one.
  static constexpr Word withdrawn(Word word) noexcept { return word + kGeneration - kReference; }

  /// The generation of the life after one that began or was withdrawn with this generation.
  static constexpr Half next_life(Half generation) noexcept { return (generation | 1) + 1; }
  /// Whether a life may begin with this generation. Otherwise the node, or the number of its slab, is retired.
  static constexpr bool usable(Half generation) noexcept { return generation <= kLastGeneration; }

  /// Whether another life may follow the one with this even generation. The next life has two more.
  static constexpr bool has_next(Half life) noexcept { return life < kLastGeneration; }

  /// Whether another reference must not be added. The limit is half of what fits, so that several threads that add one
  /// at once cannot overflow into the generation.
  static constexpr bool too_many_references(Word before) noexcept { return (before & kReferences) >= kReferences / 2; }
};

using NodeWord = BasicNodeWord<std::uint64_t, std::uint32_t>;

// See Collector.
static_assert((NodeWord::free_word(NodeWord::kLastGeneration) & (NodeWord::kReferences | NodeWord::kRecheckQueued)) ==
              0);

}  // namespace hwt::internal
