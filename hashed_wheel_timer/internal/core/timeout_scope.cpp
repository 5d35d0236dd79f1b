// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/timeout_scope.h"

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/handover/producer.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/platform/forked_child.h"

namespace hwt {

using internal::Core;
using internal::Node;

namespace {

/// Frees the room of a peak. Keeps it if there is no memory for a smaller vector.
void shrink(std::vector<TimeoutId>& ids, std::size_t room) noexcept {
  try {
    std::vector<TimeoutId> smaller;
    smaller.reserve(room);
    smaller.assign(ids.begin(), ids.end());
    ids.swap(smaller);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

TimeoutScope::TimeoutScope(Timer& timer) noexcept : timer_(timer), process_(internal::this_process()) {}

TimeoutScope::TimeoutScope(Timer& timer, BatchExecutor executor) noexcept
    : timer_(timer), executor_(std::move(executor)), process_(internal::this_process()) {}

TimeoutScope::~TimeoutScope() {
  // In a forked child the members may be in any state, because another thread of the parent may have been in add().
  Core* const core = this->core();
  if (internal::is_lost_to_child(process_, core == nullptr ? 0 : core->lifecycle().process())) {
    internal::abandon(ids_);
    internal::abandon(executor_);
    return;
  }
  std::unique_lock lock(mutex_);
  ending_ = true;
  // A task that still runs may be in add().
  none_adding_.wait(lock, [&] { return adding_ == 0; });
  std::vector<TimeoutId> ids = std::exchange(ids_, {});
  lock.unlock();
  const Timeout keeper = Node::adopt(keeper_.load(std::memory_order_relaxed));  // dropped when all have ended
  // Cancels all before it waits for one, so that no pending timeout expires meanwhile.
  std::erase_if(ids, [&](TimeoutId id) { return cancel(id) == CancelResult::Cancelled; });
  for (const TimeoutId id : ids) core->cancel_and_wait(id);
}

/// Returns the timer's core, or null before the first add().
Core* TimeoutScope::core() const noexcept {
  Node* const keeper = keeper_.load(std::memory_order_acquire);
  return keeper == nullptr ? nullptr : &keeper->core();
}

/// Takes a node of the timer, and makes it a timeout that was cancelled before any thread could see it. Called with the
/// lock held.
void TimeoutScope::keep_core() {
  Core& core = *timer_.core_;
  const internal::ProducerLease lease(core.producers(), internal::thread_cache::find(core.id()));
  Node* const node = lease.get() == nullptr ? nullptr : lease.get()->pool.take();
  if (node == nullptr) throw std::bad_alloc();
  node->publish(detail::TaskKind::Gone, false, *lease.get(), internal::NodeState::Cancelled);
  node->drop_references(1);  // the timer's
  keeper_.store(node, std::memory_order_release);
}

CancelResult TimeoutScope::cancel(TimeoutId id) noexcept {
  Core* const core = this->core();
  if (core == nullptr || core->timer() != nullptr) return timer_.cancel(id);
  Timeout timeout = core->find(id);  // a task that has destroyed the timer may still run on its worker
  if (timeout.cancel()) return CancelResult::Cancelled;
  return timeout.is_expired() ? CancelResult::Running : CancelResult::Gone;
}

/// Goes from the last id to the first, in groups of 64. Between two groups another thread may remove ids, which moves
/// later ids towards the first. So this thread may come to an id twice, but misses none.
std::size_t TimeoutScope::cancel_all() noexcept {
  std::array<TimeoutId, 64> some;
  std::size_t cancelled = 0;
  std::unique_lock lock(mutex_);
  for (std::size_t left = ids_.size(); (left = std::min(left, ids_.size())) != 0;) {
    const std::size_t count = std::min(some.size(), left);
    left -= count;
    std::copy_n(ids_.begin() + static_cast<std::ptrdiff_t>(left), count, some.begin());
    // Cancels without the lock, because that destroys callables of the user.
    lock.unlock();
    for (std::size_t i = 0; i < count; ++i) cancelled += cancel(some[i]) == CancelResult::Cancelled ? 1u : 0u;
    lock.lock();
  }
  return cancelled;
}

std::size_t TimeoutScope::size() const noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(ids_.begin(), ids_.end(), [&](TimeoutId id) { return core()->is_live(id); }));
}

void TimeoutScope::begin_adding() {
  const std::lock_guard lock(mutex_);
  if (ending_) throw IllegalState("add: the scope is being destroyed");
  if (keeper_.load(std::memory_order_relaxed) == nullptr) keep_core();
  if (ids_.size() + adding_ >= ids_.capacity()) {
    std::erase_if(ids_, [&](TimeoutId id) { return !core()->is_live(id); });
    // Makes room for twice the ids. So at least as many are added before the next look-up of all, and each added id
    // pays for one or two look-ups on average.
    const std::size_t needed = ids_.size() + adding_ + 1;
    if (2 * needed > ids_.capacity()) ids_.reserve(2 * needed);
    if (ids_.capacity() > std::max(8 * needed, kAlwaysKept)) shrink(ids_, 2 * needed);
  }
  ++adding_;
}

void TimeoutScope::finish_adding(TimeoutId id) noexcept {
  const std::lock_guard lock(mutex_);
  if (id) ids_.push_back(id);
  // Notifies with the lock held, because afterwards the destructor may destroy the condition variable.
  if (--adding_ == 0 && ending_) none_adding_.notify_all();
}

}  // namespace hwt
