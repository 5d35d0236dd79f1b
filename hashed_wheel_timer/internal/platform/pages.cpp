// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/platform/pages.h"

#include <cstdint>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace hwt::internal {

namespace {

#if defined(__linux__)
// MADV_DONTNEED frees the pages at once. Under MADV_FREE they count as resident until the system needs memory.
constexpr int kAdvice = MADV_DONTNEED;
#elif defined(MADV_FREE)
constexpr int kAdvice = MADV_FREE;
#endif

}  // namespace

#if defined(__linux__) || defined(MADV_FREE)

std::size_t pages::size() noexcept {
  const long size = sysconf(_SC_PAGESIZE);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

void pages::give_back(std::byte* begin, std::size_t bytes) noexcept {
  // An allocator that tags its memory has put the tag into the highest byte of the address. Fresh pages have no tag, so
  // a later access by this address would fail. Such memory is kept.
  if (sizeof(void*) == 8 && std::uint64_t{reinterpret_cast<std::uintptr_t>(begin)} >> 56 != 0) return;
  madvise(begin, bytes, kAdvice);
}

#else

std::size_t pages::size() noexcept { return 0; }
void pages::give_back(std::byte*, std::size_t) noexcept {}

#endif

}  // namespace hwt::internal
