// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <new>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt::internal {

bool Core::reschedule(Node& node, When when) {
  // A connection that has been quiet has its node in no cache: fetch it while the clock is read.
  if (!when.is_deadline()) prefetch_to_write(&node);
  Core& core = node.core();
  const std::int64_t deadline = when.deadline([&] { return core.begin_of_delay(thread_cache::find(core.id_)); });
  return core.move(node, deadline);
}

/// Moves the deadline of a node of this core. Returns true if the task runs, and not before `deadline` (with one
/// exception: see expired_at_or_after()). Returns false if the timeout has expired or was cancelled. Throws
/// std::bad_alloc; then nothing has changed.
///
/// A later deadline needs no request: the worker finds it when it comes to the old one. An earlier one needs a recheck
/// request, unless the node or a recheck request for it is still queued. In this order, the thread reserves room for
/// the request, exchanges the deadline, sets the flags in the word, and enqueues the request. Only the first step can
/// fail. The worker that takes the request finds the flags, and then the deadline.
///
/// No thread waits here for another. But an earlier deadline may take effect late, while another thread is preempted in
/// a reschedule() of the same timeout, because this one relies on its request. It takes effect when that thread goes
/// on, or at the deadline for which the node is in the wheel (docs/design.md, "Waits and their bounds").
bool Core::move(Node& node, std::int64_t deadline) {
  std::uint64_t seen = node.word.load(std::memory_order_acquire);
  if (!Node::pending(seen)) return false;
  ProducerLease lease(thread_cache::find(id_));
  std::int64_t before = node.deadline.load(std::memory_order_relaxed);
  do {
    if (deadline < before && !reserve_recheck(lease)) throw std::bad_alloc();
  } while (!node.deadline.compare_exchange_weak(before, deadline, std::memory_order_relaxed));
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
    if (asks) moved |= Node::kRecheckQueued;
    // The word of a queued node does not change. The exchange is still needed for its release, so that the worker,
    // which takes the node later, finds the deadline.
    if (node.word.compare_exchange_strong(seen, moved, std::memory_order_acq_rel, std::memory_order_acquire)) break;
  }
  if (!earlier) return true;
  if (asks) {
    put_recheck(*lease.get(), node);
  } else if (Node::state_of(seen) == NodeState::Queued) {
    // Its place may be another thread's, and may be listed for a later time. So the worker must take everything.
    inbox_.note(Inbox::kUrgent);
  } else {
    // Another thread is about to enqueue a request. Afterwards it reads the deadline, and must find this one. light()
    // is not enough, because heavy() of the worker may reach that thread before this one.
    AsymmetricFence::full();
  }
  // So that the worker makes a pass in time. Another thread may have moved the timeout to a still earlier deadline, and
  // may rely on the request that this thread has just enqueued.
  const std::int64_t earliest = std::min(deadline, node.deadline.load(std::memory_order_relaxed));
  inbox_.list(lease.get()->place, earliest);
  sleeper_.wake_for(earliest);
  if (asks) call_for_rechecks(*lease.get(), Tuning::kCalls);
  return true;
}

/// Returns whether the worker has expired the timeout at `deadline` or later. This thread has replaced a later deadline
/// by `deadline`, and the worker normally acts on one of these two. But if another reschedule() is under way, the
/// worker may have seen neither, and may have expired the timeout for an older deadline, before `deadline`. The clock
/// shows that, unless this thread was preempted until `deadline`.
bool Core::expired_at_or_after(std::int64_t deadline, std::uint64_t word) const noexcept {
  return Node::state_of(word) == NodeState::Expired && now() >= deadline;
}

}  // namespace hwt::internal
