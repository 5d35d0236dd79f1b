// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/handover/producer.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/thread_end.h"
#include "hashed_wheel_timer/internal/tuning.h"

namespace hwt::internal {

bool Producer::put_with_more_room(NodeName entry) noexcept {
  cancelled_before = counters.cancelled.get();
  came_back = came_back || ends_burst;
  ends_burst = false;
  Node* dropped = until_step == 0 ? sift() : nullptr;
  until_end = std::max(until_end, until_step);
  const std::size_t room = Inbox::make_room(place, until_step, until_end);
  until_step = room == 0 ? 0 : until_step - room;  // without memory the next call makes a step
  until_end -= room;
  const bool is_put = Inbox::put(place, entry);
  // From here on, the user's on_earlier() may be called, which may schedule a timeout and come here again.
  if (settled) {
    // The worker takes the entries of a place in order. So a timeout that is due soon waits for the far ones before it,
    // which must be few. The producer asks for a pass each time that the room is used up. If it asked only when a sift
    // ends, the far entries that come after that pass would wait until the next sift ends.
    inbox.ask(Inbox::kEverything, sleeper);
  }
  take_back(dropped);
  if (pool.look_is_due()) pool.spill();
  return is_put;
}

bool Producer::put_back_and_look(Node* node) noexcept {
  const NodePool::Inside inside(pool);
  if (pool.is_closing()) return false;
  pool.untake(node);
  look();
  return true;
}

void Producer::look() noexcept {
  const std::int64_t cancelled = counters.cancelled.get();
  const auto many = static_cast<std::size_t>(cancelled - cancelled_before);
  const std::size_t entries = place.size();
  // A thread that cancels a burst of timeouts may do nothing more with the timer afterwards. So it drops the dead
  // entries already when they may be half of all.
  if (entries > Tuning::kFewest && 2 * many >= entries) {
    take_back(sift());
    // sift() has set cancelled_before if it has come to the end.
    const bool ended = cancelled_before == cancelled;
    // The end of a burst: the sift has ended, and kept no more entries than were cancelled. The producer has never made
    // room for entries after an earlier burst.
    ends_burst = ended && !came_back && kept_before <= many;
  }
  // A thread that has come back after a burst will come back again, and keeps its nodes: those that wander from thread
  // to thread are in no cache.
  if (ends_burst) {
    pool.drain();
  } else {
    pool.spill();
  }
}

/// Keeps the nodes that a step of a sift has dropped. Calls nothing of the user, and begins no other step.
void Producer::take_back(Node* dropped) noexcept {
  while (dropped != nullptr) {
    Node* const node = std::exchange(dropped, dropped->next());
    if (end_life_or_retire(*node)) pool.untake(node);
  }
}

/// Makes one step of a sift. Returns the nodes of dead entries that no reference keeps, linked by `next`.
Node* Producer::sift() noexcept {
  Node* dropped = nullptr;
  const auto keep = [&](const NodeName& entry) {
    ++seen;
    Node& node = entry.node();
    const std::uint64_t word = node.word.load(std::memory_order_relaxed);
    if (Node::generation_of(word) != entry.life()) return false;  // withdrawn, as most are
    // The worker calls the cancelled() of a shared task.
    if (Node::state_of(word) == NodeState::Cancelled && !node.shared()) {
      if (node.drop_references(1)) node.next() = std::exchange(dropped, &node);
      return false;
    }
    ++kept;
    kept_twice += seen <= kept_before ? 1 : 0;
    return true;
  };
  if (!Inbox::sift(place, Tuning::kSiftStep, keep)) {
    until_step = Tuning::kFewest;
    return dropped;
  }
  const std::size_t end = std::max(Tuning::kFewest, std::min(4 * kept, std::max(2 * kept, Tuning::kSparse)));
  // While a step looks at 4,096 entries, 256 come. So the next sift begins a sixteenth before it is to end, unless one
  // step is enough.
  until_step = end - kept - (end <= Tuning::kSiftStep ? 0 : end / (Tuning::kSiftStep / Tuning::kFewest));
  until_end = end - kept;
  // A settled producer stays settled while at least half of its entries are alive. Its kept_twice may be small, because
  // the worker may have taken the entries of the last sift.
  settled = kept_twice >= Tuning::kSettled || (settled && 2 * kept >= seen);
  if (settled) kept -= Inbox::hand_over(place, Tuning::kSiftStep);
  kept_before = std::exchange(kept, 0);
  seen = kept_twice = 0;
  cancelled_before = counters.cancelled.get();
  Inbox::trim(place, until_end);
  return dropped;
}

ProducerSet::~ProducerSet() {
  seats_.close();
  for (Producer* producer = all_.top(); producer != nullptr;) delete std::exchange(producer, producer->next);
}

Seat* ProducerSet::take() noexcept {
  // While another thread takes a seat, it holds all free seats for a moment. To look again some times costs less than a
  // new producer, which stays for ever.
  for (int looks = 16; looks != 0; --looks) {
    if (Seat* const seat = seats_.take()) return seat;
    if (seats_.all_in_use()) break;
    std::this_thread::yield();
  }
  std::unique_ptr<Producer> made(new (std::nothrow) Producer(depot_, inbox_, sleeper_));
  if (made == nullptr || !made->place.valid()) return nullptr;
  Seat* const seat = seats_.add(made.get(), core_id_);
  if (seat == nullptr) return nullptr;
  Producer& producer = *made.release();
  depot_.add(producer.pool);
  all_.push(producer);
  return seat;
}

namespace {

// These have no destructors, because they may be used while and after the thread's other variables are destroyed.

// The seats that this thread has, on the heap. Null until it has one. thread_end knows it too.
constinit thread_local SeatTable* held = nullptr;
// The thread has given its seats back. Destructors that run after this may still use timers. They borrow, because
// nothing tells when they are done.
constinit thread_local bool has_ended = false;

void give_all_back(void* seats) noexcept {
  has_ended = true;
  thread_cache::latest = {};
  held = nullptr;
  // Uses the argument, not `held`: where thread_locals are emulated, their memory may be gone, and read as zero again.
  delete static_cast<SeatTable*>(seats);
}

/// Keeps a seat until the thread ends. Returns false without memory.
bool keep(Seat* seat) noexcept {
  if (held == nullptr) {
    std::unique_ptr<SeatTable> seats(new (std::nothrow) SeatTable);
    if (seats == nullptr || !thread_end::set_value(seats.get())) return false;
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

std::uint64_t new_core_id() {
  // Prepares the key here, so that the first use by a thread can fail only for lack of memory.
  thread_end::prepare(give_all_back);
  return last_core_id.fetch_add(1, std::memory_order_relaxed) + 1;
}

void ProducerLease::take(ProducerSet& producers) noexcept {
  producer_ = thread_cache::find_held(producers.core_id());
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
  if (!end_life_or_retire(*node)) return;
  if (thread_cache::has(Slab::header(*node).core_id)) [[likely]] {
    Producer& mine = *thread_cache::latest.producer;
    if (mine.pool.look_is_due() ? mine.put_back_and_look(node) : mine.pool.put_back(node)) [[likely]]
      return;
  }
  give_back_alone(node);
}

}  // namespace hwt::internal
