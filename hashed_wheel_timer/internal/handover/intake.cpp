// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/handover/intake.h"

#include <algorithm>
#include <utility>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt::internal {

template <Inbox::Place* Inbox::Place::* kNext, bool Inbox::Place::* kMember>
void Intake::Round<kNext, kMember>::append(Place& place) noexcept {
  if (std::exchange(place.*kMember, true)) return;
  place.*kNext = nullptr;
  (last_ == nullptr ? first_ : last_->*kNext) = &place;
  last_ = &place;
  ++size_;
}

template <Inbox::Place* Inbox::Place::* kNext, bool Inbox::Place::* kMember>
Inbox::Place& Intake::Round<kNext, kMember>::pop() noexcept {
  Place& place = *std::exchange(first_, first_->*kNext);
  if (first_ == nullptr) last_ = nullptr;
  place.*kMember = false;
  --size_;
  return place;
}

void Intake::open(std::int64_t until, bool everything) noexcept {
  file_listed();
  bring_near(until);
  const bool any_near = unlist_until(until, near_);
  const bool any_far = everything && unlist_until(Inbox::kUnlisted, far_);
  const bool any_rechecks = unlist_rechecks();
  if (!any_near && !any_far && !any_rechecks) return;
  AsymmetricFence::heavy();
  // A producer that moves a timeout to an earlier deadline lists its request. Then it may find its place listed for
  // that deadline, and list no more. If this pass has unlisted that place, it must take the request: so it looks again.
  if (unlist_rechecks()) AsymmetricFence::heavy();
}

void Intake::file_listed() noexcept {
  for (Place* listed = inbox_.take_listed(); listed != nullptr;) {
    Place& place = *std::exchange(listed, listed->next_listed_);  // before its owner may list it again
    filed_.insert(place, Inbox::file(place));
  }
}

/// Unlists the places with a deadline up to this one and adds them to `places`. Returns whether there were any.
template <class Places>
bool Intake::unlist_until(std::int64_t deadline, Places& places) noexcept {
  bool any = false;
  for (Place* place = filed_.top(); place != nullptr && place->filed_.key <= deadline; place = filed_.top()) {
    filed_.remove(*place);
    Inbox::unlist(*place, place->filed_.key);
    // The place may still have entries of an earlier pass, with earlier deadlines.
    place->opened_until_ = place->left_ == 0 ? place->filed_.key : std::min(place->opened_until_, place->filed_.key);
    place->left_ = kUncounted;
    places.append(*place);
    any = true;
  }
  return any;
}

/// Appends the places of far_ whose time has come to near_. Takes O(n) time, as opening them did.
void Intake::bring_near(std::int64_t until) noexcept {
  for (Place* place = far_.first(); place != nullptr; place = place->next_far_) {
    if (place->left_ != 0 && place->opened_until_ <= until) near_.append(*place);
  }
}

/// Unlists all places with recheck requests and adds them to rechecked_. Returns whether there were any.
bool Intake::unlist_rechecks() noexcept {
  Place* listed = inbox_.take_listed_rechecks();
  const bool any = listed != nullptr;
  while (listed != nullptr) {
    Place& place = *std::exchange(listed, listed->next_listed_recheck_);  // before its owner may list it again
    Inbox::unlist_rechecks(place);
    place.rechecks_left_ = kUncounted;
    rechecked_.append(place);
  }
  return any;
}

std::size_t Intake::take_rechecks(Node** nodes, std::size_t max) noexcept {
  while (!rechecked_.empty()) {
    Place& place = rechecked_.pop();
    // Counted after the fence in open(). A producer that enqueues later lists its place again.
    if (place.rechecks_left_ == kUncounted) place.rechecks_left_ = place.rechecks_.size();
    const std::size_t most = std::min(max, share(Tuning::kRecheckRound, rechecked_.size() + 1));
    const std::size_t count = place.rechecks_.take(nodes, std::min(most, place.rechecks_left_));
    place.rechecks_left_ -= count;
    // The place gets another turn.
    if (count != 0 && place.rechecks_left_ != 0) rechecked_.append(place);
    if (count != 0) return count;
  }
  return 0;
}

std::size_t Intake::take(NodeName* entries, std::size_t max) noexcept {
  held_up_ = took_near_ = false;
  const std::size_t most = std::min(max, share(Tuning::kRound, near_.size()));
  if (++turns_ > Tuning::kNearTurns) {
    turns_ = 0;
    if (const std::size_t count = take_from(far_, entries, most); count != 0) return count;
  }
  const std::size_t count = take_from(near_, entries, most);
  took_near_ = count != 0;
  return took_near_ ? count : take_from(far_, entries, max);
}

template <class Places>
std::size_t Intake::take_from(Places& places, NodeName* entries, std::size_t max) noexcept {
  for (Place* const last = places.last(); !places.empty();) {
    Place& place = places.pop();
    std::size_t count = 0;
    if (place.left_ == 0) {
      // The place was in near_ and far_, and its entries have been taken.
    } else if (place.try_lock()) {
      // Counted under the lock, because the number is wrong while the producer sifts. Counted after the fence in
      // open(), because a producer that enqueues later lists its place again.
      if (place.left_ == kUncounted) place.left_ = place.size();
      count = place.dequeue(entries, std::min(max, place.left_));
      place.unlock();
      place.left_ = count == 0 ? 0 : place.left_ - count;  // count is 0 if its owner has dropped the rest
    } else {
      held_up_ = true;
    }
    if (place.left_ != 0) places.append(place);  // it gets another turn
    if (count != 0) return count;
    if (&place == last) break;  // each place has had one turn. Those that are left are locked by their owners
  }
  return 0;
}

std::int64_t Intake::earliest_waiting() noexcept {
  file_listed();
  const Place* const first = filed_.top();
  return first == nullptr ? Inbox::kUnlisted : first->filed_.key;
}

}  // namespace hwt::internal
