// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/memory/origin_table.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

namespace hwt {
namespace internal {

using detail::Result;

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
    // The timer's reference, and that of a handle. A named timeout has an id, and no handle.
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
    return unpublish(producer, name, task.named, Result::NoMemory);
  // Store (the inbox), then load (whether it is listed, the phase): pairs with two heavy fences of the worker. They
  // come after it unlists a place, and after the timer was stopped.
  AsymmetricFence::light();
  if (Inbox::must_list(producer.place, deadline) || !running()) [[unlikely]]
    return tell_worker(producer, name, task.named, deadline);
  return {node, name.value()};
}

/// The rare end of a schedule(). In a function of its own so that the rest needs few registers.
[[gnu::noinline]] detail::Scheduled Core::tell_worker(Producer& producer, NodeName name, bool named,
                                                      std::int64_t deadline) noexcept {
  inbox_.list(producer.place, deadline);
  if (!running()) return unpublish(producer, name, named, Result::Stopped);
  sleeper_.wake_for(deadline);
  return {&name.node(), name.value()};
}

/// Refuses a timeout that was published, unless another thread was faster. Then it was accepted: the worker that
/// empties a stopped timer has it, or a thread that knew its id has cancelled it.
[[gnu::noinline, gnu::cold]] detail::Scheduled Core::unpublish(Producer& producer, NodeName name, bool named,
                                                               Result why) noexcept {
  Node& node = name.node();
  if (node.withdraw(name.life())) {
    producer.counters.scheduled.add(-1);
    if (admission_.release()) wake_for_none_pending();
    // withdraw() has dropped the timer's reference. refuse() drops one: that of the handle, or this one.
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

[[gnu::noinline]] detail::Scheduled Core::schedule_any(const detail::TaskSource& task, When when, Producer* mine) {
  // schedule() takes no Origin, so that untraced timers do not pay for passing it. The caller passes it to
  // schedule_traced().
  if (traces_origins()) return detail::Scheduled::refused(Result::Untraced);
  const ProducerLease lease(producers_, mine);
  return offer_any(lease.get(), task, when.deadline([&] { return begin_of_delay(lease.get()); }));
}

detail::Scheduled Core::schedule_traced(const detail::TaskSource& task, When when, const Origin& origin) {
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
[[gnu::noinline]] detail::Scheduled Core::schedule_plain(const detail::TaskSource& task, When when, Producer& mine) {
  return offer_as<true>(mine, task, when.deadline([&] { return begin_of_delay(&mine); }));
}

inline detail::Scheduled Core::schedule(const detail::TaskSource& task, When when) {
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

}  // namespace internal

// In this file so that the compiler inlines Core::schedule().
detail::Scheduled Timer::schedule(const detail::TaskSource& task, When when) { return core_->schedule(task, when); }

}  // namespace hwt
