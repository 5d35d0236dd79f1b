// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/memory/batch_stack.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"

namespace hwt::internal {

class Core;
class NodePool;

/// The free nodes that the pools of a core share, and the free runs of pages without nodes. See NodePool and Collector.
///
/// The thread that ends the timer (the closer) calls close(), after the worker has finished. From then on no node is
/// kept: a thread that returns one only counts it. When the last one is back, its thread deletes the core.
class alignas(kCacheLine) Depot {  // on cache lines of its own: all producers write it
 public:
  /// `delete_core` is called with `core` once: by close() if no node is out, otherwise by the thread that brings the
  /// last node back.
  Depot(Core& core, std::uint64_t core_id, bool traces_origins, Sleeper& sleeper,
        void (*delete_core)(Core&) noexcept) noexcept
      : core_(core), core_id_(core_id), traces_origins_(traces_origins), sleeper_(sleeper), delete_core_(delete_core) {}

  /// Adds a pool, for the collector and for close(). Any thread.
  void add(NodePool& pool) noexcept;
  /// Returns how many free nodes a pool may keep: `most`, or fewer if there are many pools.
  std::int64_t share(std::int64_t most) const noexcept {
    return std::min(most, kShared / std::max<std::int64_t>(pool_count_.load(std::memory_order_relaxed), 1));
  }

  // Any thread.

  /// Pushes a chain of `nodes` nodes, linked by `next` and ended by null. Returns false if the depot is closed.
  bool push(Node* first, std::size_t nodes) noexcept {
    free_.count_in(nodes);
    AsymmetricFence::full();
    // Before the push, because afterwards the core may be gone.
    if (free_.nodes() >= wake_worker_at_.load(std::memory_order_relaxed)) [[unlikely]]
      sleeper_.wake_if_asleep();
    return free_.push_counted(first, nodes);
  }

  // Producers that schedule.

  /// Takes batches with about `enough` nodes, linked by FreeNode::next_batch; null if there are none.
  Node* take(std::int64_t enough) noexcept;
  /// Takes a free run. Returns null if there is none, while another thread takes one, and while the Collector has them.
  Page* take_run() noexcept { return runs_.take_one(); }
  /// Notes that a producer needs fresh memory. If the Collector is collecting, it puts the nodes that it took back into
  /// the depot.
  void note_shortage() noexcept { shortage_.store(true, std::memory_order_relaxed); }

  // The closer, when the worker has finished.

  /// Ends all reuse of nodes and deletes the core, now or when the last node comes back.
  void close() noexcept;
  /// Counts nodes that no pool and no push() took, because both are closed. Any thread. The core and this may be
  /// destroyed afterwards.
  void returned_after_close(std::int64_t nodes) noexcept;

  /// Takes a node out of use for good. Any thread; the core and this may be destroyed afterwards.
  void retire(Node& node) noexcept {
    if (!retired_.push_unless_closed(node)) returned_after_close(1);
  }

  Core& core() const noexcept { return core_; }
  std::uint64_t core_id() const noexcept { return core_id_; }
  /// Whether each node has a trace.
  bool traces_origins() const noexcept { return traces_origins_; }

  // The Collector.

  static constexpr std::size_t kNoWakeUp = std::numeric_limits<std::size_t>::max();
  /// Makes the thread that frees this many nodes wake the sleeping worker. kNoWakeUp: none does.
  void wake_worker_at(std::size_t nodes) noexcept { wake_worker_at_.store(nodes, std::memory_order_relaxed); }

  std::size_t free_nodes() const noexcept { return free_.nodes(); }
  /// Begins to note the fewest free nodes, with this number.
  void begin_watch(std::size_t nodes) noexcept { fewest_.store(nodes, std::memory_order_relaxed); }
  std::size_t fewest_free_nodes() const noexcept { return fewest_.load(std::memory_order_relaxed); }

  /// Forgets earlier shortages.
  void begin_collection() noexcept { shortage_.store(false, std::memory_order_relaxed); }
  /// Returns whether a producer has needed fresh memory since begin_collection().
  bool has_shortage() const noexcept { return shortage_.load(std::memory_order_relaxed); }

  NodePool* pools() const noexcept { return pools_.top(); }
  Page* take_runs() noexcept { return runs_.take_all(); }
  void push_run(Page& run) noexcept { runs_.push(run); }
  /// See BatchStack::take_some().
  Node* collect(std::int64_t enough, std::int64_t& taken) noexcept { return free_.take_some(enough, taken); }

  /// The number of nodes that the Collector has taken, less those that it has put back into the depot. Only the
  /// Collector uses it, and then close(). It includes nodes whose memory went back to the system. If a pool carves such
  /// a node again, the count of that pool rises, so close() still subtracts the right number.
  std::int64_t collected = 0;

 private:
  // Bias of out_after_close_ while close() still counts, so that the counter cannot reach zero early.
  static constexpr std::int64_t kCounting = std::int64_t{1} << 62;

  // A pool has two lists: its owner's, and one of nodes that other threads return. All lists of a kind together keep at
  // most this many nodes (4 MiB), and a batch more for each pool. If the share of a pool has fallen, its owner's list
  // shrinks only when it is full.
  static constexpr std::int64_t kShared = 65536;

  BatchStack free_;
  RunStack runs_;

  // The fewest nodes that were left since the Collector began to watch. Threads that take nodes overwrite each other,
  // because it is only an estimate. (relaxed)
  std::atomic<std::size_t> fewest_{0};

  // The number of free nodes at which a thread wakes the sleeping worker. Only the Collector writes it.
  //
  // relaxed, with full fences (Dekker). A thread that frees nodes counts them, passes the fence, and reads this. The
  // worker stores this, passes the fence when it announces its sleep, and reads the count. One of them sees the other.
  std::atomic<std::size_t> wake_worker_at_{kNoWakeUp};

  // relaxed: a request, which may be seen late.
  std::atomic<bool> shortage_{false};

  detail::IntrusiveStack<Node, &Node::next> retired_;

  // Nodes in use after close(). acq_rel on every change: the thread that takes it to zero has seen all that the others
  // did with the core.
  std::atomic<std::int64_t> out_after_close_{kCounting};

  static NodePool*& next(NodePool& pool) noexcept;
  detail::IntrusiveStack<NodePool, next> pools_;  // all of them, the newest first; none is taken out
  // relaxed, with fences (Dekker): add() pushes a pool and reads this, close() stores this and reads the pools.
  std::atomic<bool> closing_{false};
  std::atomic<std::int64_t> pool_count_{0};  // relaxed: for a limit that may be seen late

  Core& core_;
  const std::uint64_t core_id_;
  const bool traces_origins_;
  Sleeper& sleeper_;
  void (*const delete_core_)(Core&) noexcept;
};

}  // namespace hwt::internal
