// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/memory/node_pool.h"

#include <thread>

#include "hashed_wheel_timer/internal/platform/sanitizers.h"

namespace hwt::internal {

/// The rest of take() when the private list is empty.
Node* NodePool::take_more() noexcept { return refill() || carve() ? take() : nullptr; }

bool NodePool::refill() noexcept {
  if (batches_ == nullptr) batches_ = returned_.take_all();
  if (batches_ == nullptr) batches_ = depot_.take(depot_.share(Tuning::kMaxFree));
  if (batches_ == nullptr) return false;
  free_ = batches_;
  free_nodes_ = FreeNode::of(free_).nodes;
  batches_ = FreeNode::of(free_).next_batch;
  return true;
}

void NodePool::spill() noexcept {
  while (free_nodes_ >= most_) {
    most_ = depot_.share(Tuning::kMaxFree) + Tuning::kFreeBatch;
    push(Tuning::kFreeBatch);
  }
  look_at_ = std::min(free_nodes_ + kLook, most_);
}

void NodePool::drain() noexcept {
  look_at_ = kLook;
  while (batches_ != nullptr) {
    Node* const first = std::exchange(batches_, FreeNode::of(batches_).next_batch);
    depot_.push(first, static_cast<std::size_t>(FreeNode::of(first).nodes));
  }
  while (free_nodes_ != 0) push(std::min(free_nodes_, Tuning::kFreeBatch));
}

/// Moves so many free nodes to the depot.
void NodePool::push(std::int64_t nodes) noexcept {
  Node* const first = free_;
  Node* last = first;
  for (std::int64_t i = 1; i < nodes; ++i) last = last->next();
  free_ = last->next().exchange(nullptr);
  free_nodes_ -= nodes;
  depot_.push(first, static_cast<std::size_t>(nodes));
}

/// Constructs the next group of nodes, for the empty private list. Returns false without memory.
bool NodePool::carve() noexcept {
  if (fresh_ == fresh_end_ && !open_free_run() && !open_next_slab()) return false;
  Slab& slab = *Slab::header(*fresh_).slab;
  const std::uint32_t first = SlabDirectory::place_of(Slab::index_of(*fresh_));
  const std::uint32_t group = first / SlabDirectory::kGroup;
  const std::int64_t nodes = (group + 1) * SlabDirectory::kGroup - first;
  for (Node* node = fresh_ + nodes; node-- != fresh_; free_ = node) {
    {
      // A thread with a stale id or entry may read the word of a node whose memory went back to the system. It finds a
      // generation that it does not look for, also amid this write. See Collector.
      const UnwatchedByThreadSanitizer constructs_atomics;
      ::new (node) Node(fresh_generation_);
    }
    FreeNode::make(node, nullptr);
    node->next() = free_;
  }
  fresh_ += nodes;
  free_nodes_ += nodes;
  carved_ += nodes;
  slab.pools[group] = this;
  slab.entry->add_group(first);
  return true;
}

bool NodePool::open_free_run() noexcept {
  Page* const run = depot_.take_run();
  if (run == nullptr) return false;
  const std::size_t page = Slab::page_nodes();
  open(Slab::of(*run), run->index * page, run->run_end * page, run->first_generation);
  return true;
}

bool NodePool::open_next_slab() noexcept {
  depot_.note_shortage();
  const bool shared = slabs_.empty();
  try {
    if (unopened_ == region_end_) {
      const std::size_t bytes = std::min(slabs_.size() + 1, Tuning::kMaxSlabsPerRegion) * Slab::kBytes;
      RegionMemory region(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{Slab::kBytes})));
      regions_.push_back(std::move(region));
      unopened_ = regions_.back().get();
      region_end_ = unopened_ + bytes;
    }
    // The room first. Nothing may fail once the slab has its number, which it keeps until the core is destroyed.
    if (slabs_.size() == slabs_.capacity()) slabs_.reserve(2 * slabs_.size() + 1);
    slabs_.push_back(std::make_unique<Slab>(unopened_, depot_.core_id(), depot_.traces_origins()));
  } catch (const std::bad_alloc&) {
    return false;
  }
  unopened_ += Slab::kBytes;
  Slab& slab = *slabs_.back();
  const std::uint32_t generation = slab.entry->first_generation;
  open(slab, 0, shared ? Slab::page_nodes() : Slab::kNodes, generation);
  if (shared) share_pages(slab);
  return true;
}

/// Leaves all pages of a new slab but the first to all pools.
void NodePool::share_pages(Slab& slab) noexcept {
  for (std::size_t i = Slab::kNodes / Slab::page_nodes(); --i != 0;) {
    Page& page = slab.pages[i];
    page.run_end = static_cast<std::uint8_t>(i + 1);
    page.first_generation = slab.entry->first_generation;
    depot_.push_run(page);
  }
}

/// The nodes [first, end) of the slab are fresh, and begin with this generation.
void NodePool::open(Slab& slab, std::size_t first, std::size_t end, std::uint32_t generation) noexcept {
  auto* const nodes = reinterpret_cast<Node*>(slab.memory);
  fresh_ = nodes + first;
  fresh_end_ = nodes + end;
  fresh_generation_ = generation;
  if (first != 0) return;
  ::new (static_cast<void*>(fresh_++)) SlabHeader{&depot_.core(), &slab, depot_.core_id(), slab.entry->number};
}

bool NodePool::give_back(Node* first, std::size_t nodes) noexcept {
  return static_cast<std::int64_t>(returned_.nodes()) < depot_.share(Tuning::kMaxReturned)
             ? returned_.push(first, nodes)
             : depot_.push(first, nodes);
}

std::int64_t NodePool::close() noexcept {
  // An owner that has not seen that the pool is closing leaves within a few instructions, or after one look(): a step
  // of a sift, and on_earlier() of the user.
  while (owner_inside_.load(std::memory_order_acquire))
    std::this_thread::sleep_for(std::chrono::nanoseconds(Tuning::kShortNap));
  // A batch that comes later goes to the depot, or give_back() fails. So each node is counted once: here, in the depot,
  // or by returned_after_close().
  return carved_ - free_nodes_ - BatchStack::count(batches_) - returned_.close();
}

void ReturnBatch::add(Node* node) noexcept {
  if (end_life_or_retire(*node)) add_free(node);
}

void ReturnBatch::add_free(Node* node) noexcept {
  if (nodes_ == Tuning::kHeldBack) flush();
  if (nodes_ == 0) pool_ = &Slab::pool_of(*node);
  Node*& latest = latest_[nodes_ % Tuning::kAhead];
  FreeNode::make(node, nodes_ < Tuning::kAhead ? nullptr : latest);
  latest = node;
  node->next() = first_;
  first_ = node;
  ++nodes_;
}

void ReturnBatch::flush() noexcept {
  if (first_ == nullptr) return;
  Depot& depot = pool_->depot();
  const bool taken = depot_ != nullptr ? depot_->push(first_, nodes_) : pool_->give_back(first_, nodes_);
  if (!taken) depot.returned_after_close(static_cast<std::int64_t>(nodes_));
  first_ = nullptr;
  nodes_ = 0;
}

[[gnu::noinline]] void give_back_alone(Node* node) noexcept {
  NodePool& pool = Slab::pool_of(*node);
  Depot& depot = pool.depot();
  FreeNode::make(node, nullptr);
  node->next() = nullptr;
  if (!pool.give_back(node, 1)) depot.returned_after_close(1);
}

}  // namespace hwt::internal
