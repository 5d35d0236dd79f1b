#include <chrono>
#include <new>
#include <optional>
#include <thread>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt::internal {

bool Core::reschedule(Node& node, detail::When when) {
  // A connection that has been quiet has its node in no cache: fetch it while the clock is read.
  if (!when.is_deadline()) prefetch_to_write(&node);
  Core& core = node.core();
  const std::int64_t deadline = when.deadline([&] { return core.begin_of_delay(thread_cache::find(core.id_)); });
  if (!core.move(node, deadline)) return false;
  // Store (the deadline, the inbox), then load (the announcement): as in offer_as().
  AsymmetricFence::light();
  core.sleeper_.wake_for(deadline);
  return true;
}

/// Moves the deadline of a node of this core. Returns true if the task runs, and not before `deadline` (with one
/// exception: see expired_at_or_after()). Returns false if the timeout has expired or was cancelled. Throws
/// std::bad_alloc; then nothing has changed.
///
/// No thread waits here for another, unless memory is short. Then the thread sleeps in steps of 50 us, until the worker
/// has freed the memory of a recheck request that it took. But an earlier deadline may take effect late, while another
/// thread is preempted in a reschedule() of the same timeout. It takes effect when that thread goes on, or at the
/// deadline for which the node is in the wheel (docs/design.md, "Waits and their bounds").
///
/// A later deadline needs no request: the worker finds it when it comes to the old one. An earlier one needs a recheck
/// request, unless the node or a recheck request for it is still queued.
///
/// The request is enqueued before the word and the deadline change, because allocating it may fail or take long. So the
/// worker may take the request too early. Therefore this thread looks into its place after it has set kRecheckQueued.
/// If the place has no recheck request any more, the thread enqueues another one. That needs no new memory once the
/// worker has freed that of the first. (For each request the worker exchanges the word of a pending timeout, so this
/// thread sees that the worker has dequeued it.)
///
/// If the need for a request arises only during this call, for example because the node enters the wheel, the deadline
/// changes first. If there is no memory for the request then, undo_move() restores the deadline.
bool Core::move(Node& node, std::int64_t deadline) {
  std::uint64_t seen = node.word.load(std::memory_order_acquire);
  if (!Node::pending(seen)) return false;
  std::optional<ProducerLease> producer;
  const auto put = [&] {
    if (!producer) producer.emplace(producers_, thread_cache::find(id_));
    return producer->get() != nullptr && put_recheck_of_move(*producer->get(), node, deadline);
  };
  bool put_before = Node::needs_recheck(seen) && deadline < node.deadline.load(std::memory_order_relaxed);
  if (put_before && !put()) throw std::bad_alloc();
  const std::int64_t before = node.deadline.exchange(deadline, std::memory_order_relaxed);
  const bool earlier = deadline < before;
  bool asks = false;
  for (;;) {
    if (!Node::pending(seen)) {
      if (earlier && expired_at_or_after(deadline, seen)) return true;
      node.deadline.compare_exchange_strong(deadline, before, std::memory_order_relaxed);
      return false;
    }
    std::uint64_t moved = seen;
    // A worker that has read the old deadline must fail to expire it.
    if (Node::state_of(seen) == NodeState::InWheel) moved |= Node::kMoved;
    asks = earlier && Node::needs_recheck(seen);
    if (asks) {
      if (!put_before && !put()) return undo_move(node, deadline, before, seen);
      put_before = true;
      moved |= Node::kRecheckQueued;
    }
    // The word of a queued node does not change. The exchange is still needed for its release, so that the worker,
    // which takes the node later, finds the deadline.
    if (node.word.compare_exchange_strong(seen, moved, std::memory_order_acq_rel, std::memory_order_acquire)) break;
  }
  if (asks) {
    while (!Inbox::has_rechecks(producer->get()->place) && !put()) {
      // The worker has not yet freed the memory of the request that it took.
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  } else if (earlier) {
    // The worker must come to the entry or the request that is queued already. Its place may be another thread's, and
    // may be listed for a later time. So listing this thread's place is not enough.
    inbox_.note_urgent();
  }
  return true;
}

/// Restores the old deadline `before`, because there is no memory for a recheck request, and throws std::bad_alloc. If
/// the timeout has ended meanwhile, returns whether the worker has expired it at `deadline` or later.
bool Core::undo_move(Node& node, std::int64_t deadline, std::int64_t before, std::uint64_t seen) {
  // With a copy, which becomes the deadline of another reschedule() if that came meanwhile.
  std::int64_t found = deadline;
  node.deadline.compare_exchange_strong(found, before, std::memory_order_relaxed);
  while (Node::pending(seen)) {
    // A worker that has read `deadline` must fail to expire it.
    if (node.word.compare_exchange_weak(seen, seen | Node::kMoved, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      throw std::bad_alloc();
    }
  }
  return expired_at_or_after(deadline, seen);
}

/// Returns whether the worker has expired the timeout at `deadline` or later. This thread has replaced a later deadline
/// by `deadline`, and the worker normally acts on one of these two. But if another reschedule() is under way, the
/// worker may have seen neither, and may have expired the timeout for an older deadline, before `deadline`. The clock
/// shows that, unless this thread was preempted until `deadline`.
bool Core::expired_at_or_after(std::int64_t deadline, std::uint64_t word) const noexcept {
  return Node::state_of(word) == NodeState::Expired && now() >= deadline;
}

}  // namespace hwt::internal
