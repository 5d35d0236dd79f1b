// Threads that begin and end, and a core that is destroyed meanwhile (FreeSeats). A producer has one owner at a time,
// which sees it as the last owner left it. Each seat is deleted once. The last thread that refers to the stack of free
// seats deletes it.

#include "hashed_wheel_timer/internal/handover/seat.h"
#include "tests/models/checker.h"

namespace hwt::internal {

/// In place of the real one.
struct Producer {
  int uses = 0;
  model::Ghost<bool> has_owner = false;
};

}  // namespace hwt::internal

namespace model {
namespace {

using hwt::internal::FreeSeats;
using hwt::internal::Producer;
using hwt::internal::Seat;

constexpr unsigned kOwners = 3;

struct Seats final : Run {
  FreeSeats& free = *new FreeSeats;
  std::array<Producer, 2 * kOwners> producers;
  Ghost<unsigned> made = 0;
  std::atomic<unsigned> done{0};  // the program's duty: it destroys a timer only when no thread uses it

  void thread(unsigned index) override {
    if (index == kOwners) {
      while (done.load(std::memory_order_acquire) != kOwners) yield();
      return free.close();
    }
    for (int turn = 0; turn < 2; ++turn) {
      Seat* seat = free.take();
      if (seat == nullptr) seat = free.add(&producers[made++], 0);
      Producer& producer = *seat->producer;
      MODEL_ASSERT(!producer.has_owner);
      producer.has_owner = true;
      ++producer.uses;
      if (turn == 1) done.fetch_add(1, std::memory_order_release);
      producer.has_owner = false;
      free.give_back(seat);
    }
  }
};

}  // namespace
}  // namespace model

int main(int argc, char** argv) {
  return model::check<model::Seats>({.threads = model::kOwners + 1, .schedules = 50'000}, argc, argv);
}
