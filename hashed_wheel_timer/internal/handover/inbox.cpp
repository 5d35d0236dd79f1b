// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/handover/inbox.h"

#include <algorithm>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

namespace hwt::internal {

std::size_t Inbox::Place::dequeue(NodeName* entries, std::size_t max) noexcept {
  const std::size_t count = queue_.dequeue(entries, max);
  return count != 0 ? count : young_.take(entries, max);
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

void Inbox::ask(Request request, Sleeper& sleeper) noexcept {
  note(request);
  sleeper.wake_if_asleep();
}

void Inbox::list_anew(Place& place, std::int64_t deadline) noexcept {
  place.listed_for_ = deadline;
  const std::int64_t before = place.earliest_.exchange(deadline & ~kNotInList, std::memory_order_acq_rel);
  if ((before & kNotInList) != 0) listed_.push(place);
  // Store (the list), then load: the caller reads the phase afterwards. A worker that empties a stopped timer reads the
  // list and not the queues. The light fence that the caller passed after it enqueued the entry came before this push,
  // so the push needs another one.
  AsymmetricFence::light();
}

void Inbox::list_rechecks_anew(Place& place) noexcept {
  if (!place.rechecks_listed_.exchange(true, std::memory_order_acq_rel)) listed_rechecks_.push(place);
  AsymmetricFence::light();  // store (the list), then load: the caller may look whether its place is listed
}

}  // namespace hwt::internal
