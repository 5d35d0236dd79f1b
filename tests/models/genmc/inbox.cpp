// The inbox (Inbox, Intake). The owner of a place enqueues an entry, drops it by sift() if it is still there, and
// enqueues a recheck request and another entry. Another owner enqueues an entry, a recheck request without memory, and
// a note. The worker takes once. Entries that it has not found are in a listed place. Nothing is taken twice, and
// entries stay in order.

#include "hashed_wheel_timer/internal/handover/inbox.cpp"  // NOLINT(bugprone-suspicious-include): one unit

#include "hashed_wheel_timer/internal/handover/entry_buffer.cpp"  // NOLINT(bugprone-suspicious-include)
#include "hashed_wheel_timer/internal/handover/intake.cpp"        // NOLINT(bugprone-suspicious-include)
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::AsymmetricFence;
using hwt::internal::Inbox;
using hwt::internal::Intake;
using hwt::internal::Node;
using hwt::internal::NodeName;

Inbox inbox;
Inbox::Place place;
Inbox::Place other_place;
Node node;
constexpr std::uint32_t kIndex = 1;
constexpr std::uint32_t kOtherIndex = 2;
Node overflown;
Intake intake(inbox);
int dropped = 0;  // the owner's
int noted = 0;    // stored before a note
// The worker's.
std::uint32_t taken[2];
int entries = 0;
int others = 0;
int looks = 0;
int overflow = 0;

void put(Inbox::Place& to, std::uint32_t index, std::uint32_t entry) {
  if (!Inbox::put(to, {index, entry})) {
    Inbox::make_room(to, 1, 1);
    Inbox::put(to, {index, entry});
  }
  AsymmetricFence::light();
  inbox.list(to, 5);
}

void own() {
  put(place, kIndex, 0);
  Inbox::sift(place, 1, [](const NodeName& entry) {
    MODEL_ASSERT(entry.life() == 0);
    ++dropped;
    return false;
  });
  Inbox::reserve_recheck(place);
  Inbox::put_recheck(place, node);
  AsymmetricFence::light();
  inbox.list_rechecks(place);
  put(place, kIndex, 1);
}
void own_other() {
  put(other_place, kOtherIndex, 0);
  inbox.put_without_memory(overflown);
  noted = 1;
  inbox.note(Inbox::kRechecks);
}

void pass() {
  const bool asked = inbox.asked() != 0;
  inbox.take_requests(Inbox::kRechecks);
  if (asked) MODEL_ASSERT(noted == 1);
  intake.open(4, true);
  for (Node* first = inbox.take_overflow(); first != nullptr; first = first->next_in_overflow()) ++overflow;
  Node* looked = nullptr;
  while (intake.take_rechecks(&looked, 1) != 0) ++looks;
  NodeName entry{};
  while (intake.take(&entry, 1) != 0) {
    if (entry.index() == kOtherIndex) {
      ++others;
    } else {
      taken[entries++] = entry.life();
    }
  }
}

}  // namespace

int main() {
  model::run<own, own_other, pass>();
  pass();
  MODEL_ASSERT(entries + dropped == 2 && others == 1 && looks == 1 && overflow == 1);
  MODEL_ASSERT(taken[entries - 1] == 1 && (entries == 1 || taken[0] == 0));
  return 0;
}
