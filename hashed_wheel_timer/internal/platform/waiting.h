// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

namespace hwt::internal {

// Uses wait() and notify_all() of std::atomic, but functions of the system on Windows. On Windows, GCC's standard
// library (12 at least) loses a notification that comes after wait() has read the word and before it sleeps. LLVM's
// reads the word again only every few milliseconds. tests/structure/walls.py checks that no other file of the library
// calls wait() and notify_all().

#if defined(_WIN32)
void wait_at(const void* address, const void* seen, std::size_t size) noexcept;
void wake_all_at(const void* address) noexcept;
#endif

/// Sleeps until the word differs from `seen`, or returns early. The loads are relaxed, so the caller must load the word
/// again with the order that it needs.
template <class T>
void await_change(const std::atomic<T>& word, T seen) noexcept {
#if defined(_WIN32)
  static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));
  wait_at(&word, &seen, sizeof(T));
#else
  word.wait(seen, std::memory_order_relaxed);
#endif
}

/// Wakes the threads that wait for the word to change. Its object may be gone by then, because only the address is
/// used. The standard libraries choose a place in a table by the address. Linux and Windows compare it with the
/// addresses at which threads sleep. If another object is there now, a thread that waits for that one wakes up early
/// and looks again.
template <class T>
void announce_change(std::atomic<T>& word) noexcept {
#if defined(_WIN32)
  wake_all_at(&word);
#else
  word.notify_all();
#endif
}

}  // namespace hwt::internal
