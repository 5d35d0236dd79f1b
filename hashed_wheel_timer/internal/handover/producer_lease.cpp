#include "hashed_wheel_timer/internal/handover/producer_lease.h"

#include <atomic>
#include <memory>
#include <new>

#include "hashed_wheel_timer/internal/handover/seat_table.h"
#include "hashed_wheel_timer/internal/platform/thread_end.h"

namespace hwt::internal {

namespace {

// None of these has a destructor: they may be used while the thread's other variables are destroyed, and after that.

// The seats that this thread has, on the heap. Null until it has one. thread_end knows it too.
constinit thread_local SeatTable* held = nullptr;
// The thread has given its seats back. Destructors that run after this may still use timers. They borrow, because
// nothing tells when they are done.
constinit thread_local bool has_ended = false;

void give_all_back(void* seats) noexcept {
  has_ended = true;
  thread_cache::latest = {};
  held = nullptr;
  // Not `held`: where thread_locals are emulated, their memory may have been given back, and be zero again.
  delete static_cast<SeatTable*>(seats);
}

/// Keeps a seat until the thread ends. False: no memory.
bool keep(Seat* seat) noexcept {
  if (held == nullptr) {
    std::unique_ptr<SeatTable> seats(new (std::nothrow) SeatTable);
    if (seats == nullptr || !thread_end::tell(seats.get())) return false;
    held = seats.release();
  }
  if (!held->reserve()) return false;
  held->add(seat);
  return true;
}

constinit std::atomic<std::uint64_t> last_core_id{0};

}  // namespace

constinit thread_local thread_cache::Entry thread_cache::latest = {};

Producer* thread_cache::find_held(std::uint64_t core_id) noexcept {
  const Seat* const seat = held == nullptr ? nullptr : held->find(core_id);
  if (seat == nullptr) return nullptr;
  latest = {core_id, seat->producer};
  return seat->producer;
}

std::uint64_t announce_core() {
  // Here, so that what may fail in a thread's first use is memory alone.
  thread_end::prepare(give_all_back);
  return last_core_id.fetch_add(1, std::memory_order_relaxed) + 1;
}

ProducerLease::ProducerLease(ProducerSet& producers) noexcept : producer_(thread_cache::find(producers.core_id())) {
  if (producer_ == nullptr) producer_ = thread_cache::find_held(producers.core_id());
  if (producer_ != nullptr) return;
  Seat* const seat = producers.take();
  if (seat == nullptr) return;
  if (has_ended || !thread_end::available()) {
    borrowed_ = seat;
  } else if (keep(seat)) {
    thread_cache::latest = {producers.core_id(), seat->producer};
  } else {
    seat->home->give_back(seat);
    return;
  }
  producer_ = seat->producer;
}

void recycle(Node* node) noexcept {
  if (!node->end_life()) [[unlikely]]
    return NodePool::of(*node).depot().retire(*node);
  Producer* const mine = thread_cache::find(Slab::header(*node).core_id);
  if (mine == nullptr || !mine->pool.put_back(node)) give_back_alone(node);
}

}  // namespace hwt::internal
