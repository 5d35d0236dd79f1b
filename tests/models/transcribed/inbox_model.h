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
inline Weakening file_not_release{"file(): release"};
inline Weakening link_late{"file_listed(): the link read after file()"};
inline Weakening filed_unnoticed{"list_anew(): no push of a place that is filed"};
inline Weakening unlist_always{"unlist(): an exchange, also if the place is in the list again"};
inline Weakening no_heavy_fence{"open(): the heavy fence"};
inline Weakening look_early{"open(): the queue looked at before unlist()"};

constexpr int kUnlisted = 99;

// Place::earliest_: twice the deadline, and 1 if the place is not in the list.
constexpr int in_list(int deadline) { return 2 * deadline; }
constexpr int not_in_list(int deadline) { return 2 * deadline + 1; }

/// Each thread below kPlaces owns the place of its number.
template <class Model, int kPlaces>
struct Inbox {
  struct Place {
    Atomic<int> put;  // how many entries were ever put there
    Atomic<int> earliest{not_in_list(kUnlisted)};
    Plain<int> next_listed{-1};
    bool is_in_list = false;  // for an assertion; not in the code
    // The worker's.
    int filed = kUnlisted;  // under which deadline; kUnlisted: it is not filed
    int taken = 0;
  };
  Place places[kPlaces];
  Atomic<int> listed{-1};

  // The owner of a place.

  void put(int index) { places[index].put.store(places[index].put.load(mo_relaxed) + 1, mo_release); }

  void put_and_list(int index, int deadline) {
    if (list_first) list(index, deadline);
    put(index);
    if (!no_light_fence) light_fence();
    if (!list_first) list(index, deadline);
  }

  void list(int index, int deadline) {
    const int earliest = places[index].earliest.load(mo_relaxed) / 2;
    if (deadline < earliest || earliest == kUnlisted) list_anew(index, deadline);
  }

  void list_anew(int index, int deadline) {
    Place& place = places[index];
    int before = 0;
    if (listed_in_two_steps) {
      before = place.earliest.load(mo_acquire);
      place.earliest.store(in_list(deadline), mo_release);
    } else {
      before = place.earliest.exchange(in_list(deadline), listed_not_acquire ? mo_relaxed : mo_acquire);
    }
    if (filed_unnoticed ? before == not_in_list(kUnlisted) : before % 2 == 1) {
      MODEL_ASSERT(!place.is_in_list);
      place.is_in_list = true;
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

  void file_listed() {
    for (int next = take_listed(); next != -1;) {
      Place& place = places[next];
      const int after = link_late ? -1 : place.next_listed.get();
      place.is_in_list = false;
      int seen = place.earliest.load(mo_relaxed);
      while (!place.earliest.compare_exchange_weak(seen, seen | 1, file_not_release ? mo_relaxed : mo_release,
                                                   mo_relaxed)) {
      }
      place.filed = seen / 2;
      next = link_late ? place.next_listed.get() : after;
    }
  }

  /// Intake::open(), and then a take() of all entries of each opened place. Calls `look` for each of these places.
  template <class Visit>
  void open(Visit&& look) {
    file_listed();
    int opened[kPlaces];
    int count = 0;
    for (int index = 0; index < kPlaces; ++index) {
      Place& place = places[index];
      if (place.filed == kUnlisted) continue;
      opened[count++] = index;
      if (look_early) place.taken = place.put.load(mo_relaxed);
      int filed = not_in_list(std::exchange(place.filed, kUnlisted));
      if (unlist_always) {
        place.earliest.exchange(not_in_list(kUnlisted), mo_release);
      } else {
        place.earliest.compare_exchange_strong(filed, not_in_list(kUnlisted), mo_release, mo_relaxed);
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
    file_listed();
    int earliest = kUnlisted;
    for (const Place& place : places) earliest = std::min(earliest, place.filed);
    return earliest;
  }
};

}  // namespace model::inbox
