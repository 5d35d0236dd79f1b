#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/memory/node.h"
#include "hashed_wheel_timer/internal/memory/slab_directory.h"

namespace hwt::internal {

class Core;
class NodePool;
struct Slab;

/// The beginning of a slab, in place of its first node. By it a node finds its pool, its core, its page and its number
/// without a pointer of its own.
struct alignas(kCacheLine) SlabHeader {
  NodePool* pool;  // that opened it
  Core* core;
  Slab* slab;
  std::uint64_t core_id;
  std::uint32_t number;  // in the SlabDirectory
};

/// Describes some nodes of a slab, as many as the system takes back at a time. It is not in that memory itself, which
/// may have gone back.
struct Page {
  Node* home;           // nodes that the Collector has taken, linked by Node::next. Only the Collector uses it
  Page* next;           // of a free run: the next one. Written by the owner of the run
  std::uint16_t nodes;  // their number
  std::uint16_t index;  // in its slab; fixed
  // Begin and end of a free run, in nodes from the beginning of the slab. Written by the owner of the run.
  std::uint16_t run_begin;
  std::uint16_t run_end;
  // A generation that no node of the page has had, once its memory went back. Written by the owner of the run.
  std::uint32_t first_generation;
};

/// Describes a block of nodes that is aligned to its own size. It lies beside the block, at the end of its region.
struct Slab {
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  static constexpr std::size_t kMaxPages = 16;
  static constexpr std::size_t kNodes = kBytes / sizeof(Node);  // the header takes the place of the first

  Slab(std::byte* block, SlabDirectory::Entry& its_entry) noexcept : memory(block), entry(its_entry) {
    for (std::size_t i = 0; i < kMaxPages; ++i) pages[i].index = static_cast<std::uint16_t>(i);
  }

  /// Frees its number, when the core is destroyed: all nodes are free.
  void leave_directory() noexcept;

  static SlabHeader& header(const Node& node) noexcept {
    return *reinterpret_cast<SlabHeader*>(reinterpret_cast<std::uintptr_t>(&node) & ~(kBytes - 1));
  }
  /// The number of a node, for ids.
  static SlabDirectory::Index index_of(const Node& node) noexcept {
    const auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(&node) / sizeof(Node) % kNodes);
    return header(node).number << SlabDirectory::kPlaceBits | place;
  }
  static Slab& of(Page& page) noexcept { return *std::launder(reinterpret_cast<Slab*>(&page - page.index)); }

  std::array<Page, kMaxPages> pages{};  // first: see of()
  std::byte* const memory;
  SlabDirectory::Entry& entry;
  Slab* next = nullptr;    // in the Collector's list of slabs with collected nodes. Only the Collector uses it
  bool collected = false;  // it is in that list
};

static_assert(Slab::kNodes == std::size_t{1} << SlabDirectory::kPlaceBits);

/// Free runs: consecutive pages that hold no node and whose memory the system has. Each is named by its first page. A
/// run that begins at the beginning of its slab is the whole slab, without its header.
using RunStack = detail::IntrusiveStack<Page, &Page::next>;

}  // namespace hwt::internal
