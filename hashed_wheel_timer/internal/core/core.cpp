#include "hashed_wheel_timer/internal/core/core.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <thread>

#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/clock.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt {
namespace internal {

using detail::Result;

namespace {

/// Below this an estimate would be late by more than some hundredths of a tick.
constexpr std::chrono::microseconds kShortestTickOfCycles{100};

}  // namespace

Core::Core(Timer& timer, const Options& options, Clock clock)
    : timer_(&timer),
      cycles_(clock == Clock::Cycles && !options.exact_clock && options.tick_duration >= kShortestTickOfCycles),
      clock_(clock == Clock::Cycles && !cycles_.wanted() ? Clock::Steady : clock),
      on_task_error_(options.on_task_error),
      id_(announce_core()),
      tick_duration_(options.tick_duration.count()),
      hook_patience_(std::max<std::int64_t>(Inbox::kSoon - options.tick_duration.count(), 0)),
      admission_(options.max_pending_timeouts) {
  AsymmetricFence::prepare();
  timer.core_ = this;
}

template <bool kLimited>
[[gnu::always_inline]] inline detail::Scheduled Core::offer_as(Producer& producer, const detail::TaskSource& task,
                                                               std::int64_t deadline) {
  // Checked before the task is built, so that most refusals leave the callable as it was. Admitted only afterwards,
  // because copying the callable is the user's code and may take long.
  if (kLimited && admission_.full()) {
    producer.counters.rejected.add(1);
    return refuse(nullptr, Result::Full);
  }
  Node* const node = producer.pool.take();
  if (node == nullptr) return refuse(nullptr, Result::NoMemory);
  try {
    if (task.build(node->storage, task.source) == nullptr) [[unlikely]] {
      producer.pool.untake(node);
      return refuse(nullptr, Result::NoMemory);
    }
  } catch (...) {
    producer.pool.untake(node);
    throw;
  }
  if (kLimited && !admission_.admit()) [[unlikely]] {
    producer.counters.rejected.add(1);
    node->publish(task.kind, task.named, producer);
    return refuse(node, Result::Full, task.named ? 1 : 2);
  }
  node->deadline.store(deadline, std::memory_order_relaxed);
  producer.counters.scheduled.add(1);
  const NodeName name(Slab::index_of(*node), node->publish(task.kind, task.named, producer));
  if (!producer.put(name)) [[unlikely]]
    return take_back(producer, *node, Result::NoMemory, task.named ? 1 : 2);
  // Store (the inbox), then load (whether it is listed, the phase, the announcement): pairs with three heavy fences of
  // the worker. They come after it unlists a place, before it empties a stopped timer, and before a long sleep.
  AsymmetricFence::light();
  inbox_.list(producer.place, deadline);
  if (!running() && node->withdraw()) [[unlikely]] {
    // Stopped meanwhile, and the worker had not seen it: it was never accepted.
    if (task.named) node->add_reference();
    return take_back(producer, *node, Result::Stopped, 1);
  }
  sleeper_.wake_for(deadline);
  return {node, name.value()};
}

/// A node that was counted as scheduled, and is refused now.
[[gnu::noinline, gnu::cold]] detail::Scheduled Core::take_back(Producer& producer, Node& node, Result why,
                                                               std::uint64_t references) noexcept {
  producer.counters.scheduled.add(-1);
  admission_.release();
  return refuse(&node, why, references);
}

[[gnu::noinline]] detail::Scheduled Core::offer_limited(Producer& producer, const detail::TaskSource& task,
                                                        std::int64_t deadline) {
  return offer_as<true>(producer, task, deadline);
}

[[gnu::noinline, gnu::cold]] detail::Scheduled Core::offer_first(const detail::TaskSource& task,
                                                                 std::int64_t deadline) {
  const ProducerLease lease(producers_);
  if (lease.get() == nullptr) return refuse(nullptr, Result::NoMemory);
  if (admission_.limited()) return offer_limited(*lease.get(), task, deadline);
  return offer_as<false>(*lease.get(), task, deadline);
}

/// The timer was in this phase, and not Started.
[[gnu::noinline, gnu::cold]] detail::Scheduled Core::refuse_in(Phase phase) noexcept {
  const bool can_start = phase == Phase::Init || phase == Phase::Starting;
  return detail::Scheduled::refused(can_start ? Result::NotStarted : Result::Stopped);
}

inline std::int64_t Core::begin_of_delay(Producer* mine) noexcept {
  if (clock_ == Clock::Cycles && mine != nullptr) [[likely]]
    return mine->clock.now(cycles_);
  return now();
}

inline detail::Scheduled Core::schedule(const detail::TaskSource& task, detail::When when) {
  if (const Phase phase = lifecycle_.phase(); phase != Phase::Started) [[unlikely]]
    return refuse_in(phase);
  Producer* const mine = thread_cache::find(id_);
  const std::int64_t deadline = when.deadline([&] { return begin_of_delay(mine); });
  if (mine == nullptr) [[unlikely]]
    return offer_first(task, deadline);
  if (admission_.limited()) [[unlikely]]
    return offer_limited(*mine, task, deadline);
  return offer_as<false>(*mine, task, deadline);
}

/// `node`: with a built task and so many references, which belong to the caller; or null.
[[gnu::noinline, gnu::cold]] detail::Scheduled Core::refuse(Node* node, Result why, std::uint64_t references) noexcept {
  const detail::Scheduled refused = detail::Scheduled::refused(why, admission_.limit());
  if (node == nullptr) return refused;
  node->tell(detail::NotRun::Refused);
  // The task may own the timer: after it is destroyed the node alone keeps the core.
  node->destroy_task();
  if (node->drop_references(references)) recycle(node);
  return refused;
}

/// `producer` is null when there was no memory for one.
inline void Core::count_cancelled(Producer* producer, Node& node, std::uint64_t before) noexcept {
  if (producer != nullptr) [[likely]] {
    producer->counters.cancelled.add(1);
  } else {
    counters_.note_cancelled_without_producer();
  }
  if (admission_.release()) [[unlikely]]
    wake_for_none_pending();
  if (Node::state_of(before) != NodeState::InWheel) {
    if (producer != nullptr && !node.published_by(*producer)) count_dead(*producer);
    return;
  }
  if (producer != nullptr && put_recheck(*producer, node, kForever)) [[likely]]
    return;
  if (node.hide_from_rechecks()) {
    inbox_.put_without_memory(node);  // and is_awaited() then
    sleeper_.wake_if_asleep();
  }
}

/// The entry of a timeout of another producer is dead now. Its owner drops it, unless that does nothing more.
inline void Core::count_dead(Producer& canceller) noexcept {
  if (++canceller.dead < Producer::kHandOver) [[likely]]
    return;
  canceller.dead = 0;
  if (inbox_.note_dead()) sleeper_.wake();
}

/// This thread has cancelled the timeout, whose word was `before`, and owns its task. Until this returns, something
/// keeps the node and with it the core: the caller's handle, a reference of the cancel, or, for an id, the timer.
inline void Core::finish_cancel(Producer* mine, Node& node, std::uint64_t before, std::uint64_t references) noexcept {
  if (mine != nullptr) [[likely]] {
    count_cancelled(mine, node, before);
  } else {
    count_cancelled(ProducerLease(producers_).get(), node, before);
  }
  switch (Node::kind_of(before)) {
    case detail::TaskKind::Shared:
      wake_for_cancelled_hook();
      break;
    case detail::TaskKind::Callable:
      // It may own the handle that is being used here, and the timer too: Node::cancel() has taken a reference.
      {
        const TaskScope inside(node);
        node.stored_task().~TimerTask();
      }
      if (node.finish(references + 1)) recycle(&node);
      return;
    default:
      break;
  }
  if (references != 0 && node.drop_references(references)) recycle(&node);
}

inline Producer* Core::find_producer() const noexcept {
  Producer* const mine = thread_cache::find(id_);
  if (mine != nullptr) [[likely]]
    return mine;
  return thread_cache::find_held(id_);
}

bool Core::cancel(Node& node) noexcept {
  Core& core = node.core();
  Producer* const mine = core.find_producer();
  const std::uint64_t before = node.cancel(mine != nullptr && node.published_by(*mine));
  if (!Node::pending(before)) return false;
  core.finish_cancel(mine, node, before, 0);
  return true;
}

inline CancelResult Core::cancel(TimeoutId id) noexcept {
  const NodeName name(id.value());
  Node* const node = SlabDirectory::find(name.index(), id_);
  if (node == nullptr) return CancelResult::Gone;
  Producer* const mine = thread_cache::find(id_);
  // Most timeouts end here: the producer's own, which the worker has not seen.
  if (mine != nullptr && node->published_by(*mine) && node->withdraw_life(name.life())) [[likely]] {
    mine->counters.cancelled.add(1);
    mine->pool.untake(node);
    if (admission_.limited() || mine->pool.is_full()) [[unlikely]]
      return finish_withdrawal(*mine);
    return CancelResult::Cancelled;
  }
  return cancel_any(*node, name.life());
}

/// The rare rest of cancel(), in a function of its own so that the rest needs no stack.
[[gnu::noinline]] CancelResult Core::finish_withdrawal(Producer& mine) noexcept {
  if (mine.pool.is_full()) mine.pool.spill();
  if (admission_.release()) wake_for_none_pending();
  return CancelResult::Cancelled;
}

[[gnu::noinline]] CancelResult Core::cancel_any(Node& node, std::uint32_t life) noexcept {
  Producer* const mine = find_producer();
  const bool own = mine != nullptr && node.published_by(*mine);
  const std::uint64_t before = node.cancel_life(life, own);
  if (!Node::pending(before)) return node.is_claimed(life) ? CancelResult::Running : CancelResult::Gone;
  finish_cancel(mine, node, before, Node::state_of(before) == NodeState::InWheel ? 1 : 0);
  if (own && Node::leaves_no_reference(before)) recycle(&node);
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

bool Core::reschedule(Node& node, detail::When when) {
  // A connection that has been quiet has its node in no cache: fetch it while the clock is read.
  if (!when.is_deadline()) prefetch_to_write(&node);
  Core& core = node.core();
  const std::int64_t deadline = when.deadline([&] { return core.begin_of_delay(thread_cache::find(core.id_)); });
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
/// request, unless the node or a recheck request for it is still queued. The request is enqueued before the word and
/// the deadline change, because allocating it may fail or take long. So the worker may take it too early. This thread
/// finds that out after it has set kRecheckQueued: its place has no recheck request any more. It then enqueues another
/// one, which needs no memory, because the queue is empty. (The worker exchanges the word for each request, so this
/// thread sees that the worker has dequeued it.)
bool Core::move(Node& node, std::int64_t deadline) {
  std::uint64_t seen = node.word.load(std::memory_order_acquire);
  if (!Node::pending(seen)) return false;
  std::optional<ProducerLease> producer;
  const auto put = [&] {
    if (!producer) producer.emplace(producers_);
    return producer->get() != nullptr && put_recheck(*producer->get(), node, deadline);
  };
  bool put_before = Node::needs_recheck(seen) && deadline < node.deadline.load(std::memory_order_relaxed);
  if (put_before && !put()) throw std::bad_alloc();
  const std::int64_t before = node.deadline.exchange(deadline, std::memory_order_relaxed);
  const bool earlier = deadline < before;
  bool asks = false;
  for (;;) {
    if (!Node::pending(seen)) {
      // The worker may have expired it for the new deadline already; then, and only then, it ran before the old one.
      if (earlier && Node::state_of(seen) == NodeState::Expired) return true;
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
    // The worker must come to an entry of another thread, whose place may be listed for a later time. Listing this
    // thread's place is not enough: a pass may open it without coming to that entry.
    inbox_.note_urgent();
  }
  return true;
}

/// Restores the old deadline after a lack of memory for a recheck request, and throws std::bad_alloc. If the timeout
/// has ended meanwhile, returns whether the worker has expired it, for `deadline`: then it was moved.
bool Core::undo_move(Node& node, std::int64_t deadline, std::int64_t before, std::uint64_t seen) {
  node.deadline.compare_exchange_strong(deadline, before, std::memory_order_relaxed);
  while (Node::pending(seen)) {
    // A worker that has read `deadline` must fail to expire it.
    if (node.word.compare_exchange_weak(seen, seen | Node::kMoved, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      throw std::bad_alloc();
    }
  }
  return Node::state_of(seen) == NodeState::Expired;
}

bool Core::put_recheck(Producer& producer, Node& node, std::int64_t deadline) noexcept {
  if (!Inbox::put_recheck(producer.place, node)) return false;
  AsymmetricFence::light();  // as in offer()
  inbox_.list_rechecks(producer.place);
  if (deadline != kForever) inbox_.list(producer.place, deadline);
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
  inbox_.note_all_awaited();
  AsymmetricFence::light();
  if (!sleeper_.awake()) sleeper_.wake_for(now() + hook_patience_);
}

}  // namespace internal

// The way of a request is in one file, so that the compiler makes one function of each direction.

detail::Scheduled Timer::schedule(const detail::TaskSource& task, detail::When when) {
  return core_->schedule(task, when);
}

CancelResult Timer::cancel(TimeoutId id) noexcept { return core_->cancel(id); }

}  // namespace hwt
