// The way of a place with entries into the worker's list and out of it (Inbox, Intake). No entry stays in an unlisted
// place, no place is listed twice, and each link is followed by its owner.

#include "inbox_model.h"

namespace model {
namespace {

using namespace inbox;

Weakening looks_relaxed{"put_recheck(): release of the queue's address"};
Weakening looks_taken_relaxed{"take_rechecks(): acquire of the queue's address"};

constexpr int kProducers = 2;

struct Listing : Model<Listing, kProducers + 1> {
  Inbox<Listing, kProducers> inbox;
  Atomic<int> looks;           // HandOverQueue<Node*>* of the first place
  Plain<int> inside_looks{0};  // what its constructor has written

  void thread(unsigned index) {
    if (index == 0) {
      inbox.put_and_list(0, 5);
      inside_looks.set(1);
      looks.store(1, looks_relaxed ? mo_relaxed : mo_release);
      inbox.put_and_list(0, 6);  // later: nobody tells the worker of it, if the place is still listed
    } else if (index == 1) {
      inbox.put_and_list(1, 5);
      inbox.put_and_list(1, 4);
      inbox.put_and_list(1, 6);
    } else {
      for (int i = 0; i < 3; ++i) pass();
    }
  }

  void pass() {
    inbox.open([this](int index) {
      if (index != 0 || looks.load(looks_taken_relaxed ? mo_relaxed : mo_acquire) == 0) return;
      MODEL_ASSERT(inside_looks.get() == 1);
    });
  }

  void after() {
    pass();
    MODEL_ASSERT(inbox.places[0].taken == 2);
    MODEL_ASSERT(inbox.places[1].taken == 3);
  }
};

}  // namespace
}  // namespace model

int main() {
  using namespace model;
  return check<Listing>({&no_light_fence, &list_first, &listed_not_acquire, &listed_in_two_steps, &push_relaxed,
                         &take_relaxed, &file_not_release, &link_late, &filed_unnoticed, &unlist_always,
                         &no_heavy_fence, &look_early, &looks_relaxed, &looks_taken_relaxed});
}
