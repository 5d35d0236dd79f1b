// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace hwt::internal {

/// Gives memory back to the system; the addresses stay allocated.
namespace pages {

/// Returns the unit in bytes: begin and length of a range to give back are multiples of it. Returns zero if the system
/// takes nothing back.
std::size_t size() noexcept;

/// Gives whole pages back. Until a page is written again, it reads as before or as zeros, and the callers rely on that.
/// Linux takes the memory at once, other systems when they need it. (Pages that the process has locked stay.)
void give_back(std::byte* begin, std::size_t bytes) noexcept;

}  // namespace pages
}  // namespace hwt::internal
