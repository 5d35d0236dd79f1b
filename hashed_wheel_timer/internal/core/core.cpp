#include "hashed_wheel_timer/internal/core/core.h"

#include <algorithm>
#include <new>

#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/handover/producer_lease.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt::internal {

using detail::Result;

Core::Core(Timer& timer, const Options& options, Clock clock)
    : timer_(&timer),
      clock_(clock),
      on_task_error_(options.on_task_error),
      id_(announce_core()),
      hook_patience_(std::max<std::int64_t>(Inbox::kSoon - options.tick_duration.count(), 0)),
      admission_(options.max_pending_timeouts) {
  AsymmetricFence::prepare();
}

template <bool kLimited>
[[gnu::always_inline]] inline Core::Outcome Core::offer_as(Producer& producer, const detail::TaskSource& task,
                                                           std::int64_t deadline) {
  // Checked before the task is built, so that most refusals leave the callable as it was. Admitted only afterwards,
  // because copying the callable is the user's code and may take long.
  if (kLimited && admission_.full()) {
    producer.counters.rejected.add(1);
    return {nullptr, Result::Full};
  }
  Node* const node = producer.pool.take();
  if (node == nullptr) return {nullptr, Result::NoMemory};
  try {
    if (task.build(node->storage, task.source) == nullptr) [[unlikely]] {
      producer.pool.untake(node);
      return {nullptr, Result::NoMemory};
    }
  } catch (...) {
    producer.pool.untake(node);
    throw;
  }
  if (kLimited && !admission_.admit()) [[unlikely]] {
    producer.counters.rejected.add(1);
    node->publish(task.kind, producer);
    return {node, Result::Full, 2};
  }
  node->deadline.store(deadline, std::memory_order_relaxed);
  producer.counters.scheduled.add(1);
  const std::uint32_t generation = node->publish(task.kind, producer);
  const auto uncount = [&] {
    producer.counters.scheduled.add(-1);
    admission_.release();
  };
  if (!producer.put({node, generation})) [[unlikely]] {
    uncount();
    return {node, Result::NoMemory, 2};
  }
  // Store (the inbox), then load (whether it is listed, the phase, the announcement): pairs with three heavy fences of
  // the worker. They come after it unlists a place, before it empties a stopped timer, and before a long sleep.
  AsymmetricFence::light();
  inbox_.list(producer.place, deadline);
  if (!running() && node->withdraw()) {
    // Stopped meanwhile, and the worker had not seen it: it was never accepted.
    uncount();
    return {node, Result::Stopped, 1};
  }
  sleeper_.wake_for(deadline);
  return {node, Result::Ok};
}

[[gnu::noinline]] Core::Outcome Core::offer_limited(Producer& producer, const detail::TaskSource& task,
                                                    std::int64_t deadline) {
  return offer_as<true>(producer, task, deadline);
}

[[gnu::noinline, gnu::cold]] Core::Outcome Core::offer_first(const detail::TaskSource& task, std::int64_t deadline) {
  const ProducerLease lease(producers_);
  if (lease.get() == nullptr) return {nullptr, Result::NoMemory};
  if (admission_.limited()) return offer_limited(*lease.get(), task, deadline);
  return offer_as<false>(*lease.get(), task, deadline);
}

[[gnu::always_inline]] inline Core::Outcome Core::offer(const detail::TaskSource& task, std::int64_t deadline) {
  Producer* const mine = thread_cache::find(id_);
  if (mine == nullptr) [[unlikely]]
    return offer_first(task, deadline);
  if (admission_.limited()) [[unlikely]]
    return offer_limited(*mine, task, deadline);
  return offer_as<false>(*mine, task, deadline);
}

detail::Scheduled Core::schedule(const detail::TaskSource& task, std::int64_t deadline) {
  const Outcome outcome = offer(task, deadline);
  if (outcome.result == Result::Ok) [[likely]]
    return {outcome.node};
  const detail::Scheduled refused = detail::Scheduled::refused(outcome.result, admission_.limit());
  if (outcome.node != nullptr) drop_refused(outcome);
  return refused;
}

[[gnu::noinline, gnu::cold]] void Core::drop_refused(const Outcome& outcome) noexcept {
  outcome.node->tell(detail::NotRun::Refused);
  // The task may own the timer: after it is destroyed the node alone keeps the core.
  outcome.node->destroy_task();
  if (outcome.node->drop_references(outcome.references)) recycle(outcome.node);
}

/// `producer` is null when there was no memory for one.
inline void Core::count_cancelled(Producer* producer, Node& node, std::uint64_t left) noexcept {
  if (producer != nullptr) [[likely]] {
    producer->counters.cancelled.add(1);
  } else {
    counters_.note_cancelled_without_producer();
  }
  if (admission_.release()) [[unlikely]]
    wake_for_none_pending();
  // Told already: there is a recheck request in the inbox, which will find it cancelled.
  if (Node::state_of(left) != NodeState::InWheel || (left & Node::kRecheckQueued) != 0) return;
  if (producer != nullptr && put_recheck(*producer, node, kForever)) [[likely]]
    return;
  if (node.hide_from_rechecks()) {
    inbox_.put_without_memory(node);  // and is_awaited() then
    sleeper_.wake_if_asleep();
  }
}

bool Core::cancel(Node& node) noexcept {
  Core& core = node.core();
  Producer* mine = thread_cache::find(core.id());
  if (mine == nullptr) [[unlikely]]
    mine = thread_cache::find_held(core.id());
  const std::uint64_t left = node.cancel(mine != nullptr && node.published_by(*mine));
  if (!Node::pending(left)) return false;
  // From here on this thread owns the task, and its handle keeps the node and with it the core.
  if (mine != nullptr) [[likely]] {
    core.count_cancelled(mine, node, left);
  } else {
    core.count_cancelled(ProducerLease(core.producers_).get(), node, left);
  }
  switch (Node::kind_of(left)) {
    case detail::TaskKind::Shared:
      core.wake_for_cancelled_hook();
      break;
    case detail::TaskKind::Callable:
      // It may own the handle that is being used here, and the timer too: Node::cancel() has taken a reference.
      {
        const TaskScope inside(node);
        node.stored_task().~TimerTask();
      }
      if (node.finish(1)) recycle(&node);
      break;
    default:
      break;
  }
  return true;
}

bool Core::reschedule(Node& node, detail::When when) {
  // A connection that has been quiet has its node in no cache: fetch it while the clock is read.
  if (!when.is_deadline()) prefetch_to_write(&node);
  Core& core = node.core();
  const std::int64_t deadline = when.deadline([&] { return core.now(); });
  if (!core.move(node, deadline)) return false;
  // Store (the deadline, the inbox), then load (the announcement): as in offer().
  AsymmetricFence::light();
  core.sleeper_.wake_for(deadline);
  return true;
}

/// No thread waits here for another. But a reschedule() may take effect late, while another thread is preempted in a
/// reschedule() of the same timeout. It is late by at most the deadline that it replaces (docs/design.md, "Waits and
/// their bounds").
///
/// A later deadline is only stored; the worker finds it when it comes to the old one. An earlier one needs a recheck
/// request, unless the node or a recheck request for it is still queued. The request is enqueued before the word
/// changes. If the worker comes to it first, the worker changes the word, this exchange fails, and another request is
/// enqueued. If possible, the request is also enqueued before the deadline changes: allocating it may fail or take
/// long, and meanwhile other threads should find the deadline that the worker knows.
bool Core::move(Node& node, std::int64_t deadline) {
  std::uint64_t seen = node.word.load(std::memory_order_acquire);
  if (!Node::pending(seen)) return false;
  bool told = Node::needs_recheck(seen) && deadline < node.deadline.load(std::memory_order_relaxed);
  if (told && !put_recheck(node, deadline)) throw std::bad_alloc();
  const std::int64_t before = node.deadline.exchange(deadline, std::memory_order_relaxed);
  const bool earlier = deadline < before;
  for (;;) {
    if (!Node::pending(seen)) {
      // The worker may have expired it for the new deadline already; then, and only then, it ran before the old one.
      if (earlier && Node::state_of(seen) == NodeState::Expired) return true;
      node.deadline.compare_exchange_strong(deadline, before, std::memory_order_relaxed);
      return false;
    }
    std::uint64_t moved = seen;
    // A worker that has read the old deadline must fail to expire it.
    if (Node::state_of(seen) == NodeState::InWheel) moved += Node::kGeneration;
    if (earlier && Node::needs_recheck(seen)) {
      if (!told && !put_recheck(node, deadline)) return undo_move(node, deadline, before, seen);
      told = true;
      moved |= Node::kRecheckQueued;
    }
    // Of a queued one the word stays as it is. It is exchanged all the same, for its order: the worker that takes the
    // node after this finds the deadline.
    if (node.word.compare_exchange_strong(seen, moved, std::memory_order_acq_rel, std::memory_order_acquire)) break;
    told = false;
  }
  // The worker must come to an entry of another thread, whose place may be listed for a later time. Listing this
  // thread's place is not enough: a pass may open it without coming to that entry.
  if (earlier && !told) inbox_.note_urgent();
  return true;
}

/// Without memory for a recheck request, restores the old deadline. If the worker has expired the timeout for
/// `deadline` meanwhile, it was moved.
bool Core::undo_move(Node& node, std::int64_t deadline, std::int64_t before, std::uint64_t seen) {
  node.deadline.compare_exchange_strong(deadline, before, std::memory_order_relaxed);
  while (Node::pending(seen)) {
    // A worker that has read `deadline` must fail to expire it.
    if (node.word.compare_exchange_weak(seen, seen + Node::kGeneration, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      throw std::bad_alloc();
    }
  }
  return Node::state_of(seen) == NodeState::Expired;
}

bool Core::put_recheck(Node& node, std::int64_t deadline) noexcept {
  if (Producer* const mine = thread_cache::find(id_)) return put_recheck(*mine, node, deadline);
  const ProducerLease lease(producers_);
  return lease.get() != nullptr && put_recheck(*lease.get(), node, deadline);
}

bool Core::put_recheck(Producer& producer, Node& node, std::int64_t deadline) noexcept {
  if (!Inbox::put_recheck(producer.place, node)) return false;
  AsymmetricFence::light();  // as in offer()
  inbox_.list(producer.place, deadline);
  const std::size_t most = deadline == kForever ? Producer::kRechecks : Producer::kHandOver;
  if (++producer.rechecks >= most) {
    producer.rechecks = 0;
    inbox_.note_awaited();
    sleeper_.wake_if_asleep();
  }
  return true;
}

/// Lets an event loop that has nothing else to do end.
[[gnu::noinline]] void Core::wake_for_none_pending() noexcept {
  AsymmetricFence::light();  // as in offer(), but the worker reads the number of pending timeouts
  if (sleeper_.has_outside()) sleeper_.wake_if_asleep();
}

void Core::wake_for_cancelled_hook() noexcept {
  inbox_.note_awaited();
  AsymmetricFence::light();
  if (!sleeper_.awake()) sleeper_.wake_for(now() + hook_patience_);
}

void Core::report_error(const Timeout& timeout, const char* origin) noexcept {
  counters_.note_task_error();
  if (on_task_error_) {
    try {
      on_task_error_(std::current_exception(), timeout);
      return;
    } catch (...) {  // the handler's own exception is logged instead
      error_log_.report(std::current_exception(), "on_task_error");
      return;
    }
  }
  error_log_.report(std::current_exception(), origin);
}

void Node::tell(detail::NotRun why) noexcept {
  try {
    stored_task().will_not_run(why);
  } catch (...) {
    add_reference();
    core().report_error(adopt(this));
  }
}

}  // namespace hwt::internal
