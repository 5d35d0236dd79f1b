// The inbox by itself (Inbox, EntryBuffer, Intake). The owners of two places append entries and enqueue recheck
// requests. They sift their places in steps and move entries to the queue. The worker takes. No entry stays in an
// unlisted place, no place is listed twice, each link is followed by its owner, and kept entries stay in order. A pass
// that clears a note sees what its owner wrote before.

#include "hashed_wheel_timer/internal/handover/inbox.h"
#include "hashed_wheel_timer/internal/handover/intake.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "tests/models/checker.h"

namespace model {
namespace {

using hwt::internal::AsymmetricFence;
using hwt::internal::Inbox;
using hwt::internal::Intake;
using hwt::internal::Node;
using hwt::internal::NodeName;

constexpr unsigned kOwners = 2;
constexpr std::uint32_t kEntries = 5;
constexpr std::size_t kRoom = 2;  // so few that there are several arrays
constexpr std::uint32_t kDead = 1;
constexpr unsigned kRechecks = 2;

struct In final : Run {
  Inbox inbox;
  std::array<Inbox::Place, kOwners> places;
  std::array<Node, kOwners> nodes{};
  std::array<Node, kOwners> overflown{};
  std::array<int, kOwners> noted{};  // written by each owner before its note
  Intake intake{inbox};
  std::array<std::uint32_t, kOwners> next{};
  std::array<unsigned, kOwners> looks{};
  unsigned overflow = 0;

  void thread(unsigned index) override {
    if (index == kOwners) {
      for (int passes = 0; passes < 3; ++passes) {
        intake.open(4, false);
        take_all();
        pass();
      }
      return;
    }
    Inbox::Place& place = places[index];
    for (std::uint32_t i = 0; i < kEntries; ++i) {
      put(index, i);
      // One step of a sift, over two entries. The first step keeps entry 0 and drops entry 1, which leaves a gap. Does
      // nothing while the worker dequeues.
      if (i >= kDead + 1) Inbox::sift(place, kDead + 1, [](const NodeName& entry) { return entry.life() != kDead; });
      if (i == kEntries - 2) Inbox::hand_over(place, 1);
    }
    for (unsigned i = 0; i < kRechecks; ++i) {
      MODEL_ASSERT(Inbox::reserve_recheck(place));
      Inbox::put_recheck(place, nodes[index]);
      AsymmetricFence::light();
      inbox.list_rechecks(place);
    }
    inbox.put_without_memory(overflown[index]);
    noted[index] = 1;
    inbox.note(index == 0 ? Inbox::kUrgent : Inbox::kRechecks);
  }

  void put(unsigned index, std::uint32_t entry) {
    Inbox::Place& place = places[index];
    if (!Inbox::put(place, {index, entry})) {
      MODEL_ASSERT(Inbox::make_room(place, kRoom, kRoom) != 0);
      MODEL_ASSERT(Inbox::put(place, {index, entry}));
    }
    AsymmetricFence::light();
    inbox.list(place, entry == 1 ? 4 : 5);  // entry 1 is earlier, so its owner may push a filed place again
  }

  void pass() {
    const std::uint32_t asked = inbox.asked();
    inbox.take_requests(asked);
    MODEL_ASSERT((asked & Inbox::kUrgent) == 0 || noted[0] == 1);
    MODEL_ASSERT((asked & Inbox::kRechecks) == 0 || noted[1] == 1);
    intake.open(4, true);
    for (Node* node = inbox.take_overflow(); node != nullptr; node = node->next_in_overflow()) ++overflow;
    take_all();
  }

  void take_all() {
    std::array<Node*, 4> looked;
    while (const std::size_t count = intake.take_rechecks(looked.data(), looked.size())) {
      for (std::size_t i = 0; i < count; ++i) ++looks[owner(looked[i])];
    }
    std::array<NodeName, 2> entries;
    do {
      while (const std::size_t count = intake.take(entries.data(), entries.size())) {
        for (std::size_t i = 0; i < count; ++i) take(entries[i]);
      }
      if (intake.held_up()) yield();
    } while (intake.held_up());
    intake.earliest_waiting();
  }

  std::size_t owner(const Node* node) const { return static_cast<std::size_t>(node - nodes.data()); }

  void take(const NodeName& entry) {
    std::uint32_t& expected = next[entry.index()];
    MODEL_ASSERT(entry.life() == expected || (expected == kDead && entry.life() == kDead + 1));
    expected = entry.life() + 1;
  }

  void after() override {
    pass();
    for (unsigned index = 0; index < kOwners; ++index) {
      MODEL_ASSERT(next[index] == kEntries);
      MODEL_ASSERT(looks[index] == kRechecks);
    }
    MODEL_ASSERT(overflow == kOwners);
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::In>({.threads = model::kOwners + 1, .schedules = 20'000}, argc, argv);
}
