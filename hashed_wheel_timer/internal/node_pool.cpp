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

// AddressSanitizer does not see what happens inside a slab: tell it that a free node's task is not to be touched. (Its
// word is looked at by a worker that meets an entry of the pending queue for it.)
#if defined(HWT_ADDRESS_SANITIZER)
void mark_free(Node* node) noexcept { __asan_poison_memory_region(node->storage, sizeof(node->storage)); }
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
  if (free_ == nullptr) {
    // relaxed first: the exchange costs a locked instruction, and an empty stack needs none.
    if (returned_.load(std::memory_order_relaxed) == nullptr) return carve();
    free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  }
  Node* const node = std::exchange(free_, free_->next);
  mark_taken(node);
  return node;
}

void NodePool::untake(Node* node) noexcept {
  mark_free(node);
  node->next = free_;
  free_ = node;
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

bool NodePool::give_back(Node* first, Node* last) noexcept {
  Node* head = returned_.load(std::memory_order_relaxed);
  do {
    if (head == closed_mark()) return false;
    last->next = head;
    // release: the owner that takes the chain sees the nodes as they were left.
  } while (!returned_.compare_exchange_weak(head, first, std::memory_order_release, std::memory_order_relaxed));
  return true;
}

std::int64_t NodePool::close() noexcept {
  // An owner that has not seen that the pool is closing is within a few instructions of the end of put_back().
  while (owner_inside_.load(std::memory_order_acquire)) std::this_thread::yield();
  std::int64_t out = carved_;
  for (const Node* node = free_; node != nullptr; node = node->next) --out;
  // acquire: the links of the nodes that came back. From here on give_back() fails, so each node is counted once:
  // here, or by the core when it comes back.
  for (const Node* node = returned_.exchange(closed_mark(), std::memory_order_acquire); node != nullptr;
       node = node->next) {
    --out;
  }
  return out;
}

void ReturnBatch::add(Node* node) noexcept {
  node->destroy_task();
  mark_free(node);
  NodePool* const pool = &NodePool::of(*node);
  if (pool != pool_ || nodes_ == kMaxNodes) flush();
  node->next = first_;
  if (first_ == nullptr) last_ = node;
  first_ = node;
  pool_ = pool;
  ++nodes_;
}

void ReturnBatch::flush() noexcept {
  if (first_ == nullptr) return;
  Core& core = first_->core();
  if (!pool_->give_back(first_, last_)) core.returned_after_close(nodes_);
  first_ = nullptr;
  nodes_ = 0;
}

void recycle(Node* node) noexcept {
  node->destroy_task();
  Core& core = node->core();
  NodePool& pool = NodePool::of(*node);
  if (thread_cache::owns(core.id(), pool) && pool.put_back(node)) return;
  mark_free(node);
  if (!pool.give_back(node, node)) core.returned_after_close(1);
}

}  // namespace hwt::internal
