#pragma once

// Inbox and Intake, as far as the listing of places goes. Shared by the models.

#include <algorithm>
#include <utility>

#include "model.h"

namespace model::inbox {

inline Weakening no_light_fence{"the light fence between put() and list()"};
inline Weakening list_first{"list() before put()"};
inline Weakening listed_not_acquire{"list_anew(): acquire of the exchange of earliest_"};
inline Weakening listed_in_two_steps{"list_anew(): load and store of earliest_ instead of an exchange"};
inline Weakening push_relaxed{"list_anew(): release of the push"};
inline Weakening no_second_light_fence{"list_anew(): the light fence after the push"};
inline Weakening take_relaxed{"take_listed(): acquire of the exchange"};
inline Weakening unlist_not_release{"unlist(): release of the exchange"};
inline Weakening link_late{"open(): the link read after unlist()"};
inline Weakening no_heavy_fence{"open(): the heavy fence"};
inline Weakening look_early{"open(): the queue looked at before unlist()"};

constexpr int kUnlisted = 99;

/// Each thread below kPlaces owns the place of its number.
template <class Model, int kPlaces>
struct Inbox {
  struct Place {
    Atomic<int> put;  // how many entries were ever put there
    Atomic<int> earliest{kUnlisted};
    Plain<int> next_listed{-1};
    bool in_list = false;  // not in the code
    int taken = 0;         // the worker's
  };
  Place places[kPlaces];
  Atomic<int> listed{-1};
  int waiting = -1;  // the worker's: listed since open()

  // The owner of a place.

  void put(int index) { places[index].put.store(places[index].put.load(mo_relaxed) + 1, mo_release); }

  void put_and_list(int index, int deadline) {
    if (list_first) list(index, deadline);
    put(index);
    if (!no_light_fence) light_fence();
    if (!list_first) list(index, deadline);
  }

  void list(int index, int deadline) {
    const int earliest = places[index].earliest.load(mo_relaxed);
    if (deadline < earliest || earliest == kUnlisted) list_anew(index, deadline);
  }

  void list_anew(int index, int deadline) {
    Place& place = places[index];
    int before = 0;
    if (listed_in_two_steps) {
      before = place.earliest.load(mo_acquire);
      place.earliest.store(deadline, mo_release);
    } else {
      before = place.earliest.exchange(deadline, listed_not_acquire ? mo_relaxed : mo_acquire);
    }
    if (before == kUnlisted) {
      MODEL_ASSERT(!place.in_list);
      place.in_list = true;
      int next = listed.load(mo_relaxed);
      do {
        place.next_listed.set(next);
      } while (!listed.compare_exchange_weak(next, index, push_relaxed ? mo_relaxed : mo_release, mo_relaxed));
    }
    if (!no_second_light_fence) light_fence();
  }

  // The worker.

  int take_listed() {
    if (listed.load(mo_relaxed) == -1) return -1;
    return listed.exchange(-1, take_relaxed ? mo_relaxed : mo_acquire);
  }

  /// Intake::open() and the look into the queues, each of which finds all that is in it. `look` may look further.
  template <class Visit>
  void open(Visit&& look) {
    int opened[2 * kPlaces];
    int count = 0;
    for (int next : {std::exchange(waiting, -1), take_listed()}) {
      while (next != -1) {
        Place& place = places[next];
        opened[count++] = next;
        if (look_early) place.taken = place.put.load(mo_relaxed);
        if (!link_late) next = place.next_listed.get();
        place.in_list = false;
        place.earliest.exchange(kUnlisted, unlist_not_release ? mo_relaxed : mo_release);
        if (link_late) next = place.next_listed.get();
      }
    }
    if (count != 0 && !no_heavy_fence) Model::heavy_fence();
    for (int i = 0; i < count; ++i) {
      if (!look_early) places[opened[i]].taken = places[opened[i]].put.load(mo_relaxed);
      look(opened[i]);
    }
  }
  void open() {
    open([](int) {});
  }

  int earliest_waiting() {
    if (int last = take_listed(); last != -1) {
      const int first = last;
      while (places[last].next_listed.get() != -1) last = places[last].next_listed.get();
      places[last].next_listed.set(std::exchange(waiting, first));
    }
    int earliest = kUnlisted;
    for (int next = waiting; next != -1; next = places[next].next_listed.get()) {
      earliest = std::min(earliest, places[next].earliest.load(mo_relaxed));
    }
    return earliest;
  }
};

}  // namespace model::inbox
