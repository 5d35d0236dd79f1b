#include "hashed_wheel_timer/internal/node_pool.h"

#include <algorithm>
#include <new>
#include <thread>

#include "hashed_wheel_timer/internal/asymmetric_fence.h"
#include "hashed_wheel_timer/internal/core.h"

#if defined(__SANITIZE_ADDRESS__)
#define HWT_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HWT_ADDRESS_SANITIZER
#endif
#endif
#if defined(HWT_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace hwt::internal {

namespace {

/// What a free node has in place of its task.
struct FreeNode {
  // The node that will be taken some nodes later, to fetch it in time: a free node is in the cache of whoever gave it
  // back, or in none, and `next` alone would be one wait after another. (A quarter of the time of schedule and expire.)
  Node* ahead;
  // Of the first node of a batch. So whoever counts the nodes of a closing pool walks over batches and not over
  // millions of nodes.
  Node* next_batch;
  std::int64_t nodes;
};

FreeNode& free_node(Node* node) noexcept { return *std::launder(reinterpret_cast<FreeNode*>(node->storage)); }

// AddressSanitizer does not see what happens inside a slab: tell it that a free node's task is not to be touched. (Its
// word is looked at by a worker that meets an entry of the pending queue for it.)
#if defined(HWT_ADDRESS_SANITIZER)
void mark_free(Node* node) noexcept {
  __asan_poison_memory_region(node->storage + sizeof(FreeNode), sizeof(node->storage) - sizeof(FreeNode));
}
void mark_taken(Node* node) noexcept { __asan_unpoison_memory_region(node->storage, sizeof(node->storage)); }
#else
void mark_free(Node*) noexcept {}
void mark_taken(Node*) noexcept {}
#endif

// What returned_ holds once the pool is closed: no node has this address.
Node* closed_mark() noexcept { return reinterpret_cast<Node*>(std::uintptr_t{1}); }

}  // namespace

TimerTask& Node::task() noexcept {
  return shared() ? static_cast<detail::SharedTask&>(stored_task()).task() : stored_task();
}

void Node::destroy_task() noexcept {
  const detail::TaskKind destroyed = kind();
  if (destroyed != detail::TaskKind::Callable && destroyed != detail::TaskKind::Shared) return;
  // relaxed: whoever looks at the kind later has the node from this thread, or is this thread.
  word.fetch_and(~kKindMask, std::memory_order_relaxed);
  stored_task().~TimerTask();
}

NodePool::~NodePool() {
  for (const Region& region : regions_) ::operator delete (region.memory, std::align_val_t{kSlabBytes});
}

Node* NodePool::take() noexcept {
  if (free_ == nullptr && !refill()) return carve();
  Node* const node = std::exchange(free_, free_->next);
  if (Node* const ahead = free_node(node).ahead) ahead->prefetch();
  --free_nodes_;
  mark_taken(node);
  return node;
}

bool NodePool::refill() noexcept {
  if (batches_ == nullptr) {
    // relaxed first: the exchange costs a locked instruction, and an empty stack needs none.
    if (returned_.load(std::memory_order_relaxed) == nullptr) return false;
    batches_ = returned_.exchange(nullptr, std::memory_order_acquire);
  }
  free_ = batches_;
  free_nodes_ = free_node(free_).nodes;
  batches_ = free_node(free_).next_batch;
  return true;
}

void NodePool::untake(Node* node) noexcept {
  ::new (node->storage) FreeNode{};
  mark_free(node);
  node->next = free_;
  free_ = node;
  ++free_nodes_;
}

bool NodePool::put_back(Node* node) noexcept {
  // Store, then load: pairs with the heavy fence between closing and counting.
  owner_inside_.store(true, std::memory_order_relaxed);
  AsymmetricFence::light();
  const bool open = !closing_.load(std::memory_order_relaxed);
  if (open) untake(node);
  // release: pairs with the acquire in close(), which reads the list.
  owner_inside_.store(false, std::memory_order_release);
  return open;
}

Node* NodePool::carve() noexcept {
  if (fresh_ == fresh_end_ && !open_next_slab()) return nullptr;
  ++carved_;
  return ::new (fresh_++) Node;
}

bool NodePool::open_next_slab() noexcept {
  if (regions_.empty() || slabs_opened_ == regions_.back().slabs) {
    const std::size_t slabs = regions_.empty() ? 1 : std::min(regions_.back().slabs * 2, kMaxSlabsPerRegion);
    try {
      regions_.reserve(regions_.size() + 1);
      regions_.push_back(
          {static_cast<std::byte*>(::operator new (slabs* kSlabBytes, std::align_val_t{kSlabBytes})), slabs});
    } catch (const std::bad_alloc&) {
      return false;
    }
    slabs_opened_ = 0;
  }
  std::byte* const slab = regions_.back().memory + slabs_opened_++ * kSlabBytes;
  ::new (slab) SlabHeader{this, &core_};
  fresh_ = reinterpret_cast<Node*>(slab + sizeof(Node));
  fresh_end_ = fresh_ + kNodesPerSlab;
  return true;
}

bool NodePool::give_back(Node* first, std::size_t nodes) noexcept {
  Node* head = returned_.load(std::memory_order_relaxed);
  FreeNode& batch = free_node(first);
  batch.nodes = static_cast<std::int64_t>(nodes);
  do {
    if (head == closed_mark()) return false;
    batch.next_batch = head;
    // release: the owner that takes the chain sees the nodes as they were left.
  } while (!returned_.compare_exchange_weak(head, first, std::memory_order_release, std::memory_order_relaxed));
  return true;
}

std::int64_t NodePool::close() noexcept {
  // An owner that has not seen that the pool is closing is within a few instructions of the end of put_back().
  while (owner_inside_.load(std::memory_order_acquire)) std::this_thread::yield();
  const auto nodes_of = [](Node* batches) {
    std::int64_t nodes = 0;
    for (; batches != nullptr; batches = free_node(batches).next_batch) nodes += free_node(batches).nodes;
    return nodes;
  };
  // acquire: the heads of the batches that came back. From here on give_back() fails, so each node is counted once:
  // here, or by the core when it comes back.
  Node* const returned = returned_.exchange(closed_mark(), std::memory_order_acquire);
  return carved_ - free_nodes_ - nodes_of(batches_) - nodes_of(returned);
}

void ReturnBatch::add(Node* node) noexcept {
  node->destroy_task();
  NodePool* const pool = &NodePool::of(*node);
  if (pool != pool_ || nodes_ == kMaxNodes) flush();
  pool_ = pool;
  Node*& latest = latest_[nodes_ % kAhead];
  ::new (node->storage) FreeNode{.ahead = nodes_ < kAhead ? nullptr : latest, .next_batch = nullptr, .nodes = 0};
  mark_free(node);
  latest = node;
  node->next = first_;
  first_ = node;
  ++nodes_;
}

void ReturnBatch::flush() noexcept {
  if (first_ == nullptr) return;
  Core& core = first_->core();
  if (!pool_->give_back(first_, nodes_)) core.returned_after_close(static_cast<std::int64_t>(nodes_));
  first_ = nullptr;
  nodes_ = 0;
}

void recycle(Node* node) noexcept {
  node->destroy_task();
  Core& core = node->core();
  NodePool& pool = NodePool::of(*node);
  if (Producer* const mine = thread_cache::find(core.id());
      mine != nullptr && &mine->pool == &pool && pool.put_back(node)) {
    return;
  }
  ::new (node->storage) FreeNode{};
  mark_free(node);
  node->next = nullptr;
  if (!pool.give_back(node, 1)) core.returned_after_close(1);
}

}  // namespace hwt::internal
