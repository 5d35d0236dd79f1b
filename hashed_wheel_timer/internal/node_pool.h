#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hashed_wheel_timer/internal/node.h"

namespace hwt::internal {

class Core;
class NodePool;

/// A block of nodes aligned to its own size, so that a node finds its pool and its core through the slab's header
/// instead of a pointer of its own.
struct alignas(kCacheLine) SlabHeader {
  NodePool* pool;
  Core* core;
};

/// The nodes of one producer. Its owner takes; any thread gives back. Memory is kept for reuse until the pool goes.
///
/// Taking is one pop of a private list. What the owner cancels itself goes back to that list; all other nodes come
/// back, in batches from the worker, on one atomic stack which the owner takes whole, so there is no ABA and no lock. A
/// general allocator would pay for each node that another thread frees, which is nearly all of them here.
class NodePool {
 public:
  explicit NodePool(Core& core) noexcept : core_(core) {}
  NodePool(const NodePool&) = delete;
  NodePool& operator=(const NodePool&) = delete;
  ~NodePool();

  /// The owner only. Null: no memory.
  Node* take() noexcept;
  /// The owner only: undoes take().
  void untake(Node* node) noexcept;

  /// The owner only, also while the pool is being closed: gives a node back without a read-modify-write. False: the
  /// pool is closing.
  bool put_back(Node* node) noexcept;

  /// Any thread: gives back a batch, a chain of nodes linked by `next` and ended by null. See ReturnBatch. False: the
  /// pool is closed, and its core keeps the count of what is still out.
  bool give_back(Node* first, std::size_t nodes) noexcept;

  /// Ends reuse, in three steps: begin_close(), AsymmetricFence::heavy(), close(), which returns the number of nodes
  /// that are still out. Nobody may take any more.
  void begin_close() noexcept { closing_.store(true, std::memory_order_relaxed); }
  std::int64_t close() noexcept;

  static NodePool& of(const Node& node) noexcept { return *header(node).pool; }
  static SlabHeader& header(const Node& node) noexcept {
    return *reinterpret_cast<SlabHeader*>(reinterpret_cast<std::uintptr_t>(&node) & ~(kSlabBytes - 1));
  }

 private:
  static constexpr std::size_t kSlabBytes = std::size_t{64} << 10;
  static constexpr std::size_t kNodesPerSlab = kSlabBytes / sizeof(Node) - 1;  // the header takes the place of one
  // Slabs come in regions, because an allocator wastes up to a slab to align each region. The first one is small, since
  // most threads have few timeouts at once.
  static constexpr std::size_t kMaxSlabsPerRegion = 64;

  struct Region {
    std::byte* memory;
    std::size_t slabs;
  };

  Node* carve() noexcept;
  bool open_next_slab() noexcept;
  bool refill() noexcept;

  Core& core_;

  // The owner's alone, handed from thread to thread by the lock of ProducerRegistry.
  Node* free_ = nullptr;
  std::int64_t free_nodes_ = 0;
  Node* batches_ = nullptr;  // taken from returned_ and not yet in use
  Node* fresh_ = nullptr;    // never used so far: [fresh_, fresh_end_) of the open slab
  Node* fresh_end_ = nullptr;
  std::size_t slabs_opened_ = 0;  // of the last region
  std::int64_t carved_ = 0;
  std::vector<Region> regions_;
  std::atomic<bool> owner_inside_{false};  // the owner is in put_back()
  std::atomic<bool> closing_{false};       // written once, by the closer

  // Batches of nodes given back: pushed with release by any thread, taken whole with acquire by the owner.
  alignas(kCacheLine) std::atomic<Node*> returned_{nullptr};
};

/// Collects nodes for one give_back() per run of nodes of the same pool. One thread.
class ReturnBatch {
 public:
  ~ReturnBatch() { flush(); }
  void add(Node* node) noexcept;
  void flush() noexcept;

 private:
  static constexpr std::size_t kMaxNodes = 256;  // what a pool may miss while the worker is busy elsewhere
  static constexpr std::size_t kAhead = 8;

  NodePool* pool_ = nullptr;
  Node* first_ = nullptr;
  std::size_t nodes_ = 0;
  std::array<Node*, kAhead> latest_;  // the latest nodes of the batch
};

/// Gives back a node whose last reference is gone: destroys its task first. Any thread.
void recycle(Node* node) noexcept;

inline Core& Node::core() const noexcept { return *NodePool::header(*this).core; }

}  // namespace hwt::internal
