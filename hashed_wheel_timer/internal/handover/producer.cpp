#include "hashed_wheel_timer/internal/handover/producer.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "hashed_wheel_timer/internal/platform/thread_end.h"

namespace hwt::internal {

bool Producer::tidy() noexcept {
  if (Inbox::spilled(place) && !Inbox::unspill(place)) return false;
  if (queued <= sift_at) {
    call_worker();
    return true;
  }
  const std::size_t there_before = there;  // the oldest, unless the worker has taken some
  std::size_t kept = 0;
  std::size_t seen = 0;
  std::size_t old = 0;  // of there_before, those that are still alive
  const auto keep = [&](const NodeName& entry) {
    Node& node = entry.node();
    ++seen;
    if (node.generation() != entry.life()) return false;  // withdrawn, as most are
    const bool alive = keep_or_drop(node, entry.life());
    kept += alive ? 1 : 0;
    old += alive && seen <= there_before ? 1 : 0;
    return alive;
  };
  // Few are left where the worker has just been.
  const bool worth_it = place.size() > sift_at / 2;
  const bool sifted = worth_it && Inbox::sift(place, keep);
  there = sifted ? kept : place.size();
  queued = kept + 1;  // with the one that is to be put
  // Four times, because a walk then costs less for each timeout. From some thousands on only twice, because entries
  // take memory, and so that the worker is called in time.
  tidy_at = sift_at = std::max(kTidyAt, std::min(4 * kept, std::max(2 * kept, kHandOver)));
  if (old >= kHandOver) call_worker();
  if (!Inbox::spilled(place)) return true;
  tidy_at = 0;  // each put() comes here first until it is back in the queue: nothing younger may overtake it
  return false;
}

void Producer::call_worker() noexcept {
  inbox.note_all_awaited();
  sleeper.wake();  // also a worker that is about to sleep, until the end of a long tick
  tidy_at = std::min(sift_at, queued + kHandOverAgain);
}

/// Whether a new timeout's entry is still needed. If it was cancelled by another thread, its node is free now.
bool Producer::keep_or_drop(Node& node, std::uint32_t generation) noexcept {
  const std::uint64_t seen = node.word.load(std::memory_order_acquire);
  if (Node::generation_of(seen) != generation) return false;
  // The worker calls the cancelled() of a shared task.
  if (Node::state_of(seen) != NodeState::Cancelled || node.shared()) return true;
  if (node.drop_references(1)) recycle(&node);
  return false;
}

ProducerSet::~ProducerSet() {
  seats_.close();
  for (Producer* producer = all_.top(); producer != nullptr;) delete std::exchange(producer, producer->next);
}

Seat* ProducerSet::take() noexcept {
  // A thread that takes a seat has all free ones in its hand for a moment. Some more looks cost less than a producer,
  // which stays for ever.
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
  if (!node->end_life()) [[unlikely]]
    return NodePool::of(*node).depot().retire(*node);
  Producer* const mine = thread_cache::find(Slab::header(*node).core_id);
  if (mine == nullptr || !mine->pool.put_back(node)) give_back_alone(node);
}

}  // namespace hwt::internal
