#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include "hashed_wheel_timer/detail/intrusive_stack.h"
#include "hashed_wheel_timer/internal/memory/node.h"

namespace hwt::internal {

class Core;
class NodePool;
struct Slab;

/// At the beginning of a slab, in place of its first node: by it a node finds its pool, its core and its page, without
/// a pointer of its own.
struct alignas(kCacheLine) SlabHeader {
  NodePool* pool;  // that opened it
  Core* core;
  Slab* slab;
  std::uint64_t core_id;
};

/// Some nodes of a slab, as many as the system takes back at a time. Not in the memory itself: that may be gone.
struct Page {
  Node* home;           // those that the Collector has, linked by Node::next. Its own
  Page* next;           // of a free run: the next one. Of who has it
  std::uint16_t nodes;  // how many the Collector has
  std::uint16_t index;  // in its slab; fixed
  // Where a free run begins and ends, in nodes from the beginning of the slab. Of who has it.
  std::uint16_t run_begin;
  std::uint16_t run_end;
};

/// What is to be known of a block of nodes that is aligned to its own size. Beside the block, at the end of its region.
struct Slab {
  static constexpr std::size_t kBytes = std::size_t{64} << 10;
  static constexpr std::size_t kMaxPages = 16;
  static constexpr std::size_t kNodes = kBytes / sizeof(Node);  // the header takes the place of the first

  explicit Slab(std::byte* block) noexcept : memory(block) {
    for (std::size_t i = 0; i < kMaxPages; ++i) pages[i].index = static_cast<std::uint16_t>(i);
  }

  static SlabHeader& header(const Node& node) noexcept {
    return *reinterpret_cast<SlabHeader*>(reinterpret_cast<std::uintptr_t>(&node) & ~(kBytes - 1));
  }
  static Slab& of(Page& page) noexcept { return *std::launder(reinterpret_cast<Slab*>(&page - page.index)); }

  std::array<Page, kMaxPages> pages{};  // first: see of()
  std::byte* const memory;
  Slab* next = nullptr;    // of those that the Collector has nodes of. Its own
  bool collected = false;  // it is one of them
};

/// Free runs: consecutive pages that hold no node and whose memory the system has. Each is named by its first page. A
/// run that begins at the beginning of its slab is the whole slab, without its header.
using RunStack = detail::IntrusiveStack<Page, &Page::next>;

}  // namespace hwt::internal
