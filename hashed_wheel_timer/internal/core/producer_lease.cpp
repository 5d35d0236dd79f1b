#include "hashed_wheel_timer/internal/core/producer_lease.h"

#include <atomic>
#include <utility>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/platform/thread_end.h"

namespace hwt::internal {

namespace {

// None of these has a destructor: they may be used while the thread's other variables are destroyed, and after that.

// The seats that this thread has, the latest first. thread_end knows the first one too.
constinit thread_local Seat* held = nullptr;
// The thread has given its seats back. Other destructors that run after this may still use timers, and nobody would
// tell when they are done: they borrow.
constinit thread_local bool has_ended = false;

void give_all_back(void* first) noexcept {
  has_ended = true;
  thread_cache::latest = {};
  held = nullptr;
  // Not `held`: where thread_locals are emulated, their memory may have been given back, and be zero again.
  for (auto* seat = static_cast<Seat*>(first); seat != nullptr;) {
    Seat* const next = seat->next;
    seat->home->give_back(seat);
    seat = next;
  }
}

/// The seats of cores that are gone, behind `seat`.
void forget_closed_after(Seat& seat) noexcept {
  for (Seat** at = &seat.next; *at != nullptr;) {
    Seat* const next = *at;
    if (next->home->closed()) {
      *at = next->next;
      next->home->give_back(next);
    } else {
      at = &next->next;
    }
  }
}

constinit std::atomic<std::uint64_t> last_core_id{0};

}  // namespace

constinit thread_local thread_cache::Entry thread_cache::latest = {};

Producer* thread_cache::find_held(std::uint64_t core_id) noexcept {
  for (const Seat* seat = held; seat != nullptr; seat = seat->next) {
    if (seat->core_id != core_id) continue;
    latest = {core_id, seat->producer};
    return seat->producer;
  }
  return nullptr;
}

std::uint64_t announce_core() {
  // Here, so that what may fail in a thread's first use is memory alone.
  thread_end::prepare(give_all_back);
  return last_core_id.fetch_add(1, std::memory_order_relaxed) + 1;
}

ProducerLease::ProducerLease(Core& core) noexcept : producer_(thread_cache::find_held(core.id())) {
  if (producer_ != nullptr) return;
  Seat* const seat = core.producers().take(core);
  if (seat == nullptr) return;
  if (has_ended || !thread_end::available()) {
    borrowed_ = seat;
  } else {
    seat->next = held;
    if (!thread_end::tell(seat)) {
      seat->home->give_back(seat);
      return;
    }
    held = seat;
    forget_closed_after(*seat);
    thread_cache::latest = {core.id(), seat->producer};
  }
  producer_ = seat->producer;
}

}  // namespace hwt::internal
