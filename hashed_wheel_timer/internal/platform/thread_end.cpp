// SPDX-License-Identifier: Apache-2.0
#include "hashed_wheel_timer/internal/platform/thread_end.h"

#include <atomic>
#include <cstdint>
#include <system_error>

#if defined(_WIN32)
#include "hashed_wheel_timer/internal/platform/windows_api.h"
#else
#include <pthread.h>
#endif

namespace hwt::internal {

namespace {

constinit std::atomic<void (*)(void*) noexcept> callback{nullptr};

#if defined(_WIN32)

using Key = DWORD;

/// The value of a thread, and the thread. Windows also calls back when a fiber is deleted, on the deleting thread, so
/// ended() compares the threads. A thread that deletes a fiber of its own counts as ended too early, which only costs
/// it time. The id is stored here and not in a thread_local, because MinGW may have destroyed that.
struct ThreadValue {
  DWORD thread;
  void* value;
};

void WINAPI ended(void* data) {
  auto* const stored = static_cast<ThreadValue*>(data);
  if (stored == nullptr) return;
  const ThreadValue seen = *stored;
  HeapFree(GetProcessHeap(), 0, stored);
  if (seen.thread == GetCurrentThreadId()) callback.load(std::memory_order_relaxed)(seen.value);
}

Key make_key() {
  const Key key = FlsAlloc(ended);
  if (key == FLS_OUT_OF_INDEXES) {
    throw std::system_error(static_cast<int>(GetLastError()), std::system_category(), "FlsAlloc");
  }
  return key;
}
void delete_key(Key key) noexcept { FlsFree(key); }

bool set(Key key, void* value) noexcept {
  auto* stored = static_cast<ThreadValue*>(FlsGetValue(key));
  if (stored == nullptr) {
    stored = static_cast<ThreadValue*>(HeapAlloc(GetProcessHeap(), 0, sizeof(ThreadValue)));
    if (stored == nullptr) return false;
    if (FlsSetValue(key, stored) == 0) {
      HeapFree(GetProcessHeap(), 0, stored);
      return false;
    }
  }
  *stored = {GetCurrentThreadId(), value};
  return true;
}

/// Pins the library in memory, because FlsFree() would call back for all threads at once.
void keep_loaded() noexcept {
  HMODULE self = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                     reinterpret_cast<LPCWSTR>(&ended), &self);
}
constexpr bool kStaysLoaded = true;

#else

using Key = pthread_key_t;

void ended(void* value) { callback.load(std::memory_order_relaxed)(value); }

Key make_key() {
  Key key{};
  if (const int error = pthread_key_create(&key, ended); error != 0) {
    throw std::system_error(error, std::generic_category(), "pthread_key_create");
  }
  return key;
}
void delete_key(Key key) noexcept { pthread_key_delete(key); }

bool set(Key key, void* value) noexcept { return pthread_setspecific(key, value) == 0; }

void keep_loaded() noexcept {}
constexpr bool kStaysLoaded = false;

#endif

// kNone, kGone, or the key plus kFirst. Not a static of a function, because a fork() during its initialization would
// leave its guard locked in the child for ever.
constexpr std::uint64_t kNone = 0;
constexpr std::uint64_t kGone = 1;
constexpr std::uint64_t kFirst = 2;
constinit std::atomic<std::uint64_t> the_key{kNone};

/// Deletes the key when the library is unloaded, for example by dlclose(). Threads that end later must not call the
/// callback, because its code is gone. They leak their values, which belong to the library.
struct Unloading {
  ~Unloading() {
    if (kStaysLoaded) return;
    // Stored before the key is deleted, so that available() is false before other code can get the same key.
    const std::uint64_t key = the_key.exchange(kGone, std::memory_order_acq_rel);
    if (key >= kFirst) delete_key(static_cast<Key>(key - kFirst));
  }
};
[[maybe_unused]] const Unloading unloading;

}  // namespace

void thread_end::prepare(void (*called)(void*) noexcept) {
  if (the_key.load(std::memory_order_acquire) != kNone) return;
  // Stored before the key, whose release makes it visible to the threads that use the key.
  callback.store(called, std::memory_order_relaxed);
  const Key key = make_key();
  std::uint64_t none = kNone;
  if (the_key.compare_exchange_strong(none, key + kFirst, std::memory_order_acq_rel)) {
    keep_loaded();
  } else {
    delete_key(key);  // another thread was faster
  }
}

bool thread_end::set_value(void* value) noexcept {
  const std::uint64_t key = the_key.load(std::memory_order_acquire);
  return key >= kFirst && set(static_cast<Key>(key - kFirst), value);
}

bool thread_end::available() noexcept { return the_key.load(std::memory_order_relaxed) >= kFirst; }

}  // namespace hwt::internal
