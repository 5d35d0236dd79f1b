#include "hashed_wheel_timer/timeout_scope.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/internal/platform/forked_child.h"

namespace hwt {
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
  if (process_ != internal::this_process()) {
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
  // Cancels all before it waits for one, so that no pending timeout expires meanwhile.
  std::erase_if(ids, [&](TimeoutId id) { return timer_.cancel(id) == CancelResult::Cancelled; });
  for (const TimeoutId id : ids) timer_.cancel_and_wait(id);
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
    for (std::size_t i = 0; i < count; ++i) cancelled += timer_.cancel(some[i]) == CancelResult::Cancelled ? 1 : 0;
    lock.lock();
  }
  return cancelled;
}

std::size_t TimeoutScope::size() const noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(ids_.begin(), ids_.end(), [&](TimeoutId id) { return detail::is_live(timer_, id); }));
}

void TimeoutScope::begin_adding() {
  const std::lock_guard lock(mutex_);
  if (ending_) throw IllegalState("add: the scope is being destroyed");
  if (ids_.size() + adding_ >= ids_.capacity()) {
    std::erase_if(ids_, [&](TimeoutId id) { return !detail::is_live(timer_, id); });
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
