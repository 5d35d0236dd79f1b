// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/memory/slab.h"

#include "hashed_wheel_timer/internal/platform/pages.h"

namespace hwt::internal {

constinit std::array<SlabDirectory::Entry, SlabDirectory::kChunk> SlabDirectory::first_chunk_{};
constinit std::array<std::atomic<SlabDirectory::Entry*>, SlabDirectory::kChunks> SlabDirectory::chunks_{
    first_chunk_.data()};
constinit std::atomic<std::uint32_t> SlabDirectory::used_{0};
constinit detail::IntrusiveStack<SlabDirectory::Entry, &SlabDirectory::Entry::next> SlabDirectory::free_;

/// Returns an entry with a number that was never used.
SlabDirectory::Entry* SlabDirectory::make() noexcept {
  std::uint32_t number = used_.load(std::memory_order_relaxed);
  for (;;) {
    if (number == kChunks * kChunk) return nullptr;
    std::atomic<Entry*>& chunk = chunks_[number / kChunk];
    if (chunk.load(std::memory_order_acquire) == nullptr) {
      std::unique_ptr<Entry[]> made(new (std::nothrow) Entry[kChunk]);
      if (made == nullptr) return nullptr;
      Entry* none = nullptr;
      if (chunk.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) made.release();
    }
    if (!used_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) continue;
    Entry& entry = chunk.load(std::memory_order_acquire)[number % kChunk];
    entry.number = number;
    entry.first_generation = Node::kFirstGeneration;
    return &entry;
  }
}

SlabDirectory::Entry* SlabDirectory::add(std::byte* memory, std::uint64_t core_id,
                                         std::atomic<std::uint64_t>* traces) noexcept {
  Entry* entry = free_.take_one();
  if (entry == nullptr) entry = make();
  if (entry == nullptr) return nullptr;
  entry->memory.store(memory, std::memory_order_relaxed);
  entry->constructed.store(0, std::memory_order_relaxed);
  entry->traces.store(traces, std::memory_order_relaxed);
  entry->core_id.store(core_id, std::memory_order_release);
  return entry;
}

void SlabDirectory::remove(Entry& entry, std::uint32_t first_generation) noexcept {
  entry.core_id.store(0, std::memory_order_relaxed);
  // A number whose generations are nearly used up is not used again.
  if (!Node::usable(first_generation)) return;
  entry.first_generation = first_generation;
  free_.push(entry);
}

std::size_t Slab::page_bytes() noexcept {
  const std::size_t of_system = pages::size();
  if (of_system == 0 || kBytes % of_system != 0) return 0;
  return std::max(of_system, kBytes / kMaxPages);
}

std::size_t Slab::page_nodes() noexcept {
  return std::max<std::size_t>(page_bytes() / sizeof(Node), SlabDirectory::kGroup);
}

Slab::Slab(std::byte* block, std::uint64_t core_id, bool traced)
    : memory(block),
      traces(traced ? new std::atomic<std::uint64_t>[kNodes]() : nullptr),
      entry(SlabDirectory::add(block, core_id, traces.get())) {
  if (entry == nullptr) throw std::bad_alloc();
  for (std::size_t i = 0; i < kMaxPages; ++i) pages[i].index = static_cast<std::uint8_t>(i);
}

Slab::~Slab() {
  std::uint32_t unused = entry->first_generation;
  for (const Page& page : pages) unused = std::max(unused, page.first_generation);
  const auto* const nodes = reinterpret_cast<const Node*>(memory);
  // The word of a node whose memory went back reads as 0, or still has the generation that the node had then.
  entry->for_each_node([&](std::uint32_t place) { unused = std::max(unused, nodes[place].generation()); });
  SlabDirectory::remove(*entry, unused);
}

}  // namespace hwt::internal
