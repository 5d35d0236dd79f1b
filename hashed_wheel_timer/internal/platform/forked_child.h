// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace hwt::internal {

/// Leaks the contents of `value`, so that a destructor that runs in a forked child does not touch them.
template <class T>
void abandon(T& value) noexcept {
  alignas(T) std::byte nowhere[sizeof(T)];
  ::new (static_cast<void*>(nowhere)) T(std::move(value));
}

}  // namespace hwt::internal
