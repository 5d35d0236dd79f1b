// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/memory/node.h"

namespace hwt::internal {

class Core;
class NodePool;
struct Slab;

/// Names one life of a node, in 8 bytes: an entry of the inbox, and the value of a TimeoutId.
class NodeName {
 public:
  NodeName() noexcept = default;
  explicit NodeName(std::uint64_t value) noexcept : value_(value) {}
  /// `index` of the node, see SlabDirectory::Index, and the generation that the life began with.
  NodeName(std::uint32_t index, std::uint32_t life) noexcept : value_(std::uint64_t{life} << 32 | index) {}

  std::uint64_t value() const noexcept { return value_; }
  std::uint32_t index() const noexcept { return static_cast<std::uint32_t>(value_); }
  std::uint32_t life() const noexcept { return static_cast<std::uint32_t>(value_ >> 32); }
  /// Returns the node. Preconditions: its core exists, and the name was handed over with acquire, because
  /// SlabDirectory::at() loads with relaxed.
  Node& node() const noexcept;

 private:
  std::uint64_t value_;
};

/// The slabs of all cores in this process, by number, so that an id can name a node without an address. A lookup of a
/// stale id touches no memory of its core, which may have been destroyed.
///
/// Any thread. A slab has a number until its core is destroyed; then another slab may get it. That one begins with
/// later generations than all that the number has seen, so no id ever names a second timeout.
class SlabDirectory {
 public:
  /// The number of a node in this process: the number of its slab, and its place there. The slab has its header at
  /// place 0.
  using Index = std::uint32_t;
  static constexpr int kPlaceBits = 10;
  static constexpr int kNumberBits = 32 - kPlaceBits;  // 256 GiB of nodes
  static constexpr std::uint32_t kPlaces = std::uint32_t{1} << kPlaceBits;
  /// So many nodes are constructed at a time: 4 KiB, a page of most systems.
  static constexpr std::uint32_t kGroup = 64;

  struct alignas(kCacheLine) Entry {  // so that finding one needs no multiplication
    // 0: no core has the number. release when it is set, acquire when it is read. So a reader that finds its own core
    // here finds `memory`, which stays until the core is destroyed.
    std::atomic<std::uint64_t> core_id{0};
    std::atomic<std::byte*> memory{nullptr};
    // Bit n: the nodes of group n were constructed. release by the pool that constructs them, acquire by a reader. A
    // reader that sees a later bit sees these nodes too, because each bit comes by a read-modify-write.
    std::atomic<std::uint32_t> constructed{0};
    // A Trace for each node; null unless the timer traces origins.
    std::atomic<std::atomic<std::uint64_t>*> traces{nullptr};
    // Owned by the core that has the number, or that takes it from the list of free entries.
    std::uint32_t number = 0;
    std::uint32_t first_generation = 0;
    Entry* next = nullptr;

    /// Whether a node is at this place: the place is not the header's, and its group was constructed.
    bool has_node(std::uint32_t place) const noexcept {
      return place != 0 && (constructed.load(std::memory_order_acquire) >> place / kGroup & 1) != 0;
    }
    /// Calls visit(place) for each place with a node.
    template <class Visit>
    void for_each_node(const Visit& visit) const {
      for (std::uint32_t left = constructed.load(std::memory_order_acquire); left != 0; left &= left - 1) {
        const std::uint32_t first = static_cast<std::uint32_t>(std::countr_zero(left)) * kGroup;
        for (std::uint32_t place = std::max(first, std::uint32_t{1}); place != first + kGroup; ++place) visit(place);
      }
    }
    /// The nodes of this place's group are constructed. Pools of several threads may share a slab.
    void add_group(std::uint32_t place) noexcept {
      constructed.fetch_or(std::uint32_t{1} << place / kGroup, std::memory_order_release);
    }
  };

  static std::uint32_t place_of(Index index) noexcept { return index & (kPlaces - 1); }

  /// Gives a slab of this core a number. Returns null without memory, or if all numbers are in use.
  static Entry* add(std::byte* memory, std::uint64_t core_id, std::atomic<std::uint64_t>* traces = nullptr) noexcept;

  /// Frees the number. The next slab with it begins with `first_generation`.
  static void remove(Entry& entry, std::uint32_t first_generation) noexcept;

  /// Returns the node with this index. Preconditions: its core exists, and the index was handed over with acquire,
  /// because the loads are relaxed.
  static Node* at(Index index) noexcept {
    const std::uint32_t number = index >> kPlaceBits;
    const Entry& entry = chunks_[number / kChunk].load(std::memory_order_relaxed)[number % kChunk];
    return reinterpret_cast<Node*>(entry.memory.load(std::memory_order_relaxed) + place_of(index) * kCacheLine);
  }

  /// Returns the node with this index, or null if this core has none. Any index is valid: of a slab of no core or of
  /// another, of a slab's header, or of a node that is not constructed yet. Precondition: the core exists.
  static Node* find(Index index, std::uint64_t core_id) noexcept {
    const std::uint32_t number = index >> kPlaceBits;
    const std::uint32_t place = place_of(index);
    const Entry* const chunk = chunks_[number / kChunk].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    const Entry& entry = chunk[number % kChunk];
    if (entry.core_id.load(std::memory_order_acquire) != core_id || !entry.has_node(place)) return nullptr;
    return reinterpret_cast<Node*>(entry.memory.load(std::memory_order_relaxed) + place * kCacheLine);
  }

  /// A slab with traces.
  struct Slot {
    Index first_index;
    const Entry& entry;
    const Node* nodes;
    const std::atomic<std::uint64_t>* traces;
  };
  /// Visits the slabs of this core that have traces. Precondition: the core exists. May leave out those that are opened
  /// meanwhile.
  template <class Visit>
  static void for_each_traced(std::uint64_t core_id, const Visit& visit) {
    const std::uint32_t end = used_.load(std::memory_order_relaxed);
    for (std::uint32_t number = 0; number != end; ++number) {
      const Entry* const chunk = chunks_[number / kChunk].load(std::memory_order_acquire);
      if (chunk == nullptr) return;  // used_ is relaxed, so this thread may see a number before its chunk
      const Entry& entry = chunk[number % kChunk];
      if (entry.core_id.load(std::memory_order_acquire) != core_id) continue;
      const auto* const traces = entry.traces.load(std::memory_order_relaxed);
      if (traces == nullptr) return;
      visit(Slot{number << kPlaceBits, entry,
                 reinterpret_cast<const Node*>(entry.memory.load(std::memory_order_relaxed)), traces});
    }
  }

 private:
  static constexpr std::uint32_t kChunk = 1024;
  static constexpr std::uint32_t kChunks = (1U << kNumberBits) / kChunk;

  static Entry* make() noexcept;

  // The first is static, so that few timers need no allocation. The others are made when their first number is needed,
  // and kept, because they hold the generations. release and acquire: a reader finds the entries constructed.
  static constinit std::array<Entry, kChunk> first_chunk_;
  static constinit std::array<std::atomic<Entry*>, kChunks> chunks_;
  static constinit std::atomic<std::uint32_t> used_;  // numbers that were ever used. relaxed: it hands nothing over
  static constinit detail::IntrusiveStack<Entry, &Entry::next> free_;
};

inline Node& NodeName::node() const noexcept { return *SlabDirectory::at(index()); }

/// The beginning of a slab, in place of its first node. By it a node finds its core, its slab and its number without a
/// pointer of its own.
struct alignas(kCacheLine) SlabHeader {
  Core* core;
  Slab* slab;
  std::uint64_t core_id;
  std::uint32_t number;  // in the SlabDirectory
};

/// Describes some nodes of a slab, as many as the system takes back at a time. It is not in that memory itself, which
/// may have gone back.
struct Page {
  Node* home;            // nodes that the Collector has taken, linked by Node::next. Only the Collector uses it
  Page* next;            // of a free run: the next one. Written by the owner of the run
  std::uint16_t nodes;   // their number
  std::uint8_t index;    // in its slab; fixed
  std::uint8_t run_end;  // of a free run that begins here: the page after the last. Written by the owner of the run
  // A generation that no node of the page has had, once it is in a free run. Written by the owner of the run.
  std::uint32_t first_generation;
};

/// Describes a block of nodes that is aligned to its own size.
struct Slab {
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  static constexpr std::size_t kMaxPages = 16;
  static constexpr std::size_t kNodes = kBytes / sizeof(Node);  // the header takes the place of the first
  static constexpr std::size_t kGroups = kNodes / SlabDirectory::kGroup;

  /// `traced`: each node gets a trace. Throws std::bad_alloc, also if all numbers are in use.
  Slab(std::byte* block, std::uint64_t core_id, bool traced);
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  /// Frees its number, when the core is destroyed: all nodes are free.
  ~Slab();

  /// The bytes that the system takes back at a time; zero if it takes nothing back.
  static std::size_t page_bytes() noexcept;
  /// The nodes of a page, which are whole groups.
  static std::size_t page_nodes() noexcept;

  static SlabHeader& header(const Node& node) noexcept {
    return *reinterpret_cast<SlabHeader*>(reinterpret_cast<std::uintptr_t>(&node) & ~(kBytes - 1));
  }
  /// The number of a node, for ids.
  static SlabDirectory::Index index_of(const Node& node) noexcept {
    const auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&node) / sizeof(Node) % kNodes);
    return header(node).number << SlabDirectory::kPlaceBits | place;
  }
  /// Stores the deadline and the trace of a node, before it is published. release: see visit_node() in origin.cpp.
  static void trace(Node& node, std::int64_t deadline, std::uint64_t trace) noexcept {
    const SlabHeader& its_header = header(node);
    const std::uint32_t place = SlabDirectory::place_of(index_of(node));
    node.deadline.store(deadline, std::memory_order_release);
    its_header.slab->entry->traces.load(std::memory_order_relaxed)[place].store(trace, std::memory_order_release);
  }
  /// The pool that constructed this node. Precondition: the node is not free, or the caller has taken it.
  static NodePool& pool_of(const Node& node) noexcept {
    const SlabHeader& its_header = header(node);
    return *its_header.slab->pools[SlabDirectory::place_of(index_of(node)) / SlabDirectory::kGroup];
  }
  static Slab& of(Page& page) noexcept { return *std::launder(reinterpret_cast<Slab*>(&page - page.index)); }

  std::array<Page, kMaxPages> pages{};  // first: see of()
  std::byte* const memory;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> traces;  // a Trace for each node; null: none is traced
  SlabDirectory::Entry* const entry;
  // For each group the pool that constructed it. Written by that pool while all nodes of the group are free, so the
  // list that brings a node orders it.
  std::array<NodePool*, kGroups> pools{};
  Slab* next = nullptr;    // in the Collector's list of slabs with collected nodes. Only the Collector uses it
  bool collected = false;  // it is in that list
};

static_assert(Slab::kNodes == std::size_t{1} << SlabDirectory::kPlaceBits);

/// Free runs: consecutive pages that hold no node. The system has their memory, or no pool has used it yet. Each is
/// named by its first page. A run that begins at the beginning of its slab is the whole slab. The pool that opens it
/// writes a new header.
using RunStack = detail::IntrusiveStack<Page, &Page::next>;

}  // namespace hwt::internal
