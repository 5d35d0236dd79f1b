// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/internal/memory/batch_stack.h"
#include "hashed_wheel_timer/internal/memory/depot.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab.h"
#include "hashed_wheel_timer/internal/platform/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/tuning.h"
#include "hashed_wheel_timer/internal/wheel/prefetch.h"

namespace hwt::internal {

/// The free nodes of one producer. Its owner takes nodes; any thread gives them back.
///
/// Taking is one pop of a private list. The owner puts all nodes there that it frees, also those of other pools. The
/// worker gives nodes back in batches, a thread without a pool one by one. A general allocator is slow if one thread
/// frees the memory of another, and here the worker frees the node of every timeout that expires.
///
/// A node does not belong to one pool for good. A pool keeps only some thousands of unused nodes, and fewer if there
/// are many pools, because a thread that schedules nothing more keeps its nodes. All others go to the depot, which the
/// pools of a core share. So the memory of a timer follows the most timeouts that were alive at once, whichever
/// threads have scheduled them; SECURITY.md has two exceptions. If the depot has unused nodes for some time, the
/// Collector gives their memory back to the system.
///
/// take() searches in this order: the private list, a batch taken before, the returned batches, the depot. Then it
/// carves (constructs) a group of nodes in the open slab, in a free run, or in a new slab. Most threads have few
/// timeouts at once. So a pool keeps only one page of the first slab that it makes. The others become free runs for all
/// pools.
class NodePool {
 public:
  explicit NodePool(Depot& depot) noexcept : depot_(depot) {}
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;

  /// Takes a free node, or a new one. Returns null without memory. Only the owner calls it.
  Node* take() noexcept {
    Node* const node = free_;
    if (node == nullptr) [[unlikely]]
      return take_more();
    free_ = node->next();
    if (Node* const ahead = FreeNode::of(node).ahead) prefetch_to_write(ahead);
    --free_nodes_;
    FreeNode::unmake(node);
    return node;
  }
  /// Undoes take(), or keeps another node of the core. Only the owner calls it, while the timer exists, or inside an
  /// Inside whose pool is not closing. Afterwards call Producer::look() if look_is_due().
  void untake(Node* node) noexcept {
    FreeNode::make(node, nullptr);
    node->next() = free_;
    free_ = node;
    ++free_nodes_;
  }

  /// Returns whether the pool has kLook more free nodes than after its last spill() or drain(), or too many.
  bool look_is_due() const noexcept { return free_nodes_ >= look_at_; }
  /// So many freed nodes share the cost of one Producer::look(), which sifts the place or spills the pool if needed.
  static constexpr std::int64_t kLook = 64;
  /// Moves batches of free nodes to the depot while the pool has too many. Only the owner calls it.
  void spill() noexcept;
  /// Moves all free nodes to the depot. Only the owner calls it.
  void drain() noexcept;

  /// Holds a closer back. If is_closing() returns false while an Inside exists, the closer waits until the Inside is
  /// destroyed. So the owner may use the pool and the depot meanwhile.
  class Inside {
   public:
    explicit Inside(NodePool& pool) noexcept
        : pool_(pool), nested_(pool.owner_inside_.load(std::memory_order_relaxed)) {
      // Store, then load: pairs with the heavy fence between closing and counting.
      pool_.owner_inside_.store(true, std::memory_order_relaxed);
      AsymmetricFence::light();
    }
    // release: pairs with the acquire in close(), which reads the list.
    ~Inside() { pool_.owner_inside_.store(nested_, std::memory_order_release); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    NodePool& pool_;
    // The owner was inside already. look() may call the user's on_earlier(), which may drop a handle and come here
    // again. Then only the outer one leaves.
    const bool nested_;
  };
  bool is_closing() const noexcept { return closing_.load(std::memory_order_relaxed); }

  /// Keeps a node of any pool, without a read-modify-write. Returns false if the pool is closing. Only the owner calls
  /// it, also while the pool is being closed.
  bool put_back(Node* node) noexcept {
    const Inside inside(*this);
    if (is_closing()) [[unlikely]]
      return false;
    untake(node);
    return true;
  }

  /// Gives back a batch, a chain of nodes linked by `next` and ended by null. See ReturnBatch. If the pool
  /// has too many returned nodes, the batch goes to the depot. Returns false if the pool or the depot is closed. Then
  /// the caller must call Depot::returned_after_close(). Any thread.
  bool give_back(Node* first, std::size_t nodes) noexcept;

  /// Takes the nodes that other threads have given back and the owner has not taken yet. Returns batches linked by
  /// FreeNode::next_batch, or null if there are none. The worker calls it.
  Node* take_returned() noexcept { return returned_.take_all(); }

  /// Ends the reuse of nodes in three steps: begin_close(), AsymmetricFence::heavy(), close(). The last returns how
  /// many nodes the pool has carved, less those that it has now. That may be below zero, because it may have nodes of
  /// other pools. No thread may call take() any more.
  void begin_close() noexcept { closing_.store(true, std::memory_order_relaxed); }
  std::int64_t close() noexcept;

  Depot& depot() noexcept { return depot_; }

  NodePool* next = nullptr;  // all pools of the depot, newest first; fixed once added

 private:
  struct FreeRegion {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t{Slab::kBytes}); }
  };
  using RegionMemory = std::unique_ptr<std::byte, FreeRegion>;

  [[gnu::noinline]] Node* take_more() noexcept;
  bool carve() noexcept;
  bool open_free_run() noexcept;
  bool open_next_slab() noexcept;
  void share_pages(Slab& slab) noexcept;
  void open(Slab& slab, std::size_t first, std::size_t end, std::uint32_t generation) noexcept;
  bool refill() noexcept;
  void push(std::int64_t nodes) noexcept;

  Depot& depot_;

  // Only the owner uses these. FreeSeats hands them from thread to thread. At the end, close() reads them.
  Node* free_ = nullptr;
  std::int64_t free_nodes_ = 0;
  std::int64_t look_at_ = kLook;
  // spill() moves nodes from here on: the share at its last move, and a batch.
  std::int64_t most_ = Tuning::kMaxFree + Tuning::kFreeBatch;
  Node* batches_ = nullptr;  // taken from returned_ or the depot, and not yet in use
  Node* fresh_ = nullptr;    // never used so far: [fresh_, fresh_end_) of the open slab or run
  Node* fresh_end_ = nullptr;
  std::uint32_t fresh_generation_ = 0;
  std::int64_t carved_ = 0;
  // Slabs come in regions, because an allocator wastes up to a slab to align each region. A region has one slab more
  // than all before it, but at most Tuning::kMaxSlabsPerRegion.
  std::vector<RegionMemory> regions_;
  std::byte* unopened_ = nullptr;  // the slabs [unopened_, region_end_) of the last region
  std::byte* region_end_ = nullptr;
  std::vector<std::unique_ptr<Slab>> slabs_;  // after regions_: ~Slab() reads its nodes
  std::atomic<bool> owner_inside_{false};     // see Inside
  std::atomic<bool> closing_{false};          // set by the closer, or by the owner in Depot::add()

  alignas(kCacheLine) BatchStack returned_;  // on a line of its own: other threads write it
};

/// Ends the life of a node whose last reference was dropped. Returns false if the node was retired, because its
/// generations are used up; then its core may be destroyed. Any thread.
inline bool end_life_or_retire(Node& node) noexcept {
  if (node.end_life()) [[likely]]
    return true;
  Slab::pool_of(node).depot().retire(node);
  return false;
}

/// Collects nodes and gives them back as one batch: to the depot if one is given, otherwise to the pool of the first
/// node. One thread.
class ReturnBatch {
 public:
  explicit ReturnBatch(Depot* depot = nullptr) noexcept : depot_(depot) {}
  ~ReturnBatch() { flush(); }
  /// Ends the node's life and adds it.
  void add(Node* node) noexcept;
  /// Adds a node that is free already.
  void add_free(Node* node) noexcept;
  void flush() noexcept;

 private:
  Depot* const depot_;
  NodePool* pool_ = nullptr;
  Node* first_ = nullptr;
  std::size_t nodes_ = 0;
  std::array<Node*, Tuning::kAhead> latest_;  // the latest nodes of the batch
};

/// Gives back a node that the calling thread's own pool does not take. Precondition: end_life_or_retire() has returned
/// true for it. Any thread.
void give_back_alone(Node* node) noexcept;

inline Core& Node::core() const noexcept { return *Slab::header(*this).core; }

}  // namespace hwt::internal
