// A place that is listed again (Inbox, Intake). Its owner enqueues an entry and looks whether the worker sleeps. Then
// it enqueues an earlier entry and two recheck requests, and notes two requests. The worker announces
// its sleep, looks into the list, and takes once. One of them sees the other. No entry is lost, late or
// taken twice.

#include "hashed_wheel_timer/internal/handover/entry_buffer.cpp"  // NOLINT(bugprone-suspicious-include): one unit
#include "hashed_wheel_timer/internal/handover/inbox.cpp"         // NOLINT(bugprone-suspicious-include)
#include "hashed_wheel_timer/internal/handover/intake.cpp"        // NOLINT(bugprone-suspicious-include)
#include "tests/models/genmc/program.h"

namespace {

using hwt::internal::AsymmetricFence;
using hwt::internal::Inbox;
using hwt::internal::Intake;
using hwt::internal::Node;
using hwt::internal::NodeName;

constexpr std::int64_t kEarly = 4;
constexpr std::int64_t kLate = 8;

Inbox inbox;
Inbox::Place place;
Node node;
std::atomic<bool> asleep{false};
int noted = 0;  // stored before the notes
// The owner's.
bool found_asleep = false;
// The worker's.
Intake intake(inbox);
bool found_listed = false;
std::uint32_t entries = 0;
int looks = 0;

void put(std::uint32_t entry, std::int64_t deadline) {
  if (!Inbox::put(place, {0, entry})) {
    Inbox::make_room(place, 2, 2);
    Inbox::put(place, {0, entry});
  }
  AsymmetricFence::light();
  inbox.list(place, deadline);
}

void put_recheck() {
  Inbox::reserve_recheck(place);
  Inbox::put_recheck(place, node);
  AsymmetricFence::light();
  inbox.list_rechecks(place);
}

void own() {
  put(0, kLate);
  found_asleep = asleep.load(std::memory_order_relaxed);
  put(1, kEarly);
  put_recheck();
  put_recheck();
  noted = 1;
  inbox.note(Inbox::kUrgent);
  inbox.note(Inbox::kEverything);
}

void pass() {
  const bool asked = inbox.asked() != 0;
  inbox.take_requests(Inbox::kUrgent | Inbox::kEverything);
  if (asked) MODEL_ASSERT(noted == 1);
  intake.open(kEarly, false);
  Node* looked = nullptr;
  while (intake.take_rechecks(&looked, 1) != 0) ++looks;
  NodeName entry{};
  while (intake.take(&entry, 1) != 0) MODEL_ASSERT(entry.life() == entries++);
}

void work() {
  asleep.store(true, std::memory_order_relaxed);
  AsymmetricFence::heavy();
  found_listed = intake.earliest_waiting() != Inbox::kUnlisted;
  pass();
}

}  // namespace

int main() {
  model::run<own, work>();
  MODEL_ASSERT(found_asleep || found_listed);
  pass();
  MODEL_ASSERT(entries == 2 && looks == 2);
  return 0;
}
