#include "hashed_wheel_timer/internal/core/core.h"

#include <algorithm>
#include <chrono>

#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/memory/origin_table.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/clock.h"

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
      id_(new_core_id()),
      plain_(options.max_pending_timeouts <= 0 && !options.trace_origins),
      tick_duration_(options.tick_duration.count()),
      hook_patience_(std::max<std::int64_t>(Inbox::kSoon - options.tick_duration.count(), 0)),
      depot_(*this, id_, options.trace_origins, sleeper_, [](Core& core) noexcept { delete &core; }),
      admission_(options.max_pending_timeouts) {
  AsymmetricFence::prepare();
  timer.core_ = this;
}

template <bool kPlain>
[[gnu::always_inline]] inline detail::Scheduled Core::offer_as(Producer& producer, const detail::TaskSource& task,
                                                               std::int64_t deadline, std::uint64_t trace) {
  const bool limited = !kPlain && admission_.limited();
  // Checked before the task is built, so that most refusals leave the callable as it was. Admitted only afterwards,
  // because copying the callable is the user's code and may take long.
  if (limited && admission_.full()) {
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
  if (limited && !admission_.admit()) [[unlikely]] {
    producer.counters.rejected.add(1);
    node->publish(task.kind, task.named, producer, NodeState::Cancelled);
    return refuse(node, Result::Full, task.named ? 1 : 2);
  }
  if (!kPlain && traces_origins()) {
    Slab::trace(*node, deadline, trace);
  } else {
    node->deadline.store(deadline, std::memory_order_relaxed);
  }
  producer.counters.scheduled.add(1);
  const NodeName name(Slab::index_of(*node), node->publish(task.kind, task.named, producer));
  if (!producer.put(name)) [[unlikely]]
    return take_back(producer, name, task.named, Result::NoMemory);
  // Store (the inbox), then load (whether it is listed, the phase, the announcement): pairs with three heavy fences of
  // the worker. They come after it unlists a place, after the timer was stopped, and after it announces a sleep.
  AsymmetricFence::light();
  if (Inbox::must_list(producer.place, deadline) || !running() || sleeper_.sleeps_beyond(deadline)) [[unlikely]]
    return tell_worker(producer, name, task.named, deadline);
  return {node, name.value()};
}

/// The rare end of a schedule(). In a function of its own so that the rest needs few registers.
[[gnu::noinline]] detail::Scheduled Core::tell_worker(Producer& producer, NodeName name, bool named,
                                                      std::int64_t deadline) noexcept {
  inbox_.list(producer.place, deadline);
  if (!running()) return take_back(producer, name, named, Result::Stopped);
  sleeper_.wake_for(deadline);
  return {&name.node(), name.value()};
}

/// Refuses a timeout that was published, unless another thread was faster. Then it was accepted: the worker that
/// empties a stopped timer has it, or a thread that knew its id has cancelled it.
[[gnu::noinline, gnu::cold]] detail::Scheduled Core::take_back(Producer& producer, NodeName name, bool named,
                                                               Result why) noexcept {
  Node& node = name.node();
  if (node.withdraw(name.life())) {
    producer.counters.scheduled.add(-1);
    if (admission_.release()) wake_for_none_pending();
    if (named) node.add_reference();
    return refuse(&node, why, 1);
  }
  // Without memory there is no entry, so the worker will not drop the timer's reference. If the generation has changed,
  // the cancel has taken that reference along.
  if (why == Result::NoMemory && node.generation() == name.life() && node.drop_references(1)) recycle(&node);
  return {&node, name.value()};
}

[[gnu::noinline]] detail::Scheduled Core::offer_any(Producer* producer, const detail::TaskSource& task,
                                                    std::int64_t deadline, std::uint64_t trace) {
  if (producer == nullptr) return refuse(nullptr, Result::NoMemory);
  return offer_as<false>(*producer, task, deadline, trace);
}

[[gnu::noinline]] detail::Scheduled Core::schedule_any(const detail::TaskSource& task, detail::When when,
                                                       Producer* mine) {
  // schedule() takes no Origin, so that untraced timers do not pay for passing it. The caller passes it to
  // schedule_traced().
  if (traces_origins()) return detail::Scheduled::refused(Result::Untraced);
  const ProducerLease lease(producers_, mine);
  return offer_any(lease.get(), task, when.deadline([&] { return begin_of_delay(lease.get()); }));
}

detail::Scheduled Core::schedule_traced(const detail::TaskSource& task, detail::When when, const Origin& origin) {
  if (const Phase phase = lifecycle_.phase(); phase != Phase::Started) return refuse_in(phase);
  const ProducerLease lease(producers_, thread_cache::find(id_));
  const std::int64_t begin = begin_of_delay(lease.get());
  const std::int64_t deadline = when.deadline([begin] { return begin; });
  const std::uint64_t trace = Trace(begin, OriginTable::number_of(origin)).value();
  const detail::Scheduled scheduled = offer_any(lease.get(), task, deadline, trace);
  if (scheduled.node != nullptr) probes::add(scheduled.value, deadline, origin.text(), origin.line());
  return scheduled;
}

/// Refuses a timeout, because the timer was in `phase` and not Started.
[[gnu::noinline, gnu::cold]] detail::Scheduled Core::refuse_in(Phase phase) noexcept {
  const bool can_start = phase == Phase::Init || phase == Phase::Starting;
  return detail::Scheduled::refused(can_start ? Result::NotStarted : Result::Stopped);
}

/// The way of most timeouts. In a function of its own so that schedule() needs no stack.
[[gnu::noinline]] detail::Scheduled Core::schedule_plain(const detail::TaskSource& task, detail::When when,
                                                         Producer& mine) {
  return offer_as<true>(mine, task, when.deadline([&] { return begin_of_delay(&mine); }));
}

inline detail::Scheduled Core::schedule(const detail::TaskSource& task, detail::When when) {
  if (const Phase phase = lifecycle_.phase(); phase != Phase::Started) [[unlikely]]
    return refuse_in(phase);
  if (!plain_ || !thread_cache::has(id_)) [[unlikely]]
    return schedule_any(task, when, thread_cache::find(id_));
  return schedule_plain(task, when, *thread_cache::latest.producer);
}

/// Refuses a timeout. `node` has a built task and `references` references, all of them the caller's; or it is null.
[[gnu::noinline, gnu::cold]] detail::Scheduled Core::refuse(Node* node, Result why, std::uint64_t references) noexcept {
  const detail::Scheduled refused = detail::Scheduled::refused(why, admission_.limit());
  if (node == nullptr) return refused;
  node->tell(detail::NotRun::Refused);
  // The task may own the timer. Once the task is destroyed, only the node keeps the core.
  node->destroy_task();
  if (node->drop_references(references)) recycle(node);
  return refused;
}

/// Fires the probe of a cancel, and releases its admission. This may call the user's on_earlier().
[[gnu::noinline]] void Core::release_cancelled(const Node& node, std::uint32_t life) noexcept {
  if (probes::kThere && traces_origins()) probes::cancel(NodeName(Slab::index_of(node), life).value());
  if (admission_.release()) wake_for_none_pending();
}

/// Counts a dead entry in the place of another producer. That producer drops it at a sift, unless its thread does
/// nothing more with the timer. Then the worker must.
inline void Core::count_dead(Producer& canceller) noexcept {
  if (++canceller.dead < Producer::kCalls) [[likely]]
    return;
  canceller.dead = 0;
  if ((inbox_.asked() & Inbox::kDead) == 0) ask(Inbox::kDead);
}

/// Not inlined, so that cancel() needs few registers.
[[gnu::noinline, gnu::cold]] void Core::ask(Inbox::Request request) noexcept { inbox_.ask(request, sleeper_); }

/// The rest of finish_cancel() for a node in the wheel: asks the worker to take it out.
inline void Core::free_from_wheel(Producer* producer, Node& node, const Node::Cancel& cancel) noexcept {
  const bool lacks_memory = !cancel.asks && Node::needs_recheck(cancel.before);
  if (cancel.asks) {
    put_recheck(*producer, node);
  } else if (lacks_memory) {
    inbox_.put_without_memory(node);
  }
  // Only now, because it may call on_earlier(), which may use the timer.
  if (!plain_) release_cancelled(node, Node::generation_of(cancel.before));
  if (cancel.asks) {
    call_for_rechecks(*producer, Producer::kRechecks);
  } else if (lacks_memory) {
    ask(Inbox::kRechecks);
  }
}

/// Finishes a cancel by this thread, which owns the task now. `producer` is null if there was no memory for one. `own`:
/// it has scheduled the timeout.
///
/// Until this returns, the core exists. The caller's handle keeps it, or the reference that the cancel of a callable,
/// or of an id in the wheel, has added. Otherwise the timer keeps it, and the node may already be another timeout.
inline void Core::finish_cancel(Producer* producer, Node& node, const Node::Cancel& cancel, bool own) noexcept {
  const std::uint64_t before = cancel.before;
  if (producer != nullptr) [[likely]] {
    producer->counters.cancelled.add(1);
  } else {
    counters_.note_cancelled_without_producer();
  }
  if (Node::state_of(before) == NodeState::InWheel) {
    free_from_wheel(producer, node, cancel);
  } else {
    if (!plain_) release_cancelled(node, Node::generation_of(before));
    if (producer != nullptr && !own) count_dead(*producer);
  }
  switch (Node::kind_of(before)) {
    case detail::TaskKind::Shared:
      wake_for_cancelled_hook();
      break;
    case detail::TaskKind::Callable:
      // The callable may own the caller's handle, and the timer too. So the cancel has added a reference.
      {
        const TaskScope inside(node);
        node.stored_task().~TimerTask();
      }
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
    if (node.cancel_queued(true)) [[likely]] {
      mine.counters.cancelled.add(1);
      if (!core.plain_) [[unlikely]]
        core.release_cancelled(node, node.generation() - 1);  // withdrawn
      return true;
    }
  }
  return core.cancel_any(node);
}

/// Another producer has scheduled the timeout, or it is in the wheel. In a function of its own so that cancel() needs
/// no stack.
[[gnu::noinline]] bool Core::cancel_of_other(Producer& mine, Node& node) noexcept {
  if (!plain_ || !node.cancel_queued(false)) return cancel_any(node);
  mine.counters.cancelled.add(1);
  count_dead(mine);
  return true;
}

[[gnu::noinline]] bool Core::cancel_any(Node& node) noexcept {
  ProducerLease lease(find_producer());
  const bool own = lease.get() != nullptr && node.published_by(*lease.get());
  const Node::Cancel cancel = node.cancel(own, [&] { return reserve_recheck(lease); });
  if (!Node::pending(cancel.before)) return false;
  finish_cancel(lease.get(producers_), node, cancel, own);
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
        return finish_withdrawal(mine, *node);
      return CancelResult::Cancelled;
    }
  }
  return cancel_any(*node, name.life());
}

/// The rare rest of cancel(), in a function of its own so that the rest needs no stack.
[[gnu::noinline]] CancelResult Core::finish_withdrawal(Producer& mine, Node& node) noexcept {
  const std::uint32_t next_life = node.generation();  // the node is free
  if (mine.pool.look_is_due()) mine.look();
  if (!plain_) release_cancelled(node, next_life - 2);
  return CancelResult::Cancelled;
}

[[gnu::noinline]] CancelResult Core::cancel_any(Node& node, std::uint32_t life) noexcept {
  ProducerLease lease(find_producer());
  const bool own = lease.get() != nullptr && node.published_by(*lease.get());
  const Node::Cancel cancel = node.cancel_life(life, own, [&] { return reserve_recheck(lease); });
  if (!Node::pending(cancel.before)) return node.is_claimed(life) ? CancelResult::Running : CancelResult::Gone;
  finish_cancel(lease.get(producers_), node, cancel, own);
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
  AsymmetricFence::light();  // as in offer_as()
  inbox_.list_rechecks(producer.place);
}

void Core::call_for_rechecks(Producer& producer, std::size_t many) noexcept {
  if (++producer.rechecks < many) [[likely]]
    return;
  producer.rechecks = 0;
  ask(Inbox::kRechecks);
}

/// Calls the driver of a timer without a worker, because no timeout is pending any more. Then an event loop that has
/// nothing else to do can end.
[[gnu::noinline]] void Core::wake_for_none_pending() noexcept {
  AsymmetricFence::light();  // as in offer_as(), but the driver reads the number of pending timeouts
  if (sleeper_.has_outside()) sleeper_.wake_if_asleep();
}

void Core::wake_for_cancelled_hook() noexcept {
  inbox_.note(Inbox::kEverything);
  AsymmetricFence::light();
  if (!sleeper_.awake()) sleeper_.wake_for(now() + hook_patience_);
}

}  // namespace internal

// These are in this file so that the compiler inlines Core::schedule() and Core::cancel() into them.

detail::Scheduled Timer::schedule(const detail::TaskSource& task, detail::When when) {
  return core_->schedule(task, when);
}

CancelResult Timer::cancel(TimeoutId id) noexcept { return core_->cancel(id); }

}  // namespace hwt
