// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hwt::internal {

/// Asks the processor for a cache line that is about to be written; a hint, which may be ignored.
// always_inline: gcc drops calls of a function that only prefetches.
[[gnu::always_inline]] inline void prefetch_to_write([[maybe_unused]] const void* address) noexcept {
#if defined(__GNUC__)
  __builtin_prefetch(address, 1);
#endif
}

}  // namespace hwt::internal
