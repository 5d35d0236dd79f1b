#pragma once

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

/// What the pools of a core share: free nodes, and room for nodes whose memory went back to the system. See NodePool
/// and Collector. It also knows when the last node of a closed timer is back.
class alignas(kCacheLine) Depot {  // on cache lines of its own: all producers write it
 public:
  /// `delete_core` is called with `core` once, after close(), by the thread that brings the last node back.
  Depot(Core& core, std::uint64_t core_id, Sleeper& sleeper, void (*delete_core)(Core&) noexcept) noexcept
      : core_(core), core_id_(core_id), sleeper_(sleeper), delete_core_(delete_core) {}

  /// Adds a pool, for the collector and for close(). Any thread.
  void add(NodePool& pool) noexcept { pools_.push(pool); }

  // Any thread.

  /// A chain of `nodes` nodes, linked by `next` and ended by null. False: closed.
  bool push(Node* first, std::size_t nodes) noexcept {
    free_.count_in(nodes);
    AsymmetricFence::light();
    // While the caller still has the nodes, and with them the core.
    if (free_.nodes() >= call_at_.load(std::memory_order_relaxed)) [[unlikely]]
      sleeper_.wake_if_asleep();
    return free_.push_counted(first, nodes);
  }

  // Producers that schedule.

  /// Some batches, linked by FreeNode::next_batch; null: none.
  Node* take(std::int64_t enough) noexcept;
  /// A free run; null: none.
  Page* take_run() noexcept { return runs_.take_one(); }
  /// Fresh memory is needed, although the Collector has some in its hand: it is to put that back.
  void note_shortage() noexcept {
    if (collecting_.load(std::memory_order_relaxed)) shortage_.store(true, std::memory_order_relaxed);
  }

  // The closer, when the worker has finished.

  /// Ends all reuse of nodes and deletes the core, now or when the last node comes back.
  void close() noexcept;
  /// Nodes have come back that no pool and no push() took, because they are closed. Any thread; the core and this may
  /// be gone afterwards.
  void returned_after_close(std::int64_t nodes) noexcept;

  Core& core() const noexcept { return core_; }
  std::uint64_t core_id() const noexcept { return core_id_; }

 private:
  friend class Collector;

  // Bias of out_after_close_ while close() still counts, so that the counter cannot reach zero early.
  static constexpr std::int64_t kCounting = std::int64_t{1} << 62;

  static constexpr std::size_t kNoCall = std::numeric_limits<std::size_t>::max();

  BatchStack free_;
  RunStack runs_;

  // The fewest nodes that were left since the Collector began to watch. By those who take, one over the other: no more
  // than a measure. (relaxed)
  std::atomic<std::size_t> fewest_{0};

  // The worker is asleep and does not know yet that there are so many. The Collector's to write.
  //
  // relaxed. Dekker: who frees nodes counts them, passes the light fence, and looks at this and the announcement of the
  // sleep; the worker stores this and announces its sleep, passes the heavy fence, and looks at the count.
  std::atomic<std::size_t> call_at_{kNoCall};

  // relaxed, both: only a request, which comes late at worst.
  std::atomic<bool> collecting_{false};
  std::atomic<bool> shortage_{false};

  // The Collector's: nodes that it has taken and not put back, as they are or as free runs. (Those that were carved
  // from a free run since are counted by the pool that did so, once more.)
  std::int64_t collected_ = 0;

  // Nodes in use after close(). acq_rel on every change: the thread that takes it to zero has seen all that the others
  // did with the core.
  std::atomic<std::int64_t> out_after_close_{kCounting};

  static NodePool*& next(NodePool& pool) noexcept;
  detail::IntrusiveStack<NodePool, next> pools_;  // all of them, the newest first; none is taken out

  Core& core_;
  const std::uint64_t core_id_;
  Sleeper& sleeper_;
  void (*const delete_core_)(Core&) noexcept;
};

}  // namespace hwt::internal
