#pragma once

#include <cstddef>

namespace hwt::internal {

/// Memory that goes back to the system while its addresses stay with whoever has allocated it.
namespace pages {

/// What the system takes back is a multiple of this, and begins at one. Zero: it takes nothing back.
std::size_t size() noexcept;

/// Whole pages. What they hold is lost, or not; from now on they occupy nothing until they are written. (Pages that
/// the process has locked stay where they are.)
void give_back(std::byte* begin, std::size_t bytes) noexcept;

}  // namespace pages
}  // namespace hwt::internal
