// Two threads that begin and end, and a core that is destroyed when neither uses it any more (FreeSeats). A producer
// has one owner at a time, which sees it as the last owner left it. Each seat is deleted once, and so is the stack of
// free seats.

#include "hashed_wheel_timer/internal/handover/seat.cpp"  // NOLINT(bugprone-suspicious-include): one unit

#include <array>
#include <atomic>

#include "tests/models/genmc/program.h"

namespace hwt::internal {

/// In place of the real one.
struct Producer {
  int uses = 0;
};

}  // namespace hwt::internal

namespace {

using hwt::internal::FreeSeats;
using hwt::internal::Producer;
using hwt::internal::Seat;

FreeSeats* seats;
std::array<Producer, 3> producers;
std::array<std::atomic<bool>, 2> done;  // the user's own

/// A thread comes, uses the timer, and ends.
template <unsigned kThread>
void use() {
  Seat* seat = seats->take();
  if (seat == nullptr) seat = seats->add(&producers[kThread], 0);
  ++seat->producer->uses;
  done[kThread].store(true, std::memory_order_release);
  seats->give_back(seat);
}

void close() {
  for (const std::atomic<bool>& one : done) model::wait_until([&] { return one.load(std::memory_order_acquire); });
  seats->close();
}

}  // namespace

int main() {
  seats = new FreeSeats;
  // One is free already.
  seats->give_back(seats->add(&producers[2], 0));
  model::run<use<0>, use<1>, close>();
  MODEL_ASSERT(producers[0].uses + producers[1].uses + producers[2].uses == 2);
  return 0;
}
