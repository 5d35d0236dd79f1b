#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "hashed_wheel_timer/internal/core.h"
#include "hashed_wheel_timer/internal/handed_over.h"
#include "hashed_wheel_timer/internal/node.h"
#include "hashed_wheel_timer/internal/node_pool.h"
#include "hashed_wheel_timer/internal/tick_grid.h"
#include "hashed_wheel_timer/internal/wheel_item.h"

namespace hwt::internal {

/// The worker's side of a timer: takes from the queues, turns the wheel, runs what is due. Used by one thread at a
/// time; has no clock and never waits. Wheel is HashedWheel or another with the same members.
template <class Wheel>
class Driver {
 public:
  Driver(Core& core, const Options& options, std::int64_t wheel_size)
      : core_(core), executor_(options.executor), tick_duration_(options.tick_duration.count()), wheel_(wheel_size) {}

  struct Transfer {
    bool any;              // something was in the queue
    bool more = false;     // the pass ended at its limit
    bool starved = false;  // the pass ended for lack of memory
  };

  /// Takes what has been cancelled out of the wheel. True if there was something.
  bool collect_cancelled() noexcept;

  /// Moves what was queued when the call began into the wheel, at most kMaxTransfers of them; what has been cancelled
  /// meanwhile is dropped and does not count. Without memory the rest stays queued for the next pass. `current` is a
  /// tick that is not over, or just so.
  Transfer transfer(Tick current) noexcept;

  /// Nothing waits in a queue, as far as this thread can know.
  bool queues_empty() const noexcept {
    return first_ == end_ && core_.pending_queue.size() == 0 && core_.cancelled_queue.size() == 0 &&
           core_.cancelled_overflow.empty();
  }

  /// How much waits in the pending queue or the cancelled queue, whichever holds more.
  std::size_t backlog() const noexcept { return std::max(core_.pending_queue.size(), core_.cancelled_queue.size()); }

  /// A cancelled() has been called since the last time it was asked.
  bool has_called_cancelled() noexcept { return std::exchange(called_cancelled_, false); }

  Tick next_due() const noexcept { return wheel_.next_due(); }

  /// Runs what is due at `tick`; see Wheel::expire. Ends early when the timer is stopped, and after `max_tasks`; then
  /// the next call for the same tick goes on. Returns how many ran.
  std::size_t expire(Tick tick, std::size_t max_tasks = std::numeric_limits<std::size_t>::max()) noexcept;

  /// The ticks before `tick` are over. Precondition: nothing is due before it.
  void skip_to(Tick tick) noexcept { wheel_.skip_to(tick); }

  /// Cancels everything that is pending and calls their cancelled(); returns them as a chain linked by `next`, each
  /// with the timer's reference. Nothing may be collected or transferred after it.
  Node* empty() noexcept;

 private:
  /// Netty's bound: a flood of new timeouts must not keep the worker from expiring.
  static constexpr std::int64_t kMaxTransfers = 100'000;
  static constexpr std::size_t kBatch = 256;

  Tick tick_of(const Node& node) const noexcept {
    return TickGrid{core_.start_time, tick_duration_}.due_tick(node.deadline.load(std::memory_order_relaxed));
  }

  bool refill(std::size_t max) noexcept {
    first_ = 0;
    end_ = core_.pending_queue.dequeue(batch_.data(), std::min(max, kBatch));
    return end_ != 0;
  }
  /// The tick at which to look at a node. While its deadline changes that is the current one: then it will show.
  Tick place_of(const Node& node, Tick current) const noexcept {
    // acquire: the deadline of the latest move that has ended.
    return (node.word.load(std::memory_order_acquire) & Node::kMoving) != 0 ? current : tick_of(node);
  }
  static bool needs_place(const Arriving& arriving) noexcept;
  Tick visit(Node& node, Tick tick) noexcept;
  void drop_cancelled(Node* node) noexcept;
  void call_cancelled(Node* node) noexcept;
  void hand_over(Node* node) noexcept;

  Core& core_;
  const std::function<void(std::function<void()>)> executor_;
  const std::int64_t tick_duration_;
  Wheel wheel_;
  std::array<Arriving, kBatch> batch_;  // dequeued and not yet transferred: [first_, end_)
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  ReturnBatch returns_;
  bool called_cancelled_ = false;
};

template <class Wheel>
bool Driver<Wheel>::collect_cancelled() noexcept {
  // No more than there were at the beginning: a flood of cancels must not keep the worker here.
  std::size_t left = core_.cancelled_queue.size();
  const bool any = left != 0 || !core_.cancelled_overflow.empty();
  std::array<Node*, kBatch> nodes;
  while (left != 0) {
    const std::size_t count = core_.cancelled_queue.dequeue(nodes.data(), std::min(left, kBatch));
    if (count == 0) break;
    for (std::size_t i = 0; i < count; ++i) {
      wheel_.remove(*nodes[i]);
      drop_cancelled(nodes[i]);
    }
    left -= count;
  }
  for (Node* node = core_.cancelled_overflow.take_all(); node != nullptr;) {
    Node* const next = node->next;
    wheel_.remove(*node);
    drop_cancelled(node);
    node = next;
  }
  returns_.flush();
  return any;
}

template <class Wheel>
typename Driver<Wheel>::Transfer Driver<Wheel>::transfer(Tick current) noexcept {
  std::size_t left = core_.pending_queue.size() + (end_ - first_);
  Transfer result{.any = left != 0};
  std::int64_t moved = 0;
  for (; left != 0; --left) {
    if (first_ == end_ && !refill(left)) break;
    if (moved == kMaxTransfers) {
      result.more = true;
      break;
    }
    const Arriving arriving = batch_[first_];
    if (!wheel_.reserve() && needs_place(arriving)) {
      result.starved = true;
      break;
    }
    ++first_;
    if (arriving.moved) {
      if (arriving.node->state(std::memory_order_acquire) == State::InWheel) {
        wheel_.move(*arriving.node, place_of(*arriving.node, current));
      }
      continue;
    }
    switch (arriving.node->arrive(arriving.generation)) {
      case Node::Arrival::Taken:
        wheel_.insert(*arriving.node, place_of(*arriving.node, current));
        ++moved;
        break;
      case Node::Arrival::Cancelled:
        drop_cancelled(arriving.node);
        break;
      case Node::Arrival::Withdrawn:
        break;
    }
  }
  returns_.flush();
  return result;
}

template <class Wheel>
bool Driver<Wheel>::needs_place(const Arriving& arriving) noexcept {
  const std::uint64_t seen = arriving.node->word.load(std::memory_order_relaxed);
  if (arriving.moved) return Node::state_of(seen) == State::InWheel;
  return Node::generation_of(seen) == arriving.generation && Node::state_of(seen) == State::Queued;
}

template <class Wheel>
std::size_t Driver<Wheel>::expire(Tick tick, std::size_t max_tasks) noexcept {
  std::size_t ran = 0;
  wheel_.expire(tick, [&](WheelItem& item) {
    if (ran == max_tasks) return Wheel::kStop;
    const Tick answer = visit(static_cast<Node&>(item), tick);
    ran += answer == Wheel::kTaken ? 1 : 0;
    return answer;
  });
  returns_.flush();
  return ran;
}

template <class Wheel>
Tick Driver<Wheel>::visit(Node& node, Tick tick) noexcept {
  if (!core_.running()) return Wheel::kStop;
  std::uint64_t seen = node.word.load(std::memory_order_acquire);
  do {
    // Cancelled, and on its way through the cancelled queue, which will find it in the wheel: look the other way.
    if (Node::state_of(seen) == State::Cancelled) return tick + std::min(wheel_.revolution(), kNever - tick);
    if ((seen & Node::kMoving) != 0) return tick + 1;
    if (const Tick due = tick_of(node); due > tick) return due;
    // One more reference, for the handle that the task gets. If the deadline has changed, this fails.
  } while (!node.word.compare_exchange_weak(seen, Node::with_state(seen, State::Expired) + Node::kReference,
                                            std::memory_order_acq_rel, std::memory_order_acquire));
  core_.count_expired();
  if (executor_) {
    hand_over(&node);
  } else {
    Timeout timeout = Node::adopt(&node);
    run_task(timeout);
    // Both references at once, unless the task has moved its handle away or put another one in its place.
    const bool still_there = Node::of(timeout) == &node;
    if (still_there) Node::disown(timeout);
    if (node.drop_references(still_there ? 2 : 1)) returns_.add(&node);
  }
  return Wheel::kTaken;
}

template <class Wheel>
void Driver<Wheel>::hand_over(Node* node) noexcept {
  Timeout timeout = Node::adopt(node);
  std::shared_ptr<HandedOver> task;
  try {
    task = std::make_shared<HandedOver>(timeout);
    executor_([task] { task->run(); });
  } catch (...) {
    core_.report_error(timeout);
    // The executor may have kept the job and run it, or still do so: the task runs once all the same.
    if (task != nullptr) {
      task->run();
    } else {
      run_task(timeout);
    }
  }
  if (node->drop_references(1)) returns_.add(node);
}

template <class Wheel>
void Driver<Wheel>::call_cancelled(Node* node) noexcept {
  called_cancelled_ = true;
  node->add_reference();
  Timeout timeout = Node::adopt(node);
  try {
    node->stored_task().cancelled(timeout);
  } catch (...) {
    core_.report_error(timeout);
  }
}

template <class Wheel>
void Driver<Wheel>::drop_cancelled(Node* node) noexcept {
  if (node->shared()) call_cancelled(node);
  if (node->drop_references(1)) returns_.add(node);
}

template <class Wheel>
Node* Driver<Wheel>::empty() noexcept {
  Node* unprocessed = nullptr;
  Node** end = &unprocessed;
  const auto take = [&](Node* node) {
    if (!node->abandon()) return drop_cancelled(node);
    core_.count_unprocessed();
    node->next = nullptr;
    *end = node;
    end = &node->next;
    if (node->shared()) call_cancelled(node);
  };
  while (collect_cancelled()) {
  }
  // What is cancelled in here is either on the way to the cancelled queue, which nobody will look at again, or has just
  // been cancelled by this thread.
  wheel_.clear([&](WheelItem& item) { take(static_cast<Node*>(&item)); });
  for (;;) {
    for (; first_ != end_; ++first_) {
      const Arriving& arriving = batch_[first_];
      if (arriving.moved) continue;
      const Node::Arrival arrival = arriving.node->arrive(arriving.generation);
      if (arrival == Node::Arrival::Taken) take(arriving.node);
      if (arrival == Node::Arrival::Cancelled) drop_cancelled(arriving.node);
    }
    if (!refill(kBatch)) break;
  }
  returns_.flush();
  return unprocessed;
}

}  // namespace hwt::internal
