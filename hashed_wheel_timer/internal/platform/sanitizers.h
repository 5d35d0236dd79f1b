// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#if defined(__SANITIZE_THREAD__)
#define HWT_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HWT_THREAD_SANITIZER
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define HWT_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HWT_ADDRESS_SANITIZER
#endif
#endif
#if defined(HWT_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

#if defined(HWT_THREAD_SANITIZER)
// Exported by ThreadSanitizer's runtime.
extern "C" void __tsan_ignore_thread_begin();  // NOLINT(bugprone-reserved-identifier)
extern "C" void __tsan_ignore_thread_end();    // NOLINT(bugprone-reserved-identifier)
#endif

namespace hwt::internal {

/// poison_memory() lets AddressSanitizer report each access to the memory, until unpoison_memory(). For memory that the
/// library reuses without freeing it. Both do nothing without AddressSanitizer.
#if defined(HWT_ADDRESS_SANITIZER)
inline void poison_memory(void* memory, std::size_t size) noexcept { __asan_poison_memory_region(memory, size); }
inline void unpoison_memory(void* memory, std::size_t size) noexcept { __asan_unpoison_memory_region(memory, size); }
#else
inline void poison_memory(void*, std::size_t) noexcept {}
inline void unpoison_memory(void*, std::size_t) noexcept {}
#endif

/// While an object exists, ThreadSanitizer ignores the thread's reads and writes, except for atomics. For code that is
/// ordered by std::atomic_thread_fence, which ThreadSanitizer does not understand. Also for the construction of atomics
/// that another thread may read meanwhile. Does nothing without ThreadSanitizer.
class UnwatchedByThreadSanitizer {
 public:
#if defined(HWT_THREAD_SANITIZER)
  UnwatchedByThreadSanitizer() noexcept { __tsan_ignore_thread_begin(); }
  ~UnwatchedByThreadSanitizer() { __tsan_ignore_thread_end(); }
#else
  // Not defaulted: a compiler would call the object unused.
  UnwatchedByThreadSanitizer() noexcept {}  // NOLINT(modernize-use-equals-default)
#endif
  UnwatchedByThreadSanitizer(const UnwatchedByThreadSanitizer&) = delete;
  UnwatchedByThreadSanitizer& operator=(const UnwatchedByThreadSanitizer&) = delete;
};

}  // namespace hwt::internal
