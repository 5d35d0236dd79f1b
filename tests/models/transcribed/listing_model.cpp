// The way of a place into the worker's lists and out of them (Inbox, Intake). No entry and no recheck request stays in
// an unlisted place, no place is listed twice, and each link is followed by its owner.

#include <utility>

#include "inbox_model.h"

namespace model {
namespace {

using namespace inbox;

constexpr int kProducers = 2;

/// Places with entries.
struct Listing : Model<Listing, kProducers + 1> {
  Inbox<Listing, kProducers> inbox;

  void thread(unsigned index) {
    if (index == 0) {
      inbox.put_and_list(0, 5);
      inbox.put_and_list(0, 6);  // later: does not list the place again if it is still listed
    } else if (index == 1) {
      inbox.put_and_list(1, 5);
      inbox.put_and_list(1, 4);
      inbox.put_and_list(1, 6);
    } else {
      for (int i = 0; i < 3; ++i) inbox.open();
    }
  }

  void after() {
    inbox.open();
    MODEL_ASSERT(inbox.places[0].taken == 2);
    MODEL_ASSERT(inbox.places[1].taken == 3);
  }
};

/// Places with recheck requests, which have a list of their own.
struct Rechecks : Model<Rechecks, kProducers + 1> {
  static inline Weakening no_light_fence{"the light fence between put_recheck() and list_rechecks()"};
  static inline Weakening list_first{"list_rechecks() before put_recheck()"};
  static inline Weakening listed_not_acquire{"list_rechecks_anew(): acquire of the exchange of rechecks_listed_"};
  static inline Weakening push_relaxed{"list_rechecks_anew(): release of the push"};
  static inline Weakening take_relaxed{"take_listed_rechecks(): acquire of the exchange"};
  static inline Weakening unlist_not_release{"unlist_rechecks(): release"};
  static inline Weakening link_late{"unlist_rechecks(): the link read afterwards"};
  static inline Weakening no_heavy_fence{"open(): the heavy fence after unlist_rechecks()"};
  static inline Weakening look_early{"open(): the requests looked at before unlist_rechecks()"};

  static constexpr int kRequests = 2;

  struct Place {
    Atomic<int> rechecks;           // EntryBuffer<Node*>*. relaxed here: the push and the take of the list order it
    Plain<int> inside_rechecks{0};  // the members that its constructor has written
    Atomic<int> put;                // how many requests were ever put there
    Atomic<int> rechecks_listed;
    Plain<int> next_listed_recheck{-1};
    // The worker's.
    bool rechecked = false;
    int taken = 0;
  };
  Place places[kProducers];
  Atomic<int> listed_rechecks{-1};

  void thread(unsigned index) {
    if (index == kProducers) {
      for (int i = 0; i < 3; ++i) open();
      return;
    }
    for (int i = 1; i <= kRequests; ++i) {
      if (list_first) list_rechecks(static_cast<int>(index));
      put_recheck(places[index], i);
      if (!no_light_fence) light_fence();
      if (!list_first) list_rechecks(static_cast<int>(index));
    }
  }

  void put_recheck(Place& place, int number) {
    if (number == 1) {
      place.inside_rechecks.set(1);
      place.rechecks.store(1, mo_relaxed);
    }
    place.put.store(number, mo_release);
  }

  void list_rechecks(int index) {
    Place& place = places[index];
    if (place.rechecks_listed.load(mo_relaxed) != 0) return;
    if (place.rechecks_listed.exchange(1, listed_not_acquire ? mo_relaxed : mo_acquire) != 0) return;
    int next = listed_rechecks.load(mo_relaxed);
    do {
      place.next_listed_recheck.set(next);
    } while (!listed_rechecks.compare_exchange_weak(next, index, push_relaxed ? mo_relaxed : mo_release, mo_relaxed));
  }

  /// Intake::open(), and then take_rechecks() until no request is left.
  void open() {
    int next = listed_rechecks.load(mo_relaxed);
    if (next == -1) return;
    next = listed_rechecks.exchange(-1, take_relaxed ? mo_relaxed : mo_acquire);
    while (next != -1) {
      Place& place = places[next];
      if (!link_late) next = place.next_listed_recheck.get();
      if (look_early) take_rechecks(place);
      place.rechecks_listed.exchange(0, unlist_not_release ? mo_relaxed : mo_release);
      if (link_late) next = place.next_listed_recheck.get();
      place.rechecked = true;
    }
    if (!no_heavy_fence) heavy_fence();
    for (Place& place : places) {
      if (std::exchange(place.rechecked, false) && !look_early) take_rechecks(place);
    }
  }

  void take_rechecks(Place& place) {
    MODEL_ASSERT(place.rechecks.load(mo_relaxed) == 1);
    MODEL_ASSERT(place.inside_rechecks.get() == 1);
    place.taken = place.put.load(mo_relaxed);
  }

  void after() {
    open();
    for (const Place& place : places) MODEL_ASSERT(place.taken == kRequests);
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  const int entries = check<Listing>({&no_light_fence, &list_first, &listed_not_acquire, &listed_in_two_steps,
                                      &push_relaxed, &take_relaxed, &file_not_release, &link_late, &filed_unnoticed,
                                      &unlist_always, &no_heavy_fence, &look_early});
  using R = Rechecks;
  const int rechecks =
      check<R>({&R::no_light_fence, &R::list_first, &R::listed_not_acquire, &R::push_relaxed, &R::take_relaxed,
                &R::unlist_not_release, &R::link_late, &R::no_heavy_fence, &R::look_early});
  return entries + rechecks;
}
