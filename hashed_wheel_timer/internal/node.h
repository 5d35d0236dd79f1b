#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/wheel_item.h"
#include "hashed_wheel_timer/timer.h"

namespace hwt::internal {

class Core;

/// What a timeout is in its life. Each arrow is one compare-exchange of Node::word, so exactly one thread wins it; the
/// winner owns the task from then on.
///
///   from      to         by
///   Queued    InWheel    the worker, when it has put the node into the wheel
///   Queued    Cancelled  cancel(), new_timeout() that finds the timer stopped, the worker that empties a stopped timer
///   InWheel   Expired    the worker
///   InWheel   Cancelled  cancel(), the worker that empties a stopped timer
enum class State : std::uint32_t { Queued = 0, InWheel = 1, Expired = 2, Cancelled = 3 };

/// One timeout in one cache line, its task inside.
///
/// References: one for each handle, and one for the timer, which moves with the node from the pending queue to the
/// wheel and from there to whoever takes it out: the worker that expires it or collects it after a cancel. The last one
/// to go gives the node back to its pool.
struct alignas(kCacheLine) Node : WheelItem {
  static constexpr std::uint32_t kStateMask = 3;
  static constexpr std::uint32_t kShared = 4;  // the task is a shared TimerTask
  static constexpr std::uint32_t kReference = 8;

  /// State, kShared and the number of references in one word. The memory order of every change is acq_rel
  /// where it hands the task or the node over, so that all that was written to the node before is seen by the next
  /// owner.
  std::atomic<std::uint32_t> word;

  /// What `storage` holds. Written by the producer before the node is published, then by the owner of the task.
  detail::TaskKind kind;

  alignas(detail::kTaskStorageAlign) std::byte storage[detail::kTaskStorageSize];

  /// Nanoseconds of steady_clock. Written by the producer before the node is published.
  std::int64_t deadline;

  /// Link of whichever list the node is in: free nodes; the overflow of the cancelled queue; the unprocessed ones of a
  /// stopped timer. Only one of them is ever followed.
  Node* next;

  static State state_of(std::uint32_t word) noexcept { return static_cast<State>(word & kStateMask); }
  static std::uint32_t with_state(std::uint32_t word, State state) noexcept {
    return (word & ~kStateMask) | static_cast<std::uint32_t>(state);
  }
  State state(std::memory_order order) const noexcept { return state_of(word.load(order)); }
  bool shared() const noexcept { return (word.load(std::memory_order_relaxed) & kShared) != 0; }

  /// The core that it belongs to, from the header of its slab.
  Core& core() const noexcept;

  /// The task as a user sees it.
  TimerTask& task() noexcept;
  TimerTask& stored_task() noexcept { return *std::launder(reinterpret_cast<TimerTask*>(storage)); }

  /// Destroys the task if it is still there: a callable for the owner of the task, as soon as it can never run again; a
  /// shared one for whoever drops the last reference.
  void destroy_task() noexcept;

  /// Leaves Queued or InWheel for `to`, adding `references` in the same step; returns the state it left, or `to` itself
  /// when another thread was faster. acquire, when it loses as well: what was done to the node before; release: for the
  /// next owner of the task.
  State leave_for(State to, std::uint32_t references) noexcept {
    std::uint32_t seen = word.load(std::memory_order_acquire);
    while (state_of(seen) == State::Queued || state_of(seen) == State::InWheel) {
      if (word.compare_exchange_weak(seen, with_state(seen, to) + references * kReference, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        return state_of(seen);
      }
    }
    return to;
  }

  /// From Queued to InWheel; false: it has been cancelled.
  bool enter_wheel() noexcept { return leave_queue(State::InWheel, 0); }
  /// From Queued to Cancelled as if it had never been there: the worker will not call cancelled(). False: the worker
  /// has it already.
  bool take_back() noexcept { return leave_queue(State::Cancelled, kShared); }

  void add_reference() noexcept { word.fetch_add(kReference, std::memory_order_relaxed); }

  /// True: it was the last one, and the caller must give the node back.
  bool drop_references(std::uint32_t count) noexcept {
    // Sole owner: nobody else can add or drop one, so the read-modify-write is not needed. acquire: what the others
    // did before they dropped theirs (release below).
    if (word.load(std::memory_order_acquire) / kReference == count) return true;
    return word.fetch_sub(count * kReference, std::memory_order_acq_rel) / kReference == count;
  }

  static Timeout adopt(Node* node) noexcept { return Timeout(node); }
  static Node* of(const Timeout& timeout) noexcept { return timeout.node_; }
  static Node* disown(Timeout& timeout) noexcept { return std::exchange(timeout.node_, nullptr); }

  std::chrono::steady_clock::time_point deadline_point() const noexcept {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline));
  }

 private:
  bool leave_queue(State to, std::uint32_t flags_to_clear) noexcept {
    std::uint32_t seen = word.load(std::memory_order_acquire);
    while (state_of(seen) == State::Queued) {
      if (word.compare_exchange_weak(seen, with_state(seen, to) & ~flags_to_clear, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  }
};
static_assert(sizeof(Node) == kCacheLine);
static_assert(sizeof(Timeout) == sizeof(void*));

}  // namespace hwt::internal
