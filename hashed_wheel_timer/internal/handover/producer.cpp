#include "hashed_wheel_timer/internal/handover/producer.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "hashed_wheel_timer/internal/handover/producer_lease.h"

namespace hwt::internal {

bool Producer::tidy() noexcept {
  if (Inbox::spilled(place) && !Inbox::unspill(place)) return false;
  const std::size_t kept_before = kept;  // the oldest, unless the worker has taken some
  kept = 0;
  std::size_t seen = 0;
  std::size_t old = 0;  // of kept_before, those that are still alive
  const auto keep = [&](const NodeName& entry) {
    Node& node = entry.node();
    ++seen;
    if (node.generation() != entry.life()) return false;  // withdrawn, as most are
    const bool alive = keep_or_drop(node, entry.life());
    kept += alive ? 1 : 0;
    old += alive && seen <= kept_before ? 1 : 0;
    return alive;
  };
  // Few are left where the worker has just been.
  const bool worth_it = place.size() > tidy_at / 2;
  const bool sifted = worth_it && Inbox::sift(place, keep);
  queued = kept + 1;  // with the one that is to be put
  // Four times, because a walk then costs less for each timeout. From some thousands on only twice, because entries
  // take memory, and so that the worker is called in time.
  tidy_at = std::max(kTidyAt, std::min(4 * kept, std::max(2 * kept, kHandOver)));
  if (sifted && old >= kHandOver) {
    inbox.note_all_awaited();
    sleeper.wake();  // also a worker that is about to sleep, until the end of a long tick
  }
  if (!Inbox::spilled(place)) return true;
  tidy_at = 0;  // each put() comes here first until it is back in the queue: nothing younger may overtake it
  return false;
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
  if (Seat* const seat = seats_.take()) return seat;
  std::unique_ptr<Producer> made(new (std::nothrow) Producer(depot_, inbox_, sleeper_));
  if (made == nullptr || !made->place.valid()) return nullptr;
  Seat* const seat = seats_.add(made.get(), core_id_);
  if (seat == nullptr) return nullptr;
  Producer& producer = *made.release();
  depot_.add(producer.pool);
  all_.push(producer);
  return seat;
}

}  // namespace hwt::internal
