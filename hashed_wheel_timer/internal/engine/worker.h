// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "hashed_wheel_timer/internal/core/core.h"
#include "hashed_wheel_timer/internal/core/task_run.h"
#include "hashed_wheel_timer/internal/core/tick_grid.h"
#include "hashed_wheel_timer/internal/engine/task_runner.h"
#include "hashed_wheel_timer/internal/handover/inbox.h"
#include "hashed_wheel_timer/internal/handover/intake.h"
#include "hashed_wheel_timer/internal/memory/collector.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"
#include "hashed_wheel_timer/internal/wheel/wheel.h"
#include "hashed_wheel_timer/internal/wheel/wheel_item.h"

namespace hwt::internal {

/// The steps of a timer's worker: take timeouts from the inbox into the wheel, and run the due tasks. Used by one
/// thread at a time: the thread of a WorkerThread, or one that drives a DrivenEngine. Reads the clock only to time
/// tasks (SlowTasks). Sleeps only in cancel_all(), while a producer sifts its place.
///
/// Until the timer stops, the caller repeats these steps, with the names that they have in Netty. It may leave out the
/// first three. Then it calls cancel_all().
///   1. open_inbox() begins a pass
///   2. process_cancelled_timeouts() takes cancelled nodes out of the wheel, and gives moved ones another tick there
///   3. transfer_timeouts_to_buckets() takes new timeouts into the wheel
///   4. expire() or expire_ticks() runs the tasks of due ticks (expireTimeouts). Ticks rise from call to call
///
/// The earliest tick that a timeout may enter is `floor_`. It only rises, so two timeouts of one thread with the same
/// deadline keep their order. The caller raises it by close_before() to a tick before which nothing is due that came
/// in time. A timeout that comes afterwards with an earlier deadline had passed it when it was scheduled, or the worker
/// has woken up too late. While a pass is unfinished it does not rise, because the inbox has older entries.
template <Wheel W>
class Worker {
 public:
  Worker(Core& core, const Options& options, std::int64_t wheel_size, std::int64_t unused_for = Collector::kUnusedFor)
      : core_(core),
        intake_(core.inbox()),
        collector_(core.depot(), unused_for),
        runner_(core, options),
        tick_duration_(options.tick_duration.value().count()),
        wheel_(wheel_size) {}

  /// How a pass ended. After a result beyond Done it is unfinished, and another one must follow.
  enum class Pass {
    Done,     // it took all that it was to take
    More,     // it did as much as one pass may do
    HeldUp,   // the rest is with producers that are sifting their places: the next pass should come soon
    Starved,  // there is no memory for the wheel: the next pass should come soon
  };

  /// Begins a pass: over the recheck requests that were in the inbox when the call began, and over the new timeouts of
  /// places with a deadline up to `until`. If `everything`, the pass takes the new timeouts of all other places after
  /// those. It takes what earlier passes have left too.
  void open_inbox(std::int64_t until, bool everything) noexcept;
  /// Takes recheck requests from the inbox, and its overflow. Calls cancelled() of cancelled tasks.
  void process_cancelled_timeouts() noexcept;
  /// Takes new timeouts from the inbox into the wheel, but drops those that were cancelled. Calls cancelled() of those.
  void transfer_timeouts_to_buckets() noexcept;
  Pass pass() const noexcept { return pass_; }
  bool is_unfinished() const noexcept { return pass_ != Pass::Done; }

  /// Steps 1 to 3. Returns pass().
  Pass transfer(std::int64_t until = kForever, bool everything = true) noexcept {
    open_inbox(until, everything);
    return resume();
  }
  /// Steps 2 and 3. Takes no entry that came after open_inbox(). A caller repeats it while the pass is unfinished.
  Pass resume() noexcept {
    process_cancelled_timeouts();
    transfer_timeouts_to_buckets();
    return pass_;
  }

  /// Closes the ticks before `tick`, unless the latest pass is unfinished. See `floor_`.
  void close_before(Tick tick) noexcept {
    if (is_unfinished()) return;
    floor_ = std::max(floor_, tick);
    wheel_.skip_to(std::min(floor_, wheel_.next_due()));
  }

  /// Returns the tick of the earliest new deadline, or an earlier tick; kNever if nothing came that is ever due.
  Tick next_waiting() noexcept {
    const std::int64_t earliest = intake_.earliest_waiting();
    return earliest >= Inbox::kLatest ? kNever : tick_of(earliest);
  }
  /// Returns whether anything is in the inbox that no pass was opened for.
  bool is_waiting() noexcept { return intake_.earliest_waiting() != Inbox::kUnlisted; }

  /// Returns whether an unfinished pass has left entries of places with a near deadline.
  bool has_near() const noexcept { return (first_ != end_ && intake_.took_near()) || intake_.any_near(); }

  Collector& collector() noexcept { return collector_; }
  void note_in_tasks(std::int64_t time) noexcept { runner_.note_in_tasks(time); }
  Tick next_due() const noexcept { return wheel_.next_due(); }
  /// Runs the tasks of `tick`; see Wheel::expire. `begun`: the time, for lateness. Returns their number. Ends early
  /// when the timer is stopped, and after `max_tasks`; then the next call goes on.
  std::size_t expire(Tick tick, std::int64_t begun,
                     std::size_t max_tasks = std::numeric_limits<std::size_t>::max()) noexcept;

  struct Expired {
    std::size_t tasks = 0;
    std::int64_t ticks = 0;  // that were worked off
    Tick first = kNever;     // of those in which a task ran
  };
  /// Runs the tasks that are due before `end`, by whole ticks, until `enough` tasks have run or the timer is stopped.
  Expired expire_ticks(Tick end, std::int64_t begun, std::size_t enough) noexcept;

  /// Cancels all pending timeouts and calls their cancelled(). Returns them as a chain linked by `next`, each with the
  /// timer's reference. Call it after the timer was stopped, and make no pass after it. A later cancel_all()
  /// drops the entries that have come since. Then no thread may be in a schedule().
  Node* cancel_all() noexcept;

 private:
  /// The tick that is being processed.
  struct Due {
    Tick tick;
    std::int64_t end;    // deadlines up to this time are due
    std::int64_t begun;  // when the worker started to process it
  };

  TickGrid grid() const noexcept { return {core_.lifecycle().start_time(), tick_duration_}; }
  /// The tick at whose end a deadline is due; kNever if that end is beyond the range of the clock.
  Tick tick_of(std::int64_t deadline) const noexcept {
    const Tick tick = grid().due_tick(deadline);
    return deadline >= kForever - tick_duration_ && grid().end_of(tick) == kForever ? kNever : tick;
  }
  /// The tick of a node that enters the wheel or moves in it.
  Tick place_of(const Node& node) const noexcept {
    return std::max(tick_of(node.deadline.load(std::memory_order_relaxed)), floor_);
  }

  bool refill() noexcept {
    first_ = 0;
    end_ = intake_.take(batch_.data(), Tuning::kBatch);
    note_in_hand();
    for (std::size_t i = 0; i < std::min(end_, Tuning::kAhead); ++i) prefetch_to_write(&batch_[i].node());
    return end_ != 0;
  }
  /// Stores the number of entries in hand, for stats(). Within a batch it is updated only before user code runs,
  /// because that may call stats().
  void note_in_hand() noexcept { core_.counters().note_in_hand(end_ - first_); }

  std::size_t expire_one(Tick tick, std::int64_t begun, std::size_t max_tasks) noexcept;
  bool take_rechecks() noexcept;
  bool recheck(Node& node) noexcept;
  static bool needs_place(const NodeName& entry) noexcept;
  Verdict visit(Node& node, const Due& due, TaskScope& inside) noexcept;
  void drop_cancelled(Node* node) noexcept;
  void call_cancelled(Node* node) noexcept;

  Core& core_;
  Intake intake_;
  Collector collector_;
  TaskRunner runner_;
  const std::int64_t tick_duration_;
  Tick floor_ = 0;          // see above. The wheel has a floor of its own, below which it takes nothing
  Pass pass_ = Pass::Done;  // how the latest pass ended
  W wheel_;
  // Entries in hand: those in [first_, end_) were taken from the inbox. An unfinished pass may leave some.
  std::array<NodeName, Tuning::kBatch> batch_;
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  // Recheck requests in hand. Between passes, the first rechecks_kept_ of them wait for memory.
  std::array<Node*, Tuning::kBatch> rechecks_;
  std::size_t rechecks_kept_ = 0;
  ReturnBatch returns_;
};

template <Wheel W>
void Worker<W>::open_inbox(std::int64_t until, bool everything) noexcept {
  // Before the pass is opened, so that a request that comes during the pass asks for another one.
  core_.inbox().take_requests(everything ? ~std::uint32_t{0} : std::uint32_t{Inbox::kRechecks});
  intake_.open(until, everything);
}

template <Wheel W>
void Worker<W>::process_cancelled_timeouts() noexcept {
  for (Node* left = core_.inbox().take_overflow(); left != nullptr;) {
    Node* const node = std::exchange(left, left->next_in_overflow());
    wheel_.remove(*node);
    drop_cancelled(node);
  }
  pass_ = take_rechecks() ? Pass::Done : Pass::More;
  if (rechecks_kept_ != 0) pass_ = Pass::Starved;
}

template <Wheel W>
void Worker<W>::transfer_timeouts_to_buckets() noexcept {
  for (std::size_t done = 0, far = 0; first_ != end_ || refill(); ++done) {
    if (done == Tuning::kTransfers || (!intake_.took_near() && ++far > Tuning::kFarTransfers)) {
      pass_ = Pass::More;  // also in the place of Starved: the next pass has more to do at once
      break;
    }
    const NodeName entry = batch_[first_];
    if (!wheel_.reserve() && needs_place(entry)) {
      pass_ = Pass::Starved;
      break;
    }
    ++first_;
    if (first_ + Tuning::kAhead < end_) prefetch_to_write(&batch_[first_ + Tuning::kAhead].node());
    Node& node = entry.node();
    const Node::Arrival arrival = node.arrive(entry.life());
    if (arrival == Node::Arrival::Taken) wheel_.insert(node, place_of(node));
    if (arrival == Node::Arrival::Cancelled) drop_cancelled(&node);
  }
  if (pass_ == Pass::Done && intake_.held_up()) pass_ = Pass::HeldUp;
  note_in_hand();
  returns_.flush();
}

/// Handles the recheck requests of this pass. Each round of the loop tries the requests that earlier rounds or passes
/// have kept, and then newly taken ones, together at most Tuning::kBatch. It keeps those that lack memory, for the next
/// round. Returns true when the Intake has no more requests, or when kept ones fill `rechecks_` and some still lack
/// memory. Then rechecks_kept_ is the number of kept ones. Returns false after Tuning::kRecheckTransfers requests,
/// repeated tries included.
template <Wheel W>
bool Worker<W>::take_rechecks() noexcept {
  for (std::size_t done = 0; done < Tuning::kRecheckTransfers;) {
    const std::size_t kept = rechecks_kept_;
    const std::size_t room = rechecks_.size() - kept;
    // Does not ask the Intake for zero requests: it would forget the places that have some.
    const std::size_t taken = room == 0 ? 0 : intake_.take_rechecks(&rechecks_[kept], room);
    const std::size_t end = kept + taken;
    rechecks_kept_ = 0;
    for (std::size_t i = 0; i < end; ++i) {
      if (i + Tuning::kAhead < end) prefetch_to_write(rechecks_[i + Tuning::kAhead]);
      // If this node has left the wheel, its `position` is any address, whose prefetch is harmless.
      if (i + Tuning::kAhead / 2 < end) prefetch_to_write(rechecks_[i + Tuning::kAhead / 2]->position);
      if (!recheck(*rechecks_[i])) rechecks_[rechecks_kept_++] = rechecks_[i];
    }
    // With room and none taken, the Intake has no more. Without room, more tries are useless if some still lack memory.
    if (taken == 0 && (room != 0 || rechecks_kept_ != 0)) return true;
    done += end;
  }
  return false;
}

/// Handles a recheck request. Returns false without memory for the node's new place; then the request must be kept. A
/// cancelled node needs no new place, so it is handled even without memory.
template <Wheel W>
bool Worker<W>::recheck(Node& node) noexcept {
  if (!wheel_.reserve() && node.state(std::memory_order_relaxed) == NodeState::InWheel) return false;
  switch (node.recheck()) {
    case Node::Sight::Nothing:
      break;
    case Node::Sight::Cancelled:
      wheel_.remove(node);
      drop_cancelled(&node);
      break;
    case Node::Sight::Moved:
      wheel_.move(node, place_of(node));
      break;
  }
  return true;
}

/// Returns whether the entry's timeout may enter the wheel. If not, it was cancelled or withdrawn, and never will.
template <Wheel W>
bool Worker<W>::needs_place(const NodeName& entry) noexcept {
  const std::uint64_t seen = entry.node().word.load(std::memory_order_relaxed);
  return Node::generation_of(seen) == entry.life() && Node::state_of(seen) == NodeState::Queued;
}

template <Wheel W>
std::size_t Worker<W>::expire(Tick tick, std::int64_t begun, std::size_t max_tasks) noexcept {
  const std::size_t ran = expire_one(tick, begun, max_tasks);
  core_.counters().note_none_running();
  returns_.flush();
  return ran;
}

template <Wheel W>
typename Worker<W>::Expired Worker<W>::expire_ticks(Tick end, std::int64_t begun, std::size_t enough) noexcept {
  Expired expired;
  for (Tick due = wheel_.next_due(); due < end && expired.tasks < enough && core_.running(); due = wheel_.next_due()) {
    const std::size_t ran = expire_one(due, begun, std::numeric_limits<std::size_t>::max());
    if (ran != 0) expired.first = std::min(expired.first, due);
    expired.tasks += ran;
    ++expired.ticks;
  }
  core_.counters().note_none_running();
  returns_.flush();
  return expired;
}

template <Wheel W>
std::size_t Worker<W>::expire_one(Tick tick, std::int64_t begun, std::size_t max_tasks) noexcept {
  runner_.look();
  const Due due{tick, grid().end_of(tick), begun};
  std::size_t ran = 0;
  TaskScope inside;
  wheel_.expire(tick, [&](WheelItem& item) {
    if (ran == max_tasks) return Verdict::stop();
    const Verdict verdict = visit(static_cast<Node&>(item), due, inside);
    if (verdict.is_taken()) ++ran;
    return verdict;
  });
  return ran;
}

// Inlined by force, because compilers do not inline a function with so many rare exits into the walk.
template <Wheel W>
[[gnu::always_inline]] inline Verdict Worker<W>::visit(Node& node, const Due& due, TaskScope& inside) noexcept {
  if (!core_.running()) return Verdict::stop();
  std::int64_t deadline = 0;
  std::uint64_t seen = node.word.load(std::memory_order_relaxed);  // see Node::kMoved
  do {
    // A cancelled node is in the overflow of the inbox, or a recheck request for it is on its way. When the worker
    // comes to that, the node must still be in the wheel, however many ticks the worker processes before.
    if (Node::state_of(seen) == NodeState::Cancelled) return Verdict::later(wheel_.put_off(due.tick));
    // Compares times, not ticks: computing a tick needs a division.
    deadline = node.deadline.load(std::memory_order_relaxed);
    if (deadline > due.end) return Verdict::later(tick_of(deadline));
  } while (!node.claim(seen, runner_.claim()));
  core_.counters().lateness.add(due.begun, deadline);
  core_.counters().note_running_since(due.begun);
  core_.count_end(core_.counters().expired);
  if (!runner_.plain()) [[unlikely]] {
    if (runner_.run(node, inside)) returns_.add(&node);
  } else {
    inside.enter(node);
    Timeout timeout = Node::adopt(&node);
    run_task(timeout);
    // Drops both references at once, unless the task has moved its handle away or has replaced it.
    const bool still_there = Node::of(timeout) == &node;
    if (still_there) Node::disown(timeout);
    if (node.finish(still_there ? 2 : 1)) returns_.add(&node);
  }
  return Verdict::taken();
}

template <Wheel W>
void Worker<W>::call_cancelled(Node* node) noexcept {
  note_in_hand();
  Timeout timeout = handle_of(*node);
  try {
    node->stored_task().cancelled(timeout);
  } catch (...) {
    core_.report_error(timeout, "cancelled() of a task");
  }
}

template <Wheel W>
void Worker<W>::drop_cancelled(Node* node) noexcept {
  if (node->shared()) call_cancelled(node);
  if (node->drop_references(1)) returns_.add(node);
}

// Empties the wheel, then batch_ and the inbox, until no producer sifts its place. Takes recheck requests only to throw
// them away, because their nodes have left the wheel. `take` has dropped the timer's reference to a cancelled one, and
// Worker::recheck() would drop it again. So the overflow list of the inbox, which names such nodes too, stays.
template <Wheel W>
Node* Worker<W>::cancel_all() noexcept {
  Node* unprocessed = nullptr;
  Node* last = nullptr;
  // Appends a pending node to the chain, and drops the timer's reference to a cancelled one.
  const auto take = [&](Node* node) {
    if (!node->abandon()) return drop_cancelled(node);
    core_.count_end(core_.counters().unprocessed);
    node->next() = nullptr;
    if (Node* const before = std::exchange(last, node)) {
      before->next() = node;
    } else {
      unprocessed = node;
    }
    if (node->shared()) call_cancelled(node);
  };
  wheel_.clear([&](WheelItem& item) { take(static_cast<Node*>(&item)); });
  for (;;) {
    while (first_ != end_) {
      const NodeName entry = batch_[first_++];
      Node& node = entry.node();
      const Node::Arrival arrival = node.arrive(entry.life());
      if (arrival == Node::Arrival::Taken) take(&node);
      if (arrival == Node::Arrival::Cancelled) drop_cancelled(&node);
    }
    intake_.open(kForever, true);
    if (intake_.take_rechecks(rechecks_.data(), rechecks_.size()) != 0 || refill()) continue;
    if (!intake_.held_up()) break;
    // A producer is sifting its place. That takes some microseconds, unless the thread is preempted.
    std::this_thread::sleep_for(std::chrono::nanoseconds(Tuning::kShortNap));
  }
  returns_.flush();
  return unprocessed;
}

}  // namespace hwt::internal
