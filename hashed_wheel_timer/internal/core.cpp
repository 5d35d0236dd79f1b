#include "hashed_wheel_timer/internal/core.h"

#include <limits>
#include <string>

#include "hashed_wheel_timer/internal/asymmetric_fence.h"

namespace hwt::internal {

Core::Core(Timer& timer, const Options& options, Clock clock)
    : timer_(&timer),
      clock_(clock),
      max_pending_(options.max_pending_timeouts),
      on_task_error_(options.on_task_error),
      id_(announce_core()) {
  AsymmetricFence::prepare();
}

namespace {

std::int64_t deadline_after(std::int64_t now, std::int64_t delay) noexcept {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return now > kMax - delay ? kMax : now + delay;
}

}  // namespace

void Core::Refused::raise() const {
  switch (why) {
    case Refusal::Stopped:
      throw IllegalState("new_timeout() cannot be called once the timer is stopped");
    case Refusal::Full:
      throw RejectedExecution("max_pending_timeouts: " + std::to_string(limit) + " timeouts are pending already");
    default:
      throw std::bad_alloc();
  }
}

bool Core::admit() noexcept {
  std::int64_t seen = admitted_.load(std::memory_order_relaxed);
  // Compare-exchange, not add and take back: a transient excess would refuse others below the limit.
  while (seen < max_pending_) {
    if (admitted_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
      return true;
  }
  return false;
}

Core::Offer Core::offer(Producer& producer, const detail::TaskSource& task, std::int64_t now, std::int64_t delay) {
  if (limited() && !admit()) {
    producer.rejected.add(1);
    return {nullptr, Refusal::Full, 0};
  }
  Node* const node = producer.pool.take();
  if (node == nullptr) {
    release_admission();
    return {nullptr, Refusal::NoMemory, 0};
  }
  const auto undo = [&] {
    producer.pool.untake(node);
    release_admission();
  };
  try {
    if (task.build(node->storage, task.source) == nullptr) {
      undo();
      return {nullptr, Refusal::NoMemory, 0};
    }
  } catch (...) {
    undo();
    throw;
  }
  const std::int64_t deadline = deadline_after(now, delay);
  node->deadline.store(deadline, std::memory_order_relaxed);
  producer.scheduled.add(1);
  const std::uint32_t generation = node->publish(task.kind);
  const auto uncount = [&] {
    producer.scheduled.add(-1);
    release_admission();
  };
  if (!pending_queue.enqueue(producer.pending, {node, generation})) {
    uncount();
    return {node, Refusal::NoMemory, 2};
  }
  // Store (the queue), then load (phase, the announcement): pairs with the heavy fence before the worker empties a
  // stopped timer, and before a long sleep.
  AsymmetricFence::light();
  if (!running() && node->withdraw()) {
    // Stopped meanwhile, and the worker had not seen it: it was never accepted.
    uncount();
    return {node, Refusal::Stopped, 1};
  }
  sleeper.wake_for(deadline);
  note_queued(producer);
  return {node, Refusal::None, 1};
}

inline Core::Offer Core::offer(const detail::TaskSource& task, std::int64_t now, std::int64_t delay) {
  if (Producer* const mine = thread_cache::find(id_)) [[likely]]
    return offer(*mine, task, now, delay);
  const ProducerLease lease(*this);
  if (lease.get() == nullptr) return {nullptr, Refusal::NoMemory, 0};
  return offer(*lease.get(), task, now, delay);
}

Timeout Core::schedule(const detail::TaskSource& task, std::int64_t now, std::int64_t delay, Refused& refused) {
  const Offer offered = offer(task, now, delay);
  if (offered.refusal == Refusal::None) [[likely]]
    return Node::adopt(offered.node);
  refused = {offered.refusal, max_pending_};
  if (offered.node != nullptr) {
    // The task may own the timer: after it is destroyed the node alone keeps the core.
    offered.node->destroy_task();
    if (offered.node->drop_references(offered.references)) recycle(offered.node);
  }
  return {};
}

void Core::note_queued(Producer& producer) noexcept {
  if (++producer.queued_since_wake < kCollectEvery) return;
  producer.queued_since_wake = 0;
  sleeper.wake_if_asleep();
}

/// `producer` is null where there is no memory for one.
inline void Core::count_cancelled(Producer* producer, Node& node, std::uint64_t left) noexcept {
  if (producer != nullptr) [[likely]] {
    producer->cancelled.add(1);
  } else {
    cancelled_without_producer_.fetch_add(1, std::memory_order_acq_rel);
  }
  release_admission();
  if (Node::state_of(left) == State::InWheel) queue_cancelled(producer, node);
}

bool Core::cancel(Node& node) noexcept {
  Core& core = node.core();
  Producer* mine = thread_cache::find(core.id());
  if (mine == nullptr) [[unlikely]]
    mine = thread_cache::find_held(core.id());
  const std::uint64_t left = node.cancel(mine != nullptr && &mine->pool == &NodePool::of(node));
  if (!Node::pending(left)) return false;
  // From here on this thread owns the task, and its handle keeps the node and with it the core.
  if (mine != nullptr) [[likely]] {
    core.count_cancelled(mine, node, left);
  } else {
    core.count_cancelled(ProducerLease(core).get(), node, left);
  }
  switch (Node::kind_of(left)) {
    case detail::TaskKind::Shared:
      core.wake_for_cancelled_hook();
      break;
    case detail::TaskKind::Callable:
      // It may own the very handle that is being used here, and the timer too: cancel() has taken a reference.
      node.stored_task().~TimerTask();
      if (node.drop_references(1)) recycle(&node);
      break;
    default:
      break;
  }
  return true;
}

bool Core::reschedule(Node& node, std::int64_t delay) {
  node.prefetch();  // a connection that has been quiet has its node in no cache: fetch it while the clock is read
  Core& core = node.core();
  if (!core.move(node, deadline_after(core.now(), delay))) return false;
  // Store (the deadline, the queue), then load (the announcement): as in offer().
  AsymmetricFence::light();
  core.sleeper.wake_for(node.deadline.load(std::memory_order_relaxed));
  return true;
}

/// A later deadline is only stored: the worker finds it when it comes to the old one. For an earlier one the worker
/// must be told, unless it has the node still to come; if it comes meanwhile, the worker finds kMoving
/// (Driver::place_of).
bool Core::move(Node& node, std::int64_t deadline) {
  const std::uint64_t begun = node.begin_move();
  if (!Node::pending(begun)) return false;
  const bool earlier = deadline < node.deadline.load(std::memory_order_relaxed);
  if (earlier && Node::state_of(begun) == State::InWheel && !tell_of_move(node)) {
    node.end_move(begun);
    throw std::bad_alloc();
  }
  node.deadline.store(deadline, std::memory_order_relaxed);
  return Node::pending(node.end_move(begun));
}

bool Core::tell_of_move(Node& node) noexcept {
  const auto tell = [&](Producer& producer) {
    if (!pending_queue.enqueue(producer.pending, {&node, 0, true})) return false;
    note_queued(producer);
    return true;
  };
  if (Producer* const mine = thread_cache::find(id_)) return tell(*mine);
  const ProducerLease lease(*this);
  return lease.get() != nullptr && tell(*lease.get());
}

void Core::queue_cancelled(Producer* producer, Node& node) noexcept {
  if (producer != nullptr) {
    if (!producer->cancelled_place) producer->cancelled_place.emplace(cancelled_queue);
    if (producer->cancelled_place->valid() && cancelled_queue.enqueue(*producer->cancelled_place, &node)) {
      note_queued(*producer);
      return;
    }
    producer->cancelled_place.reset();
  }
  cancelled_overflow.push(&node);
  sleeper.wake_if_asleep();
}

void Core::wake_for_cancelled_hook() noexcept {
  AsymmetricFence::light();
  if (!sleeper.awake()) sleeper.wake_for(steady_now());
}

std::int64_t Core::pending() const noexcept {
  if (limited()) return admitted_.load(std::memory_order_acquire);
  TimerStats stats;
  count_timeouts(stats);
  return stats.pending;
}

void Core::count_timeouts(TimerStats& stats) const noexcept {
  // What ends a timeout is read before what began it (both with acquire), so pending is never negative.
  stats.expired = expired_.get();
  stats.unprocessed = unprocessed_.get();
  stats.cancelled = cancelled_without_producer_.load(std::memory_order_acquire);
  producers_.for_each([&](const Producer& producer) {
    stats.cancelled += producer.cancelled.get();
    stats.rejected += producer.rejected.get();
  });
  producers_.for_each([&](const Producer& producer) { stats.scheduled += producer.scheduled.get(); });
  stats.pending = stats.scheduled - stats.expired - stats.unprocessed - stats.cancelled;
}

TimerStats Core::stats() const noexcept {
  TimerStats stats;
  count_timeouts(stats);
  stats.ticks = ticks_.get();
  stats.wakeups = wakeups_.get();
  stats.backlog = static_cast<std::int64_t>(pending_queue.size());
  stats.task_errors = task_errors_.load(std::memory_order_relaxed);
  stats.last_lag = std::chrono::nanoseconds(last_lag_.load(std::memory_order_relaxed));
  stats.max_lag = std::chrono::nanoseconds(max_lag_.load(std::memory_order_relaxed));
  return stats;
}

void Core::note_lag(std::int64_t lag) noexcept {
  last_lag_.store(lag, std::memory_order_relaxed);
  if (lag > max_lag_.load(std::memory_order_relaxed)) max_lag_.store(lag, std::memory_order_relaxed);
}

void Core::report_error(const Timeout& timeout) noexcept {
  task_errors_.fetch_add(1, std::memory_order_relaxed);
  if (on_task_error_) {
    try {
      on_task_error_(std::current_exception(), timeout);
      return;
    } catch (...) {  // the handler's own exception is logged instead
      error_log_.report(std::current_exception());
      return;
    }
  }
  error_log_.report(std::current_exception());
}

void Core::close() noexcept {
  retire_core(id_);
  // Both queues are left alone. In the pending queue are only withdrawn timeouts and moves; the nodes in the cancelled
  // queue were dropped from the wheel, and cancel() may still add some that nobody will look at.
  producers_.for_each([](Producer& producer) { producer.pool.begin_close(); });
  AsymmetricFence::heavy();
  std::int64_t out = 0;
  producers_.for_each([&](Producer& producer) { out += producer.pool.close(); });
  if (out_after_close_.fetch_add(out - kCounting, std::memory_order_acq_rel) + out - kCounting == 0) delete this;
}

void Core::returned_after_close(std::int64_t nodes) noexcept {
  if (out_after_close_.fetch_sub(nodes, std::memory_order_acq_rel) == nodes) delete this;
}

}  // namespace hwt::internal
