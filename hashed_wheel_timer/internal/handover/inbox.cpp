#include "hashed_wheel_timer/internal/handover/inbox.h"

#include <algorithm>
#include <new>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

namespace hwt::internal {

std::size_t Inbox::Place::dequeue(NodeName* entries, std::size_t max) noexcept {
  const std::size_t count = queue_.dequeue(entries, max);
  return count != 0 ? count : young_.take(entries, max);
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

std::size_t Inbox::hand_over(Place& place, std::size_t most) noexcept {
  if (!place.try_lock()) return 0;
  most = place.queue_.size() == 0 ? std::min(most, place.young_.size()) : 0;
  std::size_t moved = 0;
  for (NodeName entry; moved != most && place.queue_.enqueue(place.young_.oldest()); ++moved)
    place.young_.take(&entry, 1);
  place.unlock();
  return moved;
}

void Inbox::list_anew(Place& place, std::int64_t deadline) noexcept {
  const std::int64_t before = place.earliest_.exchange(deadline & ~kNotInList, std::memory_order_acq_rel);
  if ((before & kNotInList) != 0) listed_.push(place);
  // Store (the list, its deadline), then load: the caller reads the phase and the announcement afterwards. A worker
  // that empties a stopped timer, or is about to sleep, reads the list and not the queues. The light fence that the
  // caller passed after it enqueued the entry came before this push, so the push needs another one.
  AsymmetricFence::light();
}

void Inbox::list_rechecks_anew(Place& place) noexcept {
  if (!place.rechecks_listed_.exchange(true, std::memory_order_acq_rel)) listed_rechecks_.push(place);
}

}  // namespace hwt::internal
