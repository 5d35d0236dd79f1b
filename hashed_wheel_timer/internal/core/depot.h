#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "hashed_wheel_timer/internal/core/batch_stack.h"
#include "hashed_wheel_timer/internal/core/slab.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/platform/sleeper.h"

namespace hwt::internal {

/// What the pools of a core have in common: free nodes, and room for nodes whose memory the system has. See NodePool
/// and Collector.
class alignas(kCacheLine) Depot {  // on lines of its own: all producers write it
 public:
  explicit Depot(Sleeper& sleeper) noexcept : sleeper_(sleeper) {}

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
  Page* take_run() noexcept { return runs_.take(); }
  /// Fresh memory is needed, although the Collector has some in its hand: it is to put that back.
  void note_shortage() noexcept {
    if (collecting_.load(std::memory_order_relaxed)) shortage_.store(true, std::memory_order_relaxed);
  }

  // The closer, when the worker has finished.

  /// No more push() succeeds. Returns how many nodes there are, those included whose memory the system has or had.
  std::int64_t close() noexcept { return free_.close() + collected_; }

 private:
  friend class Collector;

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

  Sleeper& sleeper_;
};

}  // namespace hwt::internal
