#include "hashed_wheel_timer/internal/handover/inbox.h"

#include <algorithm>
#include <new>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

namespace hwt::internal {

std::size_t Inbox::Place::dequeue(NodeName* entries, std::size_t max) noexcept {
  if (const std::size_t count = queue_.dequeue(entries, max); count != 0) return count;
  // Spilled entries are younger than all entries in the queue, and nothing is enqueued while there are some.
  const std::size_t spilled = spilled_.load(std::memory_order_relaxed);
  const std::size_t count = std::min(max, spilled);
  std::copy_n(spill_.begin(), count, entries);
  std::copy(spill_.begin() + count, spill_.begin() + spilled, spill_.begin());
  spilled_.store(spilled - count, std::memory_order_relaxed);
  return count;
}

bool Inbox::put_recheck(Place& place, Node& node) noexcept {
  HandOverQueue<Node*>* rechecks = place.rechecks_.load(std::memory_order_relaxed);
  if (rechecks == nullptr) [[unlikely]] {
    rechecks = new (std::nothrow) HandOverQueue<Node*>;
    if (rechecks == nullptr) return false;
    if (!rechecks->valid()) {
      delete rechecks;
      return false;
    }
    place.rechecks_.store(rechecks, std::memory_order_release);
  }
  return rechecks->enqueue(&node);
}

bool Inbox::unspill(Place& place) noexcept {
  if (!place.try_lock()) return false;
  const std::size_t spilled = place.spilled_.load(std::memory_order_relaxed);
  std::size_t done = 0;
  while (done != spilled && place.queue_.enqueue(place.spill_[done])) ++done;
  std::copy(place.spill_.begin() + done, place.spill_.begin() + spilled, place.spill_.begin());
  place.spilled_.store(spilled - done, std::memory_order_relaxed);
  place.unlock();
  return done == spilled;
}

void Inbox::list_anew(Place& place, std::int64_t deadline) noexcept {
  const std::int64_t before = place.earliest_.exchange(deadline & ~kNotInList, std::memory_order_acq_rel);
  if ((before & kNotInList) != 0) listed_.push(place);
  // Store (the list, its deadline), then load (the phase, the announcement). A worker that empties a stopped timer, or
  // is about to sleep, reads the list and not the queues. The fence before list() covers only a place that was listed
  // before it.
  AsymmetricFence::light();
}

void Inbox::list_rechecks_anew(Place& place) noexcept {
  if (!place.asks_.exchange(true, std::memory_order_acq_rel)) asking_.push(place);
}

}  // namespace hwt::internal
