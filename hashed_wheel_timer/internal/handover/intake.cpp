#include "hashed_wheel_timer/internal/handover/intake.h"

#include <algorithm>
#include <utility>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"

namespace hwt::internal {

void Intake::append(Place& place) noexcept {
  place.next_at_work_ = nullptr;
  (last_ == nullptr ? first_ : last_->next_at_work_) = &place;
  last_ = &place;
}

Intake::Place& Intake::pop() noexcept {
  Place& place = *std::exchange(first_, first_->next_at_work_);
  if (first_ == nullptr) last_ = nullptr;
  return place;
}

void Intake::open() noexcept {
  bool unlisted = false;
  for (Place* listed : {std::exchange(waiting_, nullptr), inbox_.take_listed()}) {
    while (listed != nullptr) {
      Place& place = *std::exchange(listed, listed->next_listed_);  // before its owner may list it again
      Inbox::unlist(place);
      unlisted = true;
      place.left_ = place.rechecks_left_ = kUncounted;
      if (!std::exchange(place.at_work_, true)) append(place);
    }
  }
  if (unlisted) AsymmetricFence::heavy();
}

/// Its turn comes again if there is more to take.
void Intake::put_aside(Place& place) noexcept {
  if (place.left_ != 0 || place.rechecks_left_ != 0) {
    append(place);
  } else {
    place.at_work_ = false;
  }
}

std::size_t Intake::take_rechecks(Node** nodes, std::size_t max) noexcept {
  for (Place* const last = last_; first_ != nullptr;) {
    Place& place = pop();
    std::size_t count = 0;
    if (place.rechecks_left_ != 0) {
      HandOverQueue<Node*>* const rechecks = place.rechecks_.load(std::memory_order_acquire);
      // After the fence in open(): see take().
      if (place.rechecks_left_ == kUncounted) place.rechecks_left_ = rechecks == nullptr ? 0 : rechecks->size();
      if (place.rechecks_left_ != 0) count = rechecks->dequeue(nodes, std::min(max, place.rechecks_left_));
      place.rechecks_left_ -= count;
    }
    put_aside(place);
    if (count != 0) return count;
    if (&place == last) break;  // once around
  }
  return 0;
}

std::size_t Intake::take(NodeName* entries, std::size_t max) noexcept {
  held_up_ = false;
  for (Place* const last = last_; first_ != nullptr;) {
    Place& place = pop();
    std::size_t count = 0;
    if (place.left_ == 0) {
      // Only recheck requests are left.
    } else if (place.try_lock()) {
      // Under the lock, as a producer that sifts has some in its hand. And after the fence in open(): whatever comes
      // later lists the place again.
      if (place.left_ == kUncounted) place.left_ = place.size();
      count = place.dequeue(entries, std::min(max, place.left_));
      place.unlock();
      place.left_ = count == 0 ? 0 : place.left_ - count;  // 0: its owner has dropped some
    } else {
      held_up_ = true;
    }
    put_aside(place);
    if (count != 0) return count;
    if (&place == last) break;  // once around
  }
  return 0;
}

std::int64_t Intake::earliest_waiting() noexcept {
  if (Place* const listed = inbox_.take_listed(); listed != nullptr) {
    Place* last = listed;
    while (last->next_listed_ != nullptr) last = last->next_listed_;
    last->next_listed_ = std::exchange(waiting_, listed);
  }
  std::int64_t earliest = Inbox::kUnlisted;
  int places = 0;
  for (const Place* place = waiting_; place != nullptr; place = place->next_listed_) {
    if (++places > kMaxWaiting) return 0;
    earliest = std::min(earliest, place->earliest());
  }
  return earliest;
}

}  // namespace hwt::internal
