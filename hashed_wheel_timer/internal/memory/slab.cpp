#include "hashed_wheel_timer/internal/memory/slab.h"

#include <algorithm>

namespace hwt::internal {

void Slab::leave_directory() noexcept {
  std::uint32_t unused = entry.first_generation;
  for (const Page& page : pages) unused = std::max(unused, page.first_generation);
  const auto* const nodes = reinterpret_cast<const Node*>(memory);
  // Nodes whose memory went back read as 0.
  for (std::uint32_t i = 1; i < entry.constructed.load(std::memory_order_relaxed); ++i) {
    unused = std::max(unused, nodes[i].generation());
  }
  SlabDirectory::remove(entry, unused);
}

}  // namespace hwt::internal
