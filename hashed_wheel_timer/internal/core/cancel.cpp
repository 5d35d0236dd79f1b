// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt {
namespace internal {

/// The rest of a cancel in a timer that is not plain_: fires the probe of this life, and releases the admission. May
/// call the user's on_earlier(). The node may be another timeout already, or its memory gone.
[[gnu::noinline]] void Core::release_cancelled(NodeName name) noexcept {
  if (probes::kThere && traces_origins()) probes::cancel(name.value());
  if (admission_.release()) wake_for_none_pending();
}

/// Returns the name for release_cancelled(). The caller has a reference to the node, because this reads its header.
inline NodeName Core::name_of(const Node& node, std::uint32_t life) const noexcept {
  return probes::kThere && traces_origins() ? NodeName(Slab::index_of(node), life) : NodeName(0);
}

/// Counts a dead entry in the place of another producer. That producer drops it at a sift, unless its thread does
/// nothing more with the timer. Then the worker must.
inline void Core::count_dead(Producer& canceller) noexcept {
  if (++canceller.dead < Tuning::kCalls) [[likely]]
    return;
  canceller.dead = 0;
  if ((inbox_.asked() & Inbox::kDead) == 0) ask(Inbox::kDead);
}

/// Not inlined, so that cancel() needs few registers.
[[gnu::noinline, gnu::cold]] void Core::ask(Inbox::Request request) noexcept { inbox_.ask(request, sleeper_); }

/// Destroys the callable of a cancelled timeout, which calls the user. The caller has a reference.
inline void destroy_cancelled(Node& node) noexcept {
  const TaskScope inside(node);
  node.stored_task().~TimerTask();
}

/// The rest of finish_cancel() for a node in the wheel, without memory for a request to take it out. `before`: the word
/// before the cancel.
[[gnu::noinline, gnu::cold]] void Core::finish_without_memory(Node& node, std::uint64_t before,
                                                              NodeName name) noexcept {
  const detail::TaskKind kind = Node::kind_of(before);
  const bool is_callable = kind == detail::TaskKind::Callable;
  // As early as possible, because the rest may call the user, who may use the timer. But a callable must be destroyed
  // before, because the link of the node lies where its end was.
  if (!is_callable) inbox_.put_without_memory(node);
  if (!plain_) release_cancelled(name);
  if (is_callable) {
    destroy_cancelled(node);
    inbox_.put_without_memory(node);
  }
  ask(Inbox::kRechecks);
  if (kind == detail::TaskKind::Shared) wake_for_cancelled_hook();
  if (is_callable && node.finish(1)) recycle(&node);
}

/// The rest of finish_cancel() for a node in the wheel: asks the worker to take it out, unless a request of another
/// thread is queued or about to be.
inline void Core::free_from_wheel(Producer* producer, Node& node, const Node::Cancel& cancel, NodeName name) noexcept {
  if (cancel.asks) put_recheck(*producer, node);
  // Only now, because it may call on_earlier(), which may use the timer.
  if (!plain_) release_cancelled(name);
  if (cancel.asks) call_for_rechecks(*producer, Tuning::kRecheckCalls);
}

/// Finishes a cancel by this thread, which owns the task now. `producer` is null if there was no memory for one. `own`:
/// it has scheduled the timeout.
///
/// Until this returns, the core exists. The caller's handle keeps it, or the reference that the cancel of a callable,
/// or of an id in the wheel, has added. Otherwise the timer keeps it, and the node may already be another timeout.
inline void Core::finish_cancel(Producer* producer, Node& node, const Node::Cancel& cancel, bool own,
                                NodeName name) noexcept {
  const std::uint64_t before = cancel.before;
  if (producer != nullptr) [[likely]] {
    producer->counters.cancelled.add(1);
  } else {
    counters_.note_cancelled_without_producer();
  }
  if (Node::state_of(before) == NodeState::InWheel) {
    if (!cancel.asks && Node::needs_recheck(before)) [[unlikely]]
      return finish_without_memory(node, before, name);
    free_from_wheel(producer, node, cancel, name);
  } else {
    if (!plain_) release_cancelled(name);
    if (producer != nullptr && !own) count_dead(*producer);
  }
  switch (Node::kind_of(before)) {
    case detail::TaskKind::Shared:
      wake_for_cancelled_hook();
      break;
    case detail::TaskKind::Callable:
      // The callable may own the caller's handle, and the timer too. So the cancel has added a reference.
      destroy_cancelled(node);
      if (node.finish(1)) recycle(&node);
      break;
    default:
      break;
  }
}

/// Returns the calling thread's producer, or null if it has none.
inline Producer* Core::find_producer() const noexcept {
  Producer* const mine = thread_cache::find(id_);
  if (mine != nullptr) [[likely]]
    return mine;
  return thread_cache::find_held(id_);
}

bool Core::cancel(Node& node) noexcept {
  Core& core = node.core();
  // Most timeouts end here or in cancel_of_other(), because the worker has not seen them.
  if (thread_cache::has(core.id_)) [[likely]] {
    Producer& mine = *thread_cache::latest.producer;
    if (!node.published_by(mine)) return core.cancel_of_other(mine, node);
    if (node.cancel_queued<detail::TaskKind::Trivial>(true)) [[likely]] {
      mine.counters.cancelled.add(1);
      if (!core.plain_) [[unlikely]]
        core.release_cancelled(core.name_of(node, node.generation() - 1));  // withdrawn
      return true;
    }
    return core.cancel_callable(mine, node);
  }
  return core.cancel_any(node);
}

/// The producer has scheduled the timeout, whose task is a callable that needs destruction, such as a std::function. Or
/// it is in the wheel.
[[gnu::noinline]] bool Core::cancel_callable(Producer& mine, Node& node) noexcept {
  if (!plain_ || !node.cancel_queued<detail::TaskKind::Callable>(true)) return cancel_any(node);
  mine.counters.cancelled.add(1);
  destroy_cancelled(node);
  if (node.finish(1)) recycle(&node);
  return true;
}

/// Another producer has scheduled the timeout, or it is in the wheel. In a function of its own so that cancel() needs
/// no stack.
[[gnu::noinline]] bool Core::cancel_of_other(Producer& mine, Node& node) noexcept {
  if (!plain_ || !node.cancel_queued<detail::TaskKind::Trivial>(false)) return cancel_any(node);
  mine.counters.cancelled.add(1);
  count_dead(mine);
  return true;
}

[[gnu::noinline]] bool Core::cancel_any(Node& node) noexcept {
  ProducerLease lease(find_producer());
  const bool own = lease.get() != nullptr && node.published_by(*lease.get());
  const Node::Cancel cancel = node.cancel(own, [&] { return reserve_recheck(lease); });
  if (!Node::pending(cancel.before)) return false;
  finish_cancel(lease.get(producers_), node, cancel, own, name_of(node, Node::generation_of(cancel.before)));
  return true;
}

inline CancelResult Core::cancel(TimeoutId id) noexcept {
  const NodeName name(id.value());
  Node* const node = SlabDirectory::find(name.index(), id_);
  if (node == nullptr) return CancelResult::Gone;
  // Most timeouts end here: the producer's own, which the worker has not seen.
  if (thread_cache::has(id_)) [[likely]] {
    Producer& mine = *thread_cache::latest.producer;
    if (node->published_by(mine) && node->withdraw_life(name.life())) [[likely]] {
      mine.counters.cancelled.add(1);
      mine.pool.untake(node);
      // Left to do: release_cancelled(), or the look of the pool.
      if (!plain_ || mine.pool.look_is_due()) [[unlikely]]
        return finish_withdrawal(mine, name);
      return CancelResult::Cancelled;
    }
  }
  return cancel_any(*node, name);
}

/// The rare rest of cancel(), in a function of its own so that the rest needs no stack.
[[gnu::noinline]] CancelResult Core::finish_withdrawal(Producer& mine, NodeName name) noexcept {
  if (mine.pool.look_is_due()) mine.look();
  if (!plain_) release_cancelled(name);
  return CancelResult::Cancelled;
}

[[gnu::noinline]] CancelResult Core::cancel_any(Node& node, NodeName name) noexcept {
  const std::uint32_t life = name.life();
  ProducerLease lease(find_producer());
  const bool own = lease.get() != nullptr && node.published_by(*lease.get());
  const Node::Cancel cancel = node.cancel_life(life, own, [&] { return reserve_recheck(lease); });
  if (!Node::pending(cancel.before)) return node.is_claimed(life) ? CancelResult::Running : CancelResult::Gone;
  finish_cancel(lease.get(producers_), node, cancel, own, name);
  const bool is_last = Node::state_of(cancel.before) == NodeState::InWheel
                           ? node.drop_references(1)
                           : own && Node::leaves_no_reference(cancel.before);
  if (is_last) recycle(&node);
  return CancelResult::Cancelled;
}

Timeout Core::find(TimeoutId id) noexcept {
  const NodeName name(id.value());
  Node* const node = SlabDirectory::find(name.index(), id_);
  return Node::adopt(node != nullptr && node->add_reference_of(name.life()) ? node : nullptr);
}

CancelResult Core::cancel_and_wait(TimeoutId id) noexcept {
  Timeout timeout = find(id);
  if (!timeout) return CancelResult::Gone;
  if (timeout.cancel_and_wait()) return CancelResult::Cancelled;
  return TaskScope::is_inside(*Node::of(timeout)) ? CancelResult::Running : CancelResult::Gone;
}

bool Core::reserve_recheck(ProducerLease& lease) noexcept {
  Producer* const producer = lease.get(producers_);
  return producer != nullptr && Inbox::reserve_recheck(producer->place);
}

void Core::put_recheck(Producer& producer, Node& node) noexcept {
  Inbox::put_recheck(producer.place, node);
  AsymmetricFence::light();  // store (the request), then load (whether the place is listed): as in offer_as()
  inbox_.list_rechecks(producer.place);
}

void Core::call_for_rechecks(Producer& producer, std::size_t many) noexcept {
  if (++producer.rechecks < many) [[likely]]
    return;
  producer.rechecks = 0;
  ask(Inbox::kRechecks);
}

}  // namespace internal

// In this file so that the compiler inlines Core::cancel().
CancelResult Timer::cancel(TimeoutId id) noexcept { return core_->cancel(id); }

}  // namespace hwt
