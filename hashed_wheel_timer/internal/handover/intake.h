// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hashed_wheel_timer/internal/handover/inbox.h"

namespace hwt::internal {

/// The worker's end of the inbox. Only the worker uses it. For each pass it calls open(), and then take_rechecks() and
/// take() until these return 0 or the pass has taken enough. A later pass takes the rest.
///
/// A listed place waits in filed_ until its time has come, and a pass moves it to near_. A pass over everything moves
/// all other places to far_. A place with recheck requests is moved to rechecked_.
///
/// The places of near_, far_ and rechecked_ take turns. In a turn the worker takes some entries of one place. A round
/// of turns takes no more than half of a pass, so each place has a turn in each pass, whatever floods beside it. Places
/// of far_ have one turn after Tuning::kNearTurns turns of near_, and those that near_ does not need. When their time
/// has come before their turn, open() appends them to near_ too.
class Intake {
 public:
  explicit Intake(Inbox& inbox) noexcept : inbox_(inbox) {}

  /// Begins a pass over the places with a deadline up to `until`, and over all others after them if `everything`. From
  /// now on take() returns the entries that were enqueued there before this call, and those that earlier passes have
  /// left. Calls of take_rechecks() return all recheck requests that were enqueued before this call. Passes the heavy
  /// fence if it has moved any place.
  void open(std::int64_t until, bool everything) noexcept;

  /// Takes the next new timeouts, all of one producer and in its order. Returns their number. Returns 0 if none are
  /// left, or if their producers are sifting (see held_up()).
  std::size_t take(NodeName* entries, std::size_t max) noexcept;
  /// Takes the next recheck requests. Returns their number.
  std::size_t take_rechecks(Node** nodes, std::size_t max) noexcept;

  /// Returns whether entries of opened passes are left. For tests.
  bool any() const noexcept { return any_near() || !far_.empty() || !rechecked_.empty(); }
  /// Returns whether entries are left in places with a near deadline.
  bool any_near() const noexcept { return !near_.empty(); }
  /// Returns whether the latest entries that take() returned are of such a place.
  bool took_near() const noexcept { return took_near_; }
  /// Returns whether the latest take() skipped a place because its owner, which is sifting, had the lock.
  bool held_up() const noexcept { return held_up_; }

  /// Returns the earliest deadline in the inbox that no pass was opened for, or an earlier time. Returns kUnlisted if
  /// there is none.
  std::int64_t earliest_waiting() noexcept;

 private:
  using Place = Inbox::Place;

  /// A queue of places that take turns.
  template <Place* Place::* kNext, bool Place::* kMember>
  class Round {
   public:
    bool empty() const noexcept { return first_ == nullptr; }
    std::size_t size() const noexcept { return size_; }
    Place* first() const noexcept { return first_; }
    Place* last() const noexcept { return last_; }
    /// Does nothing if the place is a member already.
    void append(Place& place) noexcept;
    Place& pop() noexcept;

   private:
    Place* first_ = nullptr;
    Place* last_ = nullptr;
    std::size_t size_ = 0;
  };

  // The value of left_ and rechecks_left_ until the place has its first turn of a pass.
  static constexpr std::size_t kUncounted = ~std::size_t{0};

  /// Returns how many entries one of so many places gives in a turn at most.
  static std::size_t share(std::size_t round, std::size_t places) noexcept {
    return std::max<std::size_t>(round / std::max<std::size_t>(places, 1), 1);
  }

  void file_listed() noexcept;
  template <class Places>
  bool unlist_until(std::int64_t deadline, Places& places) noexcept;
  void bring_near(std::int64_t until) noexcept;
  bool unlist_rechecks() noexcept;
  template <class Places>
  std::size_t take_from(Places& places, NodeName* entries, std::size_t max) noexcept;

  Inbox& inbox_;
  PairingHeap<Place, &Place::filed_> filed_;  // by earliest deadline
  // A place may be in near_ and far_ at once: an earlier pass has left entries in far_, and then its owner has enqueued
  // a near deadline. Its left_ counts the entries for both.
  Round<&Place::next_near_, &Place::near_> near_;
  Round<&Place::next_far_, &Place::far_> far_;
  Round<&Place::next_rechecked_, &Place::rechecked_> rechecked_;
  std::size_t turns_ = 0;  // since the latest one that was kept for far places
  bool held_up_ = false;
  bool took_near_ = false;
};

}  // namespace hwt::internal
